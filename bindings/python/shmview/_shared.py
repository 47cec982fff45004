# SPDX-License-Identifier: Apache-2.0
"""The parts of Lock, RLock and the wrappers of ctypes objects that are written in Python: pickling,
warnings and repr(). The extension module shmview._sync calls these functions."""

import multiprocessing
import os
import sys
import threading
import warnings
from multiprocessing import context, reduction

from . import _heap, _sync


class OwnerDiedWarning(RuntimeWarning):
    """The last owner of a lock was killed inside, and the caller now has the lock. The data that it
    guards may be half written. pid: the process id of that owner.

    After warnings.simplefilter("error", shmview.OwnerDiedWarning), acquire() raises this warning as
    an exception, and does not hold the lock."""

    pid = 0


def _tell_death(pid, what="died while it held this lock: what the lock guards may be half written"):
    who = "a thread of this process" if pid == os.getpid() else f"process {pid}"
    warning = OwnerDiedWarning(f"{who} {what}")
    warning.pid = pid
    warnings.warn(warning, stacklevel=2)


def _standard_class(name):
    """Returns the class of multiprocessing that Lock or RLock stands in for."""
    from multiprocessing import synchronize
    return getattr(synchronize, name)


def _new_block(size):
    return _heap.allocate(size)


# --- Pickling ----------------------------------------------------------------
#
# Only for a child that is being started, as in multiprocessing: the descriptor of the memory can be
# passed to such a child, but not stored in a file.

def _reduce_arena(arena):
    context.assert_spawning(arena)
    return _rebuild_arena, (arena.size, reduction.DupFd(arena.fd))


def _rebuild_arena(size, descriptor):
    fd = descriptor.detach()
    os.set_inheritable(fd, False)
    return _sync.Arena(size, fd)


def _reduce_lock(lock, block):
    context.assert_spawning(lock)
    return _rebuild_lock, (type(lock), block)


def _rebuild_lock(cls, block):
    return cls(_block=block)


def _reduce_synchronized(wrapper, obj, lock):
    context.assert_spawning(wrapper)
    from . import sharedctypes
    return sharedctypes.synchronized, (obj, lock)


# --- Words -------------------------------------------------------------------

def _owner(lock):
    """Returns the owner in the words of the standard library, or None."""
    pid = lock._owner_pid
    if not lock.locked():
        return None
    if lock._is_mine():
        name = multiprocessing.current_process().name
        thread = threading.current_thread().name
        return name if thread == "MainThread" else f"{name}|{thread}"
    return "SomeOtherThread" if pid == os.getpid() else "SomeOtherProcess"


def _repr_lock(lock):
    owner = _owner(lock)
    if isinstance(lock, _sync.RLock):
        count = lock._count() if lock._is_mine() else 0 if owner is None else "nonzero"
        return f"<{type(lock).__name__}({owner}, {count})>"
    return f"<{type(lock).__name__}(owner={owner})>"


def _codes():
    """Returns the letters of the plain types, whose elements are accessed without ctypes."""
    import ctypes
    plain = (ctypes.c_char, ctypes.c_bool, ctypes.c_byte, ctypes.c_ubyte, ctypes.c_short,
             ctypes.c_ushort, ctypes.c_int, ctypes.c_uint, ctypes.c_long, ctypes.c_ulong,
             ctypes.c_longlong, ctypes.c_ulonglong, ctypes.c_float, ctypes.c_double)
    return {type_: type_._type_ for type_ in plain}


CODES = _codes()
_sync._set_up(sys.modules[__name__], CODES)
Lock, RLock = _sync.Lock, _sync.RLock
