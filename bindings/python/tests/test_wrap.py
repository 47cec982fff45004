# SPDX-License-Identifier: Apache-2.0
"""wrap(): views of memory that another object owns."""

import array
import ctypes
import gc
import mmap
import pickle
import threading
import weakref

import pytest

import shmview
from test_dlpack_import import Managed, api

pytestmark = pytest.mark.usefixtures("daemon")


USED = b"used_dltensor"  # a capsule borrows its name


class Owner(bytearray):
    """A bytearray that can be observed by a weak reference."""


def test_the_same_memory():
    owner = bytearray(b"abcdef")
    view = shmview.wrap(owner)
    assert (view.format, view.shape, view.readonly) == ("B", (6,), False)
    view[0] = ord("x")
    owner[5] = ord("y")
    assert bytes(view) == b"xbcdey" == bytes(owner)
    with pytest.raises(BufferError):
        owner.append(1)  # the buffer is out
    view.release()
    owner.append(1)


@pytest.mark.parametrize("buffer", [array.array("d", [1.5, 2]), (ctypes.c_int * 3)(1, 2, 3), b"bytes",
                                    memoryview(bytearray(range(12))).cast("H", (2, 3)),
                                    memoryview(bytearray(range(12)))[10:1:-3], mmap.mmap(-1, 10), bytearray()],
                         ids=lambda buffer: type(buffer).__name__)
def test_buffers(buffer):
    view, expected = shmview.wrap(buffer), memoryview(buffer)
    if expected.format == "<i":  # memoryview cannot read it, and exports of ctypes have it
        expected = expected.cast("B").cast("i")
    assert view.tolist() == expected.tolist() and view.shape == expected.shape
    assert view.readonly == expected.readonly and view == buffer
    assert 0 in view.shape or view.strides == expected.strides
    del expected


def test_arrays_of_numpy():
    numpy = pytest.importorskip("numpy")
    source = numpy.arange(12, dtype="i4").reshape(3, 4)[::-1, 1::2]
    view = shmview.wrap(source)
    assert view.tolist() == source.tolist() and numpy.shares_memory(view.array, source)
    view[0, 0] = 100
    assert source[0, 0] == 100
    source.flags.writeable = False
    assert shmview.wrap(source).readonly
    record = numpy.zeros(3, numpy.dtype([("x", "f4"), ("n", "i4")]))
    shmview.wrap(record)["n"][:] = [1, 2, 3]
    assert record["n"].tolist() == [1, 2, 3]
    assert shmview.wrap(numpy.array(2.5)).item() == 2.5


def test_fields_that_are_aligned_in_memory_that_is_not():
    numpy = pytest.importorskip("numpy")
    packed = numpy.dtype([("h", "<u4"), ("x", "<f8"), ("t", "<u4")])
    memory = bytearray(52)
    start = 4 - ctypes.addressof(ctypes.c_char.from_buffer(memory)) % 8
    start += 8 if start < 0 else 0
    array = numpy.frombuffer(memory, packed, count=2, offset=start)
    view = shmview.wrap(array)["x"]
    view[1] = 2.5
    assert view.T.tolist() == view[:].tolist() == array["x"].tolist() == [0, 2.5]


def test_a_format():
    owner = bytearray(24)
    view = shmview.wrap(owner, "i4", (2, 3))
    view[1, 2] = 7
    assert owner[20] == 7
    assert shmview.wrap(owner, float).shape == (3,)
    with pytest.raises(shmview.IllSized):
        shmview.wrap(bytearray(7), "i4")
    read = shmview.wrap(owner, "i4", readonly=True)
    with pytest.raises(shmview.ReadOnly):
        read[0] = 1
    assert read.segment.access == "read" and view.segment.access == "write"


def test_the_object_lives_as_long_as_its_memory_is_used():
    numpy = pytest.importorskip("numpy")
    owner = Owner(b"abcd")
    seen = weakref.ref(owner)
    view = shmview.wrap(owner)
    part, array = view[1:], view.array
    del owner, view
    assert seen() is not None and part.tolist() == [98, 99, 100]
    del part
    assert array.tolist() == [97, 98, 99, 100] and seen() is not None
    tensor = numpy.from_dlpack(shmview.wrap(seen()))
    del array
    gc.collect()
    assert tensor.tolist() == [97, 98, 99, 100] and seen() is not None
    del tensor  # ends after the Segment
    assert seen() is None


def test_the_end_of_a_tensor_in_another_thread():
    numpy = pytest.importorskip("numpy")
    owner = Owner(b"abcd")
    seen = weakref.ref(owner)
    tensors = [numpy.from_dlpack(shmview.wrap(owner))]
    del owner
    thread = threading.Thread(target=tensors.clear)
    thread.start()
    thread.join()
    assert seen() is None


