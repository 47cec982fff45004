# SPDX-License-Identifier: Apache-2.0
"""Views as arrays of Apache Arrow. The consumer here takes the two structs of the C data interface
from their capsules, as pyarrow and polars do, and reads them with ctypes."""

import ctypes
import gc

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


END_SCHEMA, END_ARRAY = (ctypes.CFUNCTYPE(None, ctypes.POINTER(kind)) for kind in (Schema, Array))
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                   ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                   ("dictionary", ctypes.c_void_p), ("release", END_SCHEMA), ("context", ctypes.c_void_p)]
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                  ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                  ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p),
                  ("dictionary", ctypes.c_void_p), ("release", END_ARRAY), ("context", ctypes.c_void_p)]
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class Imported:
    """Owns an array that it has taken from its capsules."""

    def __init__(self, view, **arguments):
        schema, array = view.__arrow_c_array__(**arguments)
        self.schema, self.array = (self.take(kind, capsule, name) for kind, capsule, name in
                                   ((Schema, schema, b"arrow_schema"), (Array, array, b"arrow_array")))
        assert (self.schema.flags, self.schema.n_children, self.schema.name) == (0, 0, b"")
        assert (self.array.n_buffers, self.array.n_children, self.array.offset, self.array.null_count) == (2, 0, 0, 0)
        assert self.array.buffers[0] is None and not self.schema.dictionary and not self.array.dictionary
        self.format, self.address = self.schema.format.decode(), self.array.buffers[1] or 0

    @staticmethod
    def take(kind, capsule, name):
        source = kind.from_address(pointer(capsule, name))
        taken = kind()
        ctypes.memmove(ctypes.byref(taken), ctypes.byref(source), ctypes.sizeof(kind))
        source.release = type(source.release)(0)
        return taken

    def bytes(self, itemsize):
        return ctypes.string_at(self.address, self.array.length * itemsize)

    def release(self):
        self.schema.release(ctypes.byref(self.schema))
        self.array.release(ctypes.byref(self.array))
        assert not self.schema.release and not self.array.release


@pytest.fixture
def seg(daemon):
    seg = shmview.create("seg", 4096, one={"A": ("f4", 2)}, two={"A": ("f4", 2)})
    seg.buf[:] = bytes(i * 7 % 113 for i in range(4096))
    return seg


FORMATS = {"b": "c", "B": "C", "h": "s", "H": "S", "i": "i", "I": "I", "q": "l", "Q": "L", "e": "e", "f": "f",
           "d": "g", "5s": "w:5"}


@pytest.mark.parametrize("format", FORMATS)
def test_types(seg, format):
    view = seg.cast(format, 6)
    for part in view, view[2:5], view.toreadonly(), view[3:3]:
        imported = Imported(part)
        assert imported.format == FORMATS[format] and imported.address == part.address
        assert imported.array.length == len(part) and imported.bytes(view.itemsize) == part.tobytes()
        imported.release()


def test_copies(seg):
    """Arrow has no strides, and no rows that are stored elsewhere."""
    view = seg.cast("i4", 6)
    seg.cast("u8", 2)[:] = [64, 96]
    rows = seg.cast("i4", (2, 3), strides=(8, 4), suboffsets=(0, -1))
    for part in view[::2], view[::-1], seg.cast("i4", (3, 4))[:, 1], view[:1].broadcast(4), rows[1], rows[:, 0]:
        imported = Imported(part)
        assert imported.bytes(4) == part.tobytes()
        imported.release()
    imported = Imported(view[::2])
    view[:] = [9] * 6
    del view, part, rows
    seg.close()
    assert imported.bytes(4)[:4] != b"\t\0\0\0" and len(imported.bytes(4)) == 12
    imported.release()


def test_aligned(seg):
    """Consumers read elements by pointers to their type."""
    try:
        odd = seg.cast("<i4", 3, offset=1)
    except shmview.Misaligned:
        pytest.skip("no view is unaligned")
    imported = Imported(odd)
    assert imported.address % 4 == 0 and imported.bytes(4) == odd.tobytes()
    imported.release()


def test_keeps_the_memory(seg):
    view = seg.cast("i4", 4)
    view[:] = [1, 2, 3, 4]
    imported = Imported(view, requested_schema=None)
    del view
    with pytest.raises(shmview.Busy):
        seg.close()
    seg.cast("i4", 1)[0] = 7
    assert imported.bytes(4)[:8] == b"\7\0\0\0\2\0\0\0"  # it is the memory of the segment
    del seg
    gc.collect()
    assert imported.bytes(4)[4:8] == b"\2\0\0\0"
    imported.release()


def test_refuses(seg):
    """A view of another type looks as if it had no such method, so that a consumer takes its items."""
    for format in "?", ">i", "bfloat16", "Zf", "c", "T{i:a:}", "g", "P", "5p", "(3)f":
        assert not hasattr(seg.cast(format, 3), "__arrow_c_array__"), format
    for shape in (), (2, 3):
        assert not hasattr(seg.cast("i", shape), "__arrow_c_array__")
    with pytest.raises(TypeError):
        seg.cast("i", 3).__arrow_c_array__(None, None)


def test_unusable_views(seg):
    with seg.locked():
        seg.switch("one")
        view = seg["A"]
        seg.switch("two")
    with pytest.raises(shmview.StaleViewError):
        view.__arrow_c_array__()
    view.release()
    with pytest.raises(ValueError, match="released"):
        view.__arrow_c_array__


def test_no_leak(seg, no_leak):
    view = seg.cast("i4", 6)

    def use():
        view.__arrow_c_array__()  # nobody takes it
        view[::2].__arrow_c_array__()
        Imported(view).release()
    no_leak(use)
    view.release()
    seg.close()  # nothing is left that keeps it
