# SPDX-License-Identifier: Apache-2.0
"""Named shared-memory segments with a lock that survives its holder, and typed views.

    import shmview

    seg = shmview.create("demo", float={"A": ("f4", 1000)}, int={"D": ("i2", 2000)})
    with seg.locked():                      # holds the lock
        seg.switch("float")                 # makes this layout the current one
        seg["A"][:3] = [1, 2, 3]

    seg = shmview.attach("demo")            # in another process
    seg.wait(phase="float")
    with seg.shared():
        print(numpy.asarray(seg["A"]).sum())

The first call starts a daemon for this user if none runs. help(shmview.NAME) describes each NAME.

Share one array      array, zeros, ones, full, empty; attach_array opens it. view.array is numpy's
Create and open      create, attach, connect; make creates a segment and returns a View of it
Look                 list, exists, stats (Stats, SegmentStats, AttachmentStats), events (Events, SegmentEvent);
    web returns the live page of a segment for a notebook (WebPage)
Rights, removal      get_access, set_access (Access); remove, Segment.remove; trim returns memory of removed ones now
Others' memory       wrap, from_dlpack return a View of it; for CUDA, pin; for MPI, 'import shmview.mpi'
Streams of frames    create_stream, open_stream return a Stream (StreamInfo, StreamStatus, SlotStatus,
    ReaderStatus): 'with stream.loan() as frame' publishes a Frame, 'for frame in stream' and 'async for'
    take each one, stream.latest() the newest; wait_any waits for several; WriterDied, StreamEnded

Segment              its bytes and its layouts, its lock, its phase and its changes:
    with seg:                               closes it at the end of the block
    locked, shared, recover                 hold the lock: 'with seg.locked():', also 'async with'
    reading                                 reads without the lock (Reading)
    lock, trylock, unlock, lock_status      (LockStatus, LockParty)
    view, cast, buf; seg["A"]               Views of its bytes
    define, layouts, switch, phase          layouts that share the bytes in turn
    notify, wait, changed                   wait for other processes; 'await seg.changed()'
View                 a buffer and a sequence of N dimensions, for numpy, torch and memoryview:
    v[1, 2], v[::2], v["x"], v[:] = ...     elements, parts, fields, values
    cast, reshape, transpose, T, field      other views of the same elements
    array, tolist, item, summary            numpy's array, Python's values, figures (Summary)

Instead of multiprocessing's
    get_context: a context with all of these; Array, Value, RawArray, RawValue, copy, synchronized
    Lock, RLock, Condition, Semaphore, BoundedSemaphore, Event, Barrier, Queue, JoinableQueue, SimpleQueue
    SharedMemory, ShareableList, SharedMemoryManager
    The death of a holder blocks nobody (OwnerDiedWarning), and no memory is left.

Errors are subclasses of Error and of Python's own class:
    no such name         NotFound, NoLayout                 FileNotFoundError, LookupError
    not now              Exists, Busy, TimedOut, NoDaemon   FileExistsError, BufferError, TimeoutError, ConnectionError
    no room, no right    NoSpace, Limit, Quota, Denied      OSError, PermissionError
    wrong value, place   FormatError, Bounds, IllSized, Misaligned, ConversionError    ValueError
    a holder has died    OwnerDied: 'with seg.recover() as died:' takes the lock and repairs
    shmview.Error.__subclasses__() has the others, such as StaleViewError, Deadlock and Lost.

Objects can be pickled: a pickled Segment or View is its name, without the bytes. Threads may share
all objects, and calls that wait release the GIL. A forked child can use the objects that it inherits,
and never holds its parent's lock.

docs/PYTHON.md is the guide, docs/COOKBOOK.md has programs, docs/TROUBLESHOOTING.md errors with remedies.
"""

from . import _errors
from ._core import Connection, Frame, Guard, Reading, Segment, Stream, View, remove, trim, wait_any
from ._core import version as __version__
from ._errors import *  # noqa: F401,F403
from ._open import attach, connect, create, make
from . import _types  # noqa: F401

_names = [
    "Connection", "Frame", "Guard", "Reading", "Segment", "Stream", "View", "attach", "connect", "create", "make",
    "remove", "trim", "wait_any",
] + _errors.__all__

# Classes name the package as their module, because users import them from there. Pickle and help()
# then show "shmview.Segment" and not a private module.
def _name_the_package(objects):
    for each in objects:
        if getattr(each, "__module__", "").startswith("shmview._"):
            try:
                each.__module__ = __name__
            except (AttributeError, TypeError):
                pass


_name_the_package(globals()[name] for name in _names)

# __getattr__() imports these modules at the first use, because a program that does not use them
# would pay for typing, ctypes and multiprocessing.
_lazy = {
    "_access": ("Access", "get_access", "set_access"),
    "_events": ("SegmentEvent", "Events", "events"),
    "_tuples": ("LockParty", "LockStatus", "Summary"),
    "_cuda": ("CudaError", "NoCuda", "Pinned", "pin"),
    "_foreign": ("from_dlpack", "wrap"),
    "_web": ("WebPage", "web"),
    "_stats": ("AttachmentStats", "SegmentStats", "Stats", "exists", "list", "stats"),
    "_arrays": ("array", "attach_array", "empty", "full", "ones", "zeros"),
    "_streams": ("ReaderStatus", "SlotStatus", "StreamInfo", "StreamStatus", "create_stream", "open_stream"),
    "_shared": ("Lock", "OwnerDiedWarning", "RLock"),
    "sharedctypes": ("Array", "RawArray", "RawValue", "Value", "copy", "synchronized"),
    "synchronize": ("Barrier", "BoundedSemaphore", "Condition", "Event", "Semaphore"),
    "queues": ("JoinableQueue", "Queue", "SimpleQueue"),
    "context": ("get_context",),
    "shared_memory": ("ShareableList", "SharedMemory"),
    "managers": ("SharedMemoryManager",),
}
_names += [_name for _of_module in _lazy.values() for _name in _of_module]

# Empty for two reasons. "from shmview import *" would hide the type list and the modules array and
# copy. And help() prints each member of __all__ in full, here thousands of lines, so that nobody would
# find a call by its task.
__all__ = []


def __getattr__(name):
    for module, its_names in _lazy.items():
        if name == module or name in its_names:
            from importlib import import_module
            found = import_module(f"{__name__}.{module}")
            globals().update({each: getattr(found, each) for each in its_names})
            if module.startswith("_"):
                _name_the_package(globals()[each] for each in its_names)
            return found if name == module else globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_names})