@pytest.mark.parametrize("in_thread", [False, True])
def test_the_end_of_a_tensor_without_the_interpreter_lock(in_thread):
    """ctypes calls the deleter without it, also in a thread that Python does not know."""
    owner = Owner(b"abcd")
    seen = weakref.ref(owner)
    capsule = shmview.wrap(owner).__dlpack__()
    del owner
    address = api.PyCapsule_GetPointer(capsule, b"dltensor")
    api.PyCapsule_SetName(capsule, USED)  # as a consumer does, which owns the tensor then
    deleter = ctypes.cast(Managed.from_address(address).deleter, ctypes.c_void_p).value
    assert seen() is not None
    if in_thread:
        thread, libc = ctypes.c_ulong(), ctypes.CDLL(None)
        assert libc.pthread_create(ctypes.byref(thread), None, ctypes.c_void_p(deleter), ctypes.c_void_p(address)) == 0
        assert libc.pthread_join(thread, None) == 0
    else:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(address)
    assert seen() is None


def test_closing():
    owner = Owner(b"abcd")
    seen = weakref.ref(owner)
    view = shmview.wrap(owner)
    seg = view.segment
    assert repr(seg) == "<shmview.Segment of another object's memory>" and seg.connection is None
    assert repr(seg.buf[:2]).startswith("<shmview.View of another object's memory, format 'B', shape (2,): ")
    assert "<svg" in seg._repr_html_() and "<svg" in seg.buf._repr_html_()
    with pytest.raises(shmview.Busy):
        seg.close()
    view.release()
    seg.close()
    del owner
    assert seen() is None and seg.closed
    assert repr(seg) == "<shmview.Segment of another object's memory, closed>"
    with shmview.wrap(bytearray(4)) as view:
        with view.segment as seg:
            pass
        assert seg.closed and view[0] == 0  # the view still has the memory
    with pytest.raises(ValueError, match="released"):
        view[0]


def test_no_lock_and_no_daemon():
    seg = shmview.wrap(bytearray(8)).segment
    assert (seg.name, seg.size) == ("", 8) and seg.cast("i4").shape == (2,)
    for call in (seg.lock, seg.trylock, seg.notify, seg.lock_status, seg.reading().__enter__,
                 seg.locked().__enter__, lambda: seg.switch("x"), lambda: seg.phase, lambda: seg.wait(timeout=0)):
        with pytest.raises(shmview.NoLock):
            call()
    for call in (seg.remove, lambda: seg.layouts, lambda: seg.entrust(1), lambda: seg.define(x={"a": "f4"}),
                 lambda: seg.mode, lambda: seg.set_access(mode=0o600), lambda: pickle.dumps(seg),
                 lambda: pickle.dumps(seg.buf), lambda: seg.view("A")):
        with pytest.raises((shmview.Invalid, shmview.NoLock)):
            call()


def test_no_daemon_is_needed(run, monkeypatch):
    monkeypatch.setenv("SHMVIEW_SOCKET", "/nonexistent/socket")
    assert run("""
import shmview
view = shmview.wrap(bytearray(b"abc"))
view[1:] = b"xy"
print(bytes(view), view.summary().max)
""") == "b'axy' 121\n"


def test_refusals():
    for wrong in (3, "text", None, [1, 2]):
        with pytest.raises(TypeError):
            shmview.wrap(wrong)
    numpy = pytest.importorskip("numpy")
    for wrong in (numpy.array(["abc"]), numpy.array([None])):
        with pytest.raises((shmview.FormatError, ValueError)):
            shmview.wrap(wrong)
    owner = bytearray(3)
    with pytest.raises(shmview.IllSized):
        shmview.wrap(owner, "i4")
    owner.append(1)  # nothing keeps it


def test_a_subinterpreter():
    interpreters = pytest.importorskip("_xxsubinterpreters")
    interpreter = interpreters.create()
    interpreters.run_string(interpreter, """
import shmview
owner = bytearray(b"abc")
view = shmview.wrap(owner)
view.release()
owner.append(1)
""")
    interpreters.destroy(interpreter)


def test_objects_at_exit(run):
    assert run("""
import shmview, sys
class Owner(bytearray):
    pass
view = shmview.wrap(Owner(b"abc"))
sys.keep = shmview.wrap(Owner(b"abc"))
try:
    import numpy
    sys.tensor = numpy.from_dlpack(shmview.wrap(Owner(b"abc")))
except ImportError:
    pass
print("done")
""") == "done\n"


def test_no_leak(no_leak):
    owner = bytearray(100)

    def use():
        view = shmview.wrap(owner, "i4")
        view[0] = 1
        try:
            shmview.wrap(owner, "no format")
        except ValueError:
            pass
    no_leak(use)
