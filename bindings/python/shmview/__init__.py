# SPDX-License-Identifier: Apache-2.0
"""Named shared-memory segments with a lock that survives its holder, and typed views.

    import shmview

    seg = shmview.create("demo", float={"A": ("f4", 1000)}, int={"D": ("i2", 2000)})
    with seg:                               # holds the lock
        seg.switch("float")                 # says which layout holds from now on
        seg.view("A")[:3] = [1, 2, 3]

    # in another process
    seg = shmview.attach("demo")
    seg.wait(phase="float")
    with seg.shared():
        print(numpy.asarray(seg.view("A")).sum())

No daemon needs to run: where there is none, one is started for this user.

create(), attach(), make(), remove() and connect() open segments and daemons; Segment, View and
Connection are what they return. Everything can be pickled, by name. All errors are subclasses
of Error and of Python's own for that kind: FileNotFoundError, TimeoutError, BufferError,
ValueError and so on. pin() is for CUDA.

Drop-ins: Array, Value, RawArray, RawValue, Lock, RLock and copy are used as multiprocessing's, and
SharedMemory, ShareableList and SharedMemoryManager as those of its shared_memory and managers; but a
killed holder hangs nobody, and nothing is left behind. The modules sharedctypes, shared_memory and
managers have them as well.

Threads: every object may be used by any thread; the GIL is free in every call that waits or asks
the daemon. Signals: handlers run while a call waits, and may end it by raising. Fork: a child
goes on with what it finds, and never holds its parent's lock.
"""

from . import _errors
from ._core import Connection, Guard, Segment, View, remove
from ._core import version as __version__
from ._cuda import CudaError, NoCuda, Pinned, pin
from ._errors import *  # noqa: F401,F403
from ._open import attach, connect, create, make
from ._types import LockParty, LockStatus, Summary

__all__ = [
    "Connection", "CudaError", "Guard", "LockParty", "LockStatus", "NoCuda", "Pinned", "Segment",
    "Summary", "View", "attach", "connect", "create", "make", "pin", "remove",
] + _errors.__all__

for _name in __all__:  # where they are found, not where they are made
    _object = globals()[_name]
    if getattr(_object, "__module__", "").startswith("shmview._"):
        try:
            _object.__module__ = "shmview"
        except (AttributeError, TypeError):
            pass
del _name, _object

# Drop-ins for multiprocessing: loaded when they are asked for, for that takes ctypes and more.
_drop_ins = {
    "_shared": ("Lock", "OwnerDiedWarning", "RLock"),
    "sharedctypes": ("Array", "RawArray", "RawValue", "Value", "copy", "synchronized"),
    "shared_memory": ("ShareableList", "SharedMemory"),
    "managers": ("SharedMemoryManager",),
}
__all__ += [_name for _names in _drop_ins.values() for _name in _names]


def __getattr__(name):
    for module, its_names in _drop_ins.items():
        if name == module or name in its_names:
            from importlib import import_module
            found = import_module(f"{__name__}.{module}")
            globals().update({each: getattr(found, each) for each in its_names})
            return found if name == module else globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})


import collections.abc as _abc  # noqa: E402

_abc.Sequence.register(View)
