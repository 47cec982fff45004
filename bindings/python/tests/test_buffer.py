# SPDX-License-Identifier: Apache-2.0
"""Views as buffers: a view answers every request as CPython's memoryview of the same bytes
answers it."""

import array
import ctypes
import itertools

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")

WRITABLE, FORMAT, ND, STRIDES = 0x1, 0x4, 0x8, 0x18
C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT = 0x38, 0x58, 0x98, 0x118
PARTS = [0, ND, STRIDES, C_CONTIGUOUS, F_CONTIGUOUS, ANY_CONTIGUOUS, INDIRECT]
REQUESTS = sorted({a | b | more for a, b in itertools.combinations_with_replacement(PARTS, 2)
                   for more in (0, WRITABLE, FORMAT, WRITABLE | FORMAT)})


class Buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
                ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
                ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)), ("internal", ctypes.c_void_p)]


def ask(exporter, flags):
    """Returns the members of the buffer that the exporter gives, or None if it refuses."""
    b = Buffer()
    try:
        ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(exporter), ctypes.byref(b), flags)
    except BufferError:
        return None

    def some(pointer):
        return pointer[:b.ndim] if pointer else None
    told = (b.len, b.itemsize, b.readonly, b.ndim, b.format, some(b.shape), some(b.strides), some(b.suboffsets),
            None if b.suboffsets else b.buf)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(b))
    return told


KINDS = [
    dict(format="i", shape=()), dict(format="i", shape=6), dict(format="h", shape=3, strides=8),
    dict(format="i", shape=6, strides=-4, offset=20), dict(format="i", shape=4, strides=0), dict(format="i", shape=0),
    dict(format="i", shape=(2, 3)), dict(format="i", shape=(2, 3), strides=(4, 8)),
    dict(format="h", shape=(2, 3), strides=(8, 2)), dict(format="i", shape=(1, 3), strides=(40, 4)),
    dict(format="i", shape=(3, 1), strides=(4, 4)), dict(format="i", shape=(0, 3), strides=(4, 40)),
    dict(format="i", shape=(3, 0), strides=(4, 4)), dict(format="d", shape=(2, 2, 2), strides=(8, 16, 32)),
    dict(format="d", shape=(2, 2, 2), strides=(16, 32, 8)), dict(format="T{i:a:d:b:}", shape=3),
    dict(format="i", shape=(3, 4), strides=(8, 4), offset=256, suboffsets=(0, -1)),
    dict(format="i", shape=3, strides=8, offset=256, suboffsets=4),
    dict(format="h", shape=(2, 2, 3), strides=(8, 8, -2), offset=256, suboffsets=(-1, 8, -1)),
]


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_requests(kind, readonly):
    seg = shmview.create("seg", 512)
    seg.buf[:] = bytes(i * 7 % 256 for i in range(512))
    seg.cast("q", 3, offset=256)[:] = [64, 128, 96]
    view = seg.cast(**kind, readonly=readonly)
    mirror = memoryview(view)
    for flags in REQUESTS:
        assert ask(view, flags) == ask(mirror, flags), hex(flags)
    if not view.suboffsets and view.format[0] != "T":
        assert mirror.tolist() == view.tolist()
    assert mirror.tobytes() == view.tobytes() and mirror.nbytes == view.nbytes
    with pytest.raises(BufferError):
        view.release()


def test_segment_as_a_buffer():
    seg = shmview.create("seg", 512)
    mirror = memoryview(seg)
    for flags in REQUESTS:
        assert (ask(seg, flags) is None) == (ask(memoryview(bytearray(512)), flags) is None) or flags & FORMAT
    seg.buf[:3] = b"abc"
    assert bytes(mirror[:3]) == b"abc" and mirror.obj is seg
    with pytest.raises(shmview.Busy):
        seg.close()
    other = shmview.attach("seg", readonly=True)
    assert ask(other, WRITABLE) is None
    with open("/dev/zero", "rb") as zero:
        assert zero.readinto(seg.buf) == 512


def test_64_bit_integers_are_exported_as_longs(seg):
    """memoryview compares formats as texts, and numpy's int64 is a long."""
    from_array = array.array("l", [1, -2, 3])
    memoryview(seg.cast("q", 3))[:] = from_array
    assert memoryview(seg.cast("int64", 3)) == from_array and seg.cast("q", 3).tolist() == [1, -2, 3]
    assert memoryview(seg.cast("Q", 3)).format == "L" and seg.cast("l", 3).format == "q"


@pytest.mark.parametrize("size", [4096, 65536])
def test_assignment_between_attachments(size):
    """Attachments of different access have one memory at two addresses, so that these show no overlap."""
    seg = shmview.create("twice", 2 * size)
    other = shmview.attach("twice", readonly=True)
    expected = bytearray(i * 7 % 251 for i in range(2 * size))
    for to, at in (1, 0), (0, 1), (size // 2, 0), (64, 0):
        seg.buf[:] = expected
        seg.buf[to:to + size] = other.buf[at:at + size]
        expected[to:to + size] = expected[at:at + size]
        assert bytes(seg.buf) == expected
    seg.cast("B", (2, size))[:] = [other.buf[1:1 + size], other.buf[:size]]  # one row after the other
    expected[:size] = expected[1:1 + size]
    expected[size:] = expected[:size]
    assert bytes(seg.buf) == expected
