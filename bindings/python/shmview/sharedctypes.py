# SPDX-License-Identifier: Apache-2.0
"""Drop-ins for multiprocessing.sharedctypes: ctypes objects in memory that a process shares with its
children.

Create the objects before the children, and pass them as arguments, or let fork inherit them. The
memory is freed when the last process that has it ends, also by a kill. If the owner of a lock is
killed, the next process gets the lock and an OwnerDiedWarning. numpy.asarray(array) is the memory
itself.

These objects need no daemon and have no names."""

import ctypes
from multiprocessing import context
from multiprocessing import sharedctypes as _standard
from multiprocessing.reduction import ForkingPickler

from . import _heap, _sync
from ._shared import CODES, Lock, OwnerDiedWarning, RLock  # noqa: F401

__all__ = ["RawValue", "RawArray", "Value", "Array", "copy", "synchronized"]

typecode_to_type = {
    "c": ctypes.c_char, "u": ctypes.c_wchar,
    "b": ctypes.c_byte, "B": ctypes.c_ubyte,
    "h": ctypes.c_short, "H": ctypes.c_ushort,
    "i": ctypes.c_int, "I": ctypes.c_uint,
    "l": ctypes.c_long, "L": ctypes.c_ulong,
    "q": ctypes.c_longlong, "Q": ctypes.c_ulonglong,
    "f": ctypes.c_float, "d": ctypes.c_double,
}


# --- Objects -----------------------------------------------------------------

def _place(type_, block):
    """Makes an object of type_ at the beginning of block, and lets it keep the block."""
    ForkingPickler.register(type_, _reduce_object)
    obj = type_.from_buffer(block.create_memoryview())
    obj._wrapper = block
    if isinstance(obj, _sync.Quick):
        obj._place = _sync._place(obj)
    return obj


def _new(type_):
    return _place(type_, _heap.allocate(ctypes.sizeof(type_)))


_quick = {}  # class of ctypes: the subclass that replaces it


def _array_type(type_, length):
    """Returns type_ * length, or a subclass of it that accesses elements without ctypes. Each class
    is made once, so that two arrays of the same length have the same class."""
    plain = type_ * length
    if type_ not in CODES:
        return plain
    if plain not in _quick:
        made = type(plain)(plain.__name__, (_sync.Quick, plain),
                           {"__slots__": ("_place",), "__module__": __name__})
        _quick[plain] = made if _sync._is_quick(made, ctypes.Array) else plain
    return _quick[plain]


def _reduce_object(obj):
    context.assert_spawning(obj)
    if isinstance(obj, ctypes.Array):
        return rebuild_ctype, (obj._type_, obj._wrapper, obj._length_)
    return rebuild_ctype, (type(obj), obj._wrapper, None)


def rebuild_ctype(type_, wrapper, length):
    """Unpickles an object: makes one for the same memory."""
    return _place(type_ if length is None else _array_type(type_, length), wrapper)


def _type(typecode_or_type):
    return typecode_to_type.get(typecode_or_type, typecode_or_type)


def RawValue(typecode_or_type, *args):
    """Returns a ctypes object in shared memory, without a lock. args initialize it."""
    obj = _new(_type(typecode_or_type))
    obj.__init__(*args)
    return obj


def RawArray(typecode_or_type, size_or_initializer):
    """Returns a ctypes array in shared memory, without a lock.

    size_or_initializer: the number of elements, which are zeroed, or a sequence of the elements."""
    type_ = _type(typecode_or_type)
    if isinstance(size_or_initializer, int):
        return _new(_array_type(type_, size_or_initializer))
    array = _new(_array_type(type_, len(size_or_initializer)))
    array.__init__(*size_or_initializer)
    return array


def Value(typecode_or_type, *args, lock=True, ctx=None):
    """Returns a ctypes object in shared memory with a lock, which each access to an attribute takes.

    lock: True or None for an own RLock; a lock of shmview or multiprocessing; or False for an object
    without a lock, like that of RawValue(). ctx is ignored.

    Raises AttributeError if lock is not a lock; OSError with ENOSPC if /dev/shm has too little
    space."""
    obj = RawValue(typecode_or_type, *args)
    return obj if lock is False else synchronized(obj, _checked(lock))


def Array(typecode_or_type, size_or_initializer, *, lock=True, ctx=None):
    """Returns a ctypes array in shared memory with a lock, which each access to an element takes.

    typecode_or_type: a letter of the module array; 'c' for bytes with .value and .raw; or a type of
    ctypes. size_or_initializer: see RawArray(). lock, ctx and errors: see Value()."""
    obj = RawArray(typecode_or_type, size_or_initializer)
    return obj if lock is False else synchronized(obj, _checked(lock))


def copy(obj):
    """Returns a copy of a ctypes object in shared memory, without a lock."""
    new = _new(type(obj))
    ctypes.pointer(new)[0] = obj
    return new


# --- Objects with a lock -----------------------------------------------------
#
# The classes inherit from those of multiprocessing, so that isinstance() is true for them. All
# methods are those of shmview._sync, which is the first base.

def _checked(lock):
    if lock is True or lock is None:
        return None
    if not hasattr(lock, "acquire"):
        raise AttributeError(f"{lock!r} has no method 'acquire'")
    return lock


def _attribute(name, doc=None):
    def get(self):
        with self:
            return getattr(self._obj, name)

    def set_(self, value):
        with self:
            setattr(self._obj, name, value)
    return property(get, set_, doc=doc)


class SynchronizedBase(_sync.SynchronizedBase, _standard.SynchronizedBase):
    __doc__ = _sync.SynchronizedBase.__doc__
    __slots__ = ()


class Synchronized(_sync.Synchronized, SynchronizedBase, _standard.Synchronized):
    __doc__ = _sync.Synchronized.__doc__
    __slots__ = ()


class SynchronizedArray(_sync.SynchronizedArray, SynchronizedBase, _standard.SynchronizedArray):
    __doc__ = _sync.SynchronizedArray.__doc__
    __slots__ = ()


class SynchronizedString(SynchronizedArray, _standard.SynchronizedString):
    """An array of bytes with a lock."""
    __slots__ = ()
    value = _attribute("value", "The bytes up to the first NUL.")
    raw = _attribute("raw", "All of the bytes.")


_classes = {}


def _class_of(type_):
    """Returns the wrapper class of a Structure or Union, whose fields are attributes."""
    try:
        return _classes[type_]
    except KeyError:
        fields = {field[0]: _attribute(field[0]) for base in reversed(type_.__mro__)
                  for field in base.__dict__.get("_fields_", ())}
        made = _classes[type_] = type(f"Synchronized{type_.__name__}", (SynchronizedBase,), fields)
        return made


def synchronized(obj, lock=None, ctx=None):
    """Returns a wrapper of a ctypes object, which takes lock for each access. None stands for an own
    RLock. ctx is ignored."""
    if isinstance(obj, _standard.SynchronizedBase):
        raise TypeError("the object has a lock already")
    if isinstance(obj, ctypes._SimpleCData):
        return Synchronized(obj, lock)
    if isinstance(obj, ctypes.Array):
        return (SynchronizedString if obj._type_ is ctypes.c_char else SynchronizedArray)(obj, lock)
    return _class_of(type(obj))(obj, lock)
