#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Buffers of libshmview behave as those of CPython. A memoryview is made of the whole buffer of
a view; libshmview must answer each request for the view as the memoryview answers it."""

import ctypes
import itertools
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_ssize_t, c_uint32, c_uint64, c_void_p

MAX_NDIM = 8
BUSY = -41
WRITABLE, FORMAT, ND, STRIDES = 0x1, 0x4, 0x8, 0x18
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT = 0x38, 0x58, 0x98, 0x118


class View(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("segment", c_void_p), ("format", c_char_p),
                ("item", c_void_p), ("nbytes", c_uint64), ("itemsize", c_uint32),
                ("dtype", c_uint32), ("ndim", c_uint32), ("flags", c_uint32),
                ("layout", c_uint32), ("generation", c_uint32),
                ("shape", c_ssize_t * MAX_NDIM), ("strides", c_ssize_t * MAX_NDIM),
                ("suboffsets", c_ssize_t * MAX_NDIM), ("reserved", c_uint64 * 4)]


class Spec(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("format", c_char_p), ("offset", c_uint64),
                ("ndim", c_uint32), ("flags", c_uint32), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("suboffsets", POINTER(c_int64))]


class Members:
    """The members of both kinds of buffer in a form that compares; the address only where there
    are no suboffsets."""

    def told(self):
        def some(pointer):
            return pointer[:self.ndim] if pointer else None
        indirect = bool(self.suboffsets)
        return {"len": self.len, "itemsize": self.itemsize, "readonly": self.readonly,
                "ndim": self.ndim, "format": self.format, "shape": some(self.shape),
                "strides": some(self.strides), "suboffsets": some(self.suboffsets),
                "buf": None if indirect else self.buf}


class Buffer(Members, ctypes.Structure):
    _fields_ = [("buf", c_void_p), ("segment", c_void_p), ("len", c_uint64),
                ("itemsize", c_uint64), ("readonly", c_int), ("ndim", c_uint32),
                ("format", c_char_p), ("shape", POINTER(c_ssize_t)),
                ("strides", POINTER(c_ssize_t)), ("suboffsets", POINTER(c_ssize_t)),
                ("internal", c_void_p)]


class PyBuffer(Members, ctypes.Structure):
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t),
                ("itemsize", c_ssize_t), ("readonly", c_int), ("ndim", c_int),
                ("format", c_char_p), ("shape", POINTER(c_ssize_t)),
                ("strides", POINTER(c_ssize_t)), ("suboffsets", POINTER(c_ssize_t)),
                ("internal", c_void_p)]


def load():
    """Returns the library, or None if this interpreter cannot load it."""
    path = os.environ.get("SHMVIEW_LIBRARY")
    if not path or os.environ.get("SHMVIEW_SANITIZE_FLAGS"):
        print("no library that a plain python can load")
        return None
    library = ctypes.CDLL(path)
    library.shmview_error_text.restype = c_char_p
    library.shmview_detach.argtypes = [c_void_p]
    library.shmview_detach_later.argtypes = [c_void_p]
    library.shmview_wrap.argtypes = [c_void_p, c_uint64, ctypes.c_uint, c_void_p, c_void_p,
                                     POINTER(c_void_p)]
    library.shmview_view_make.argtypes = [c_void_p, POINTER(Spec), POINTER(View)]
    library.shmview_buffer_get.argtypes = [POINTER(View), ctypes.c_uint, POINTER(Buffer)]
    return library


class Segment:
    """Foreign memory: a ctypes array."""

    def __init__(self, library, memory, read_only=False):
        self.library, self.memory, self.handle = library, memory, c_void_p()
        self.check(library.shmview_wrap(ctypes.addressof(memory), ctypes.sizeof(memory),
                                        int(read_only), None, None, byref(self.handle)))

    def check(self, result):
        assert result == 0, (result, self.library.shmview_error_text())

    def view(self, form, shape=(), strides=None, offset=0, suboffsets=None):
        def numbers(values):
            return (c_int64 * len(values))(*values) if values is not None else None
        spec = Spec(format=form.encode(), offset=offset, ndim=len(shape), shape=numbers(shape),
                    strides=numbers(strides), suboffsets=numbers(suboffsets))
        view = View()
        self.check(self.library.shmview_view_make(self.handle, byref(spec), byref(view)))
        return view

    def buffer(self, view, flags):
        """Returns a buffer, or None if the library refuses it."""
        buffer = Buffer()
        refused = self.library.shmview_buffer_get(byref(view), flags, byref(buffer))
        return None if refused else buffer

    def release(self, buffer):
        self.library.shmview_buffer_release(byref(buffer))

    def detach(self):
        return self.library.shmview_detach(self.handle)


def memoryview_of(buffer):
    """Returns a memoryview with all that the buffer has. It must not outlive the buffer."""
    new = ctypes.pythonapi.PyMemoryView_FromBuffer
    new.restype = ctypes.py_object
    info = PyBuffer(buf=buffer.buf, len=buffer.len, itemsize=buffer.itemsize,
                    readonly=buffer.readonly, ndim=buffer.ndim, format=buffer.format,
                    shape=buffer.shape, strides=buffer.strides, suboffsets=buffer.suboffsets)
    return new(byref(info))


def ask_memoryview(view, flags):
    """Returns the members of the buffer that the memoryview exports, or None if it refuses."""
    buffer = PyBuffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), byref(buffer), flags)
    except BufferError:
        return None
    told = buffer.told()
    ctypes.pythonapi.PyBuffer_Release(byref(buffer))
    return told


KINDS = [
    dict(form="i"),
    dict(form="i", shape=[6]),
    dict(form="h", shape=[3], strides=[8]),
    dict(form="i", shape=[6], strides=[-4], offset=20),
    dict(form="i", shape=[4], strides=[0]),
    dict(form="i", shape=[0]),
    dict(form="i", shape=[2, 3]),
    dict(form="i", shape=[2, 3], strides=[4, 8]),
    dict(form="h", shape=[2, 3], strides=[8, 2]),
    dict(form="i", shape=[1, 3], strides=[40, 4]),
    dict(form="i", shape=[3, 1], strides=[4, 4]),
    dict(form="i", shape=[0, 3], strides=[4, 40]),
    dict(form="i", shape=[3, 0], strides=[4, 4]),
    dict(form="d", shape=[2, 2, 2], strides=[8, 16, 32]),
    dict(form="d", shape=[2, 2, 2], strides=[16, 32, 8]),
    dict(form="i", shape=[3, 4], strides=[8, 4], offset=256, suboffsets=[0, -1]),
    dict(form="i", shape=[3], strides=[8], offset=256, suboffsets=[4]),
    dict(form="i", shape=[3, 0], strides=[8, 4], offset=256, suboffsets=[0, -1]),
    dict(form="h", shape=[2, 2, 3], strides=[8, 8, -2], offset=256, suboffsets=[-1, 8, -1]),
]
PARTS = [0, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT]


def requests():
    for a, b in itertools.combinations_with_replacement(PARTS, 2):
        for more in (0, WRITABLE, FORMAT, WRITABLE | FORMAT):
            yield a | b | more


def expected(memory, view, index):
    """Returns the number at an index, by the rules of element.h."""
    at = view.data - ctypes.addressof(memory)
    for d, i in enumerate(index):
        at += i * view.strides[d]
        if view.suboffsets[d] >= 0:
            at = int.from_bytes(bytes(memory)[at:at + 8], sys.byteorder) + view.suboffsets[d]
    part = bytes(memory)[at:at + view.itemsize]
    return memoryview(part).cast(view.format.decode())[0]


def compare(segment, kind):
    view = segment.view(**kind)
    whole = segment.buffer(view, INDIRECT | FORMAT)
    mirror = memoryview_of(whole)
    n = 0
    for flags in requests():
        mine = segment.buffer(view, flags)
        theirs = ask_memoryview(mirror, flags)
        told = mine.told() if mine else None
        assert told == theirs, f"{kind}, flags 0x{flags:x}: {told}, not {theirs}"
        if mine:
            segment.release(mine)
        n += 1
    for index in itertools.product(*(range(n) for n in view.shape[:view.ndim])):
        found = mirror[index] if index else mirror[()]
        assert found == expected(segment.memory, view, index), (kind, index)
    assert segment.detach() == BUSY
    del mirror
    segment.release(whole)
    return n


def main():
    library = load()
    if not library:
        return 77
    memory = (ctypes.c_ubyte * 512)(*(i * 7 % 256 for i in range(512)))
    offsets = (c_uint64 * 3)(64, 128, 96)
    n = 0
    for read_only in (False, True):
        ctypes.memmove(ctypes.addressof(memory) + 256, offsets, 24)
        segment = Segment(library, memory, read_only)
        n += sum(compare(segment, kind) for kind in KINDS)
        assert segment.detach() == 0
    print(f"{n} requests, answered as memoryview answers them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
