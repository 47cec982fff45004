# SPDX-License-Identifier: Apache-2.0
"""Named shared-memory segments with a lock that survives its holder, and typed views.

    import shmview

    seg = shmview.create("demo", float={"A": ("f4", 1000)}, int={"D": ("i2", 2000)})
    with seg.locked():                      # holds the lock
        seg.switch("float")                 # makes this layout the current one
        seg.view("A")[:3] = [1, 2, 3]

    # in another process
    seg = shmview.attach("demo")
    seg.wait(phase="float")
    with seg.shared():
        print(numpy.asarray(seg.view("A")).sum())

No daemon needs to run before: if there is none, the first call starts one for this user.

create() and attach() return a Segment, make() a View of a new segment, and connect() a Connection;
remove() removes a segment. list(), exists() and stats() look at segments without attaching them.
array(), zeros(), ones(), full() and empty() share one array in one call, and attach_array(name) opens
it; view.array is the array of numpy. wrap() and from_dlpack() are views of memory that other objects
own. set_access() and get_access() are about who may use a segment; events() reports what happens.

Segment, View and Connection can be pickled: a pickled object names the segment or the daemon, and
contains no bytes. Every error is a subclass of Error and of Python's own class for such an error:
FileNotFoundError, TimeoutError, BufferError, ValueError and so on. pin() is for CUDA.

Drop-ins: get_context() returns a context of multiprocessing with locks, Condition, Semaphore, Event,
Barrier, queues, Value and Array of shmview; they, RawArray, RawValue and copy are also in this module.
SharedMemory, ShareableList and SharedMemoryManager like those of multiprocessing.shared_memory and
multiprocessing.managers. With these, the death of a lock's holder blocks no other process, and no
memory is left behind. The modules context, synchronize, queues, sharedctypes, shared_memory and
managers have them too.

Threads: any thread may use any object. Every call that waits or sends a request releases the GIL.
Signals: handlers run while a call waits, and end it if they raise. Fork: a child can use the
objects that it inherits, and never holds its parent's lock.
"""

from . import _errors
from ._core import Connection, Guard, Reading, Segment, View, remove
from ._core import version as __version__
from ._errors import *  # noqa: F401,F403
from ._open import attach, connect, create, make
from . import _types  # noqa: F401

__all__ = [
    "Connection", "Guard", "Reading", "Segment", "View", "attach", "connect", "create", "make", "remove",
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


_name_the_package(globals()[name] for name in __all__)

# __getattr__() imports these modules at the first use, because a program that does not use them
# would pay for typing, ctypes and multiprocessing.
_lazy = {
    "_access": ("Access", "get_access", "set_access"),
    "_events": ("SegmentEvent", "Events", "events"),
    "_tuples": ("LockParty", "LockStatus", "Summary"),
    "_cuda": ("CudaError", "NoCuda", "Pinned", "pin"),
    "_foreign": ("from_dlpack", "wrap"),
    "_stats": ("AttachmentStats", "SegmentStats", "Stats", "exists", "list", "stats"),
    "_arrays": ("array", "attach_array", "empty", "full", "ones", "zeros"),
    "_shared": ("Lock", "OwnerDiedWarning", "RLock"),
    "sharedctypes": ("Array", "RawArray", "RawValue", "Value", "copy", "synchronized"),
    "synchronize": ("Barrier", "BoundedSemaphore", "Condition", "Event", "Semaphore"),
    "queues": ("JoinableQueue", "Queue", "SimpleQueue"),
    "context": ("get_context",),
    "shared_memory": ("ShareableList", "SharedMemory"),
    "managers": ("SharedMemoryManager",),
}
__all__ += [_name for _names in _lazy.values() for _name in _names if _name != "list"]


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
    return sorted({*globals(), *__all__})

