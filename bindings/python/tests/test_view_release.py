# SPDX-License-Identifier: Apache-2.0
"""Releasing a view: which exports keep the view and its segment in use, and what happens if a
release comes in the middle of an access."""

import ctypes
import gc
import tempfile

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


def test_release(seg):
    v = seg.cast("i", 4)
    with pytest.raises(shmview.Busy, match="1 "):
        seg.close()
    m = memoryview(v)
    with pytest.raises(BufferError):
        v.release()
    m.release()
    v.release()
    v.release()
    for use in (lambda: v[0], lambda: len(v), lambda: v.shape, lambda: v.tolist(), lambda: memoryview(v),
                lambda: v.__setitem__(0, 1), lambda: v == seg.buf, lambda: v.cast("B"), lambda: v.T):
        with pytest.raises(ValueError, match="released"):
            use()
    assert repr(v) == "<shmview.View, released>" and v == v
    with seg.buf as w:
        assert len(w) == 4096
    known = seg.cast("i", 4)
    known.address
    known.release()
    with pytest.raises(ValueError, match="released"):
        known[0]
    with pytest.raises(shmview.Busy, match="1 "):
        seg.close()  # a consumer that got the address relies on the object
    del known
    seg.close()


def test_plain_bytes_keep_the_view(seg):
    """numpy.frombuffer() and the like return the buffer at once, and keep only the view."""
    numpy = pytest.importorskip("numpy")
    v = seg.cast("i", 4)
    array = numpy.frombuffer(v, "i")
    assert array.base is v
    v.release()
    with pytest.raises(ValueError):
        v[0]
    del v
    gc.collect()
    with pytest.raises(shmview.Busy, match="1 "):
        seg.close()
    array[1] = 7
    assert seg.buf[4] == 7
    del array
    v = seg.cast("B", 4096)
    with tempfile.TemporaryFile() as file:
        assert file.write(v) == 4096
        file.seek(0)
        assert file.readinto(v) == 4096
    v.release()
    v.release()
    del v
    seg.close()


def test_memoryviews_are_counted(seg):
    v = seg.cast("i", (2, 3))
    m = memoryview(v)
    n = memoryview(m)[1:]
    assert m.obj.view is v and "<buffer of <shmview.View of" in repr(m.obj)
    with pytest.raises(BufferError, match="1 "):
        v.release()
    m.release()
    with pytest.raises(BufferError, match="1 "):
        v.release()
    n.release()
    v.release()
    seg.close()
    with pytest.raises(TypeError):
        shmview._core.Lease()


class Evil:
    """A number whose conversion runs act(), in the middle of an access."""

    def __init__(self, act):
        self.act = act

    def __index__(self):
        self.act()
        return 1

    __float__ = __index__

    def __bool__(self):
        return self.__index__() == 1


def test_releasing_in_the_middle(seg):
    for format in ("i", "Q", "T{i:a:i:b:}", "Zd"):
        v = seg.cast(format, 4)

        def act():
            with pytest.raises(BufferError):
                v.release()
            with pytest.raises(BufferError):
                seg.close()
        evil = Evil(act)
        if format[0] == "T":
            v[0] = (evil, evil)
        elif format != "Zd":
            v[0] = evil
            v[1:3] = [evil, evil]
            v[evil]
            v[evil] = 1
        v.release()


class EvilText(str):
    """A format whose conversion runs act()."""

    def __getitem__(self, i):
        self.act()
        return super().__getitem__(i)


class EvilStruct(ctypes.Structure):
    """A buffer whose conversion runs act(), because a struct may have a dtype of numpy."""

    _fields_ = [("a", ctypes.c_int)]

    @property
    def dtype(self):
        self.act()


@pytest.mark.parametrize("call", [
    lambda v, evil, text, struct: v.cast("B", (evil,)),
    lambda v, evil, text, struct: v.cast(text, 1),
    lambda v, evil, text, struct: v == struct,
    lambda v, evil, text, struct: v.__dlpack__(max_version=(evil, 0)),
    lambda v, evil, text, struct: v.__dlpack__(dl_device=(evil, 0)),
    lambda v, evil, text, struct: v.__dlpack__(copy=evil),
], ids=["shape", "format", "==", "max_version", "dl_device", "copy"])
def test_releasing_in_the_middle_of_a_call(seg, call):
    v, n = seg.cast("B", 1), 0

    def act():
        nonlocal n
        with pytest.raises(BufferError):
            v.release()
        n += 1
    text, struct = EvilText("B"), EvilStruct()
    text.act = struct.act = act
    try:
        call(v, Evil(act), text, struct)
    except BufferError:  # of a device that has no such memory
        pass
    assert n
    v.release()


class EvilGarbage:
    """Garbage whose finalizer runs act()."""

    def __init__(self, act):
        self.act, self.me = act, self

    def __del__(self):
        self.act()


@pytest.mark.parametrize("call", [lambda v: v[0], lambda v: v.tolist(), lambda v: v.__reduce__(), lambda v: v._brief()],
                         ids=["item", "tolist", "reduce", "brief"])
def test_a_collection_in_the_middle_of_a_call(call):
    """Some versions of CPython collect garbage whenever an object is made."""
    with shmview.make(64, "T{i:a:i:b:}", 8) as v:
        expected, ran, thresholds = str(call(v)), [], gc.get_threshold()

        def act():
            ran.append(gc.set_threshold(*thresholds))
            try:
                v.release()
                shmview.trim()
            except BufferError:
                pass
        gc.collect()
        gc.disable()
        EvilGarbage(act)
        gc.set_threshold(1)
        gc.enable()
        try:
            assert str(call(v)) == expected
            gc.collect()
        finally:
            gc.set_threshold(*thresholds)
        assert ran
