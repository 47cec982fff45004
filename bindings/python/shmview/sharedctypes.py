# SPDX-License-Identifier: Apache-2.0
"""As multiprocessing.sharedctypes: ctypes objects in memory that children have in common.

Create them before the children, and hand them over as arguments, or let fork inherit them.
The memory goes with the last process that has it, however that ends; a lock whose holder was
killed goes to the next one (OwnerDiedWarning). numpy.asarray(array) is the memory itself.

No daemon is involved, and nothing has a name."""

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
    """An object of type_ at the beginning of block, which it keeps."""
    ForkingPickler.register(type_, _reduce_object)
    obj = type_.from_buffer(block.create_memoryview())
    obj._wrapper = block
    if isinstance(obj, _sync.Quick):
        obj._place = _sync._place(obj)
    return obj


def _new(type_):
    return _place(type_, _heap.allocate(ctypes.sizeof(type_)))


_quick = {}  # class by the class of ctypes that it stands in for


def _array_type(type_, length):
    """type_ * length, or a subclass of it that reads and sets elements without ctypes."""
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
    """What a pickled object comes back as."""
    return _place(type_ if length is None else _array_type(type_, length), wrapper)


def _type(typecode_or_type):
    return typecode_to_type.get(typecode_or_type, typecode_or_type)


def RawValue(typecode_or_type, *args):
    """A ctypes object in shared memory, without a lock; args initialize it."""
    obj = _new(_type(typecode_or_type))
    obj.__init__(*args)
    return obj


def RawArray(typecode_or_type, size_or_initializer):
    """A ctypes array in shared memory, without a lock. size_or_initializer: its length, of
    zeroed elements, or a sequence of its elements."""
    type_ = _type(typecode_or_type)
    if isinstance(size_or_initializer, int):
        return _new(_array_type(type_, size_or_initializer))
    array = _new(_array_type(type_, len(size_or_initializer)))
    array.__init__(*size_or_initializer)
    return array


def Value(typecode_or_type, *args, lock=True, ctx=None):
    """A ctypes object in shared memory whose attributes are read and set with its lock held.

    lock: True or None for an RLock of its own; a lock, of shmview or multiprocessing; False
    for none: as RawValue(). ctx is ignored.

    Raises AttributeError if lock is no lock; OSError with ENOSPC where /dev/shm is full."""
    obj = RawValue(typecode_or_type, *args)
    return obj if lock is False else synchronized(obj, _checked(lock))


def Array(typecode_or_type, size_or_initializer, *, lock=True, ctx=None):
    """A ctypes array in shared memory whose elements are read and set with its lock held.

    typecode_or_type: a letter of the module array, 'c' for bytes with .value and .raw, or a
    ctypes type. size_or_initializer: as for RawArray(). lock, ctx and what it raises: as for
    Value()."""
    obj = RawArray(typecode_or_type, size_or_initializer)
    return obj if lock is False else synchronized(obj, _checked(lock))


def copy(obj):
    """A copy of a ctypes object, in shared memory, without a lock."""
    new = _new(type(obj))
    ctypes.pointer(new)[0] = obj
    return new


# --- Objects with a lock -----------------------------------------------------
#
# They are multiprocessing's by isinstance(), and nothing else: shmview._sync comes first.

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
    """The wrapper of a Structure or Union, with its fields as attributes."""
    try:
        return _classes[type_]
    except KeyError:
        fields = {field[0]: _attribute(field[0]) for base in reversed(type_.__mro__)
                  for field in base.__dict__.get("_fields_", ())}
        made = _classes[type_] = type(f"Synchronized{type_.__name__}", (SynchronizedBase,), fields)
        return made


def synchronized(obj, lock=None, ctx=None):
    """A wrapper of a ctypes object that takes lock, or an RLock of its own, for each access.
    ctx is ignored."""
    if isinstance(obj, _standard.SynchronizedBase):
        raise TypeError("the object has a lock already")
    if isinstance(obj, ctypes._SimpleCData):
        return Synchronized(obj, lock)
    if isinstance(obj, ctypes.Array):
        return (SynchronizedString if obj._type_ is ctypes.c_char else SynchronizedArray)(obj, lock)
    return _class_of(type(obj))(obj, lock)
