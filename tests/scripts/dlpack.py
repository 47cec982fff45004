#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Views pass to numpy and back by DLPack and by PEP 3118. The arrays must have the bytes of the
view and not a copy, and each deleter must be called exactly when its memory is free."""

import ctypes
import gc
import sys
from ctypes import POINTER, byref, c_char_p, c_void_p

sys.dont_write_bytecode = True
from buffer import BUSY, FORMAT, INDIRECT, Segment, View, load, memoryview_of  # noqa: E402

try:
    import numpy
except ImportError:
    print("no numpy")
    sys.exit(77)

capsule_new = ctypes.pythonapi.PyCapsule_New
capsule_new.restype = ctypes.py_object
capsule_new.argtypes = [c_void_p, c_char_p, c_void_p]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype = c_void_p
capsule_pointer.argtypes = [ctypes.py_object, c_char_p]
capsule_name = ctypes.pythonapi.PyCapsule_SetName
capsule_name.argtypes = [ctypes.py_object, c_char_p]

TENSOR, USED = b"dltensor", b"used_dltensor"  # a capsule borrows its name
TYPES = ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
         "complex64 complex128").split()
SHAPES = [
    ((), None, 0),
    ((5,), None, 1),
    ((5,), (-2,), 8),
    ((4, 3), None, 0),
    ((4, 3), (1, 4), 0),
    ((2, 3, 4), (24, -4, 2), 20),
    ((0, 3), None, 0),
]


class Tensor:
    """An object with the methods that numpy.from_dlpack() requires."""

    def __init__(self, library, view):
        self.library, self.view = library, view

    def __dlpack__(self, stream=None):
        tensor = c_void_p()
        result = self.library.shmview_dlpack_export(byref(self.view), byref(tensor))
        assert result == 0, self.library.shmview_error_text()
        return capsule_new(tensor, TENSOR, None)

    def __dlpack_device__(self):
        return (1, 0)


def same_array(segment, view, array):
    """Asserts that the array has the view's bytes, and not a copy of them."""
    assert array.dtype == numpy.dtype(view_type(view)), (array.dtype, view.format)
    assert array.shape == tuple(view.shape[:view.ndim])
    if array.size == 0:
        return
    assert array.__array_interface__["data"][0] == view.data
    longer = [d for d in range(view.ndim) if view.shape[d] > 1]
    assert [array.strides[d] for d in longer] == [view.strides[d] for d in longer]
    before = array.tobytes()
    for i, number in enumerate(segment.memory):
        segment.memory[i] = number ^ 0x21
    assert array.tobytes() == bytes(byte ^ 0x21 for byte in before)


def view_type(view):
    return {b"Zf": "c8", b"Zd": "c16"}.get(view.format) or view.format.decode()


def give_tensors(library, segment):
    for name in TYPES:
        size = numpy.dtype(name).itemsize
        for shape, strides, first in SHAPES:
            view = segment.view(name, shape, strides and [s * size for s in strides], first * size)
            array = numpy.from_dlpack(Tensor(library, view))
            same_array(segment, view, array)
            assert segment.detach() == BUSY
            del array
            gc.collect()


def give_buffers(segment):
    for name in TYPES:
        size = numpy.dtype(name).itemsize
        for shape, strides, first in SHAPES:
            view = segment.view(name, shape, strides and [s * size for s in strides], first * size)
            buffer = segment.buffer(view, INDIRECT | FORMAT)
            array = numpy.asarray(memoryview_of(buffer))
            same_array(segment, view, array)
            del array
            segment.release(buffer)


def take(library, array):
    """Imports an array of numpy. Returns the segment, which the caller must detach, and the
    view."""
    capsule = array.__dlpack__()
    segment, view = c_void_p(), View()
    result = library.shmview_dlpack_import(capsule_pointer(capsule, TENSOR), byref(segment),
                                           byref(view))
    assert result == 0, library.shmview_error_text()
    capsule_name(capsule, USED)  # the segment owns the deleter now
    return segment, view


def take_tensors(library):
    for name in TYPES:
        whole = numpy.arange(120).astype(name).reshape(2, 3, 4, 5)
        for array in (whole, whole.T, whole[:, ::-1, 1:3, ::2], whole[1, 2], whole[:, :0],
                      numpy.array(7, name)):
            n = sys.getrefcount(array)
            segment, view = take(library, array)
            assert sys.getrefcount(array) > n
            assert tuple(view.shape[:view.ndim]) == array.shape
            if array.size:
                assert view.data == array.__array_interface__["data"][0]
                assert numpy.dtype(view_type(view)) == array.dtype
                longer = [d for d in range(view.ndim) if view.shape[d] > 1]
                assert [view.strides[d] for d in longer] == [array.strides[d] for d in longer]
            assert library.shmview_detach(segment) == 0
            assert sys.getrefcount(array) == n  # the deleter was called


def main():
    library = load()
    if not library:
        return 77
    library.shmview_dlpack_export.argtypes = [POINTER(View), POINTER(c_void_p)]
    library.shmview_dlpack_import.argtypes = [c_void_p, POINTER(c_void_p), POINTER(View)]
    memory = (ctypes.c_uint8 * 1024)(*(i % 256 for i in range(1024)))
    segment = Segment(library, memory)
    give_tensors(library, segment)
    give_buffers(segment)
    assert segment.detach() == 0, "numpy has not given all back"
    take_tensors(library)
    print(f"{len(TYPES)} types, {len(SHAPES)} shapes, numpy {numpy.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
