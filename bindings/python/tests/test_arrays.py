# SPDX-License-Identifier: Apache-2.0
"""One call for one array: array(), zeros(), ones(), empty(), full(), and attach_array() in another process."""

import array
import gc

import pytest

import shmview

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("daemon")

RECORD = numpy.dtype([("x", "f4"), ("flag", "i1")])
ARRAYS = [numpy.arange(6, dtype="i2").reshape(2, 3), numpy.arange(12.0).reshape(3, 4)[::2, ::-1], numpy.float32(2.5),
          numpy.array(3), numpy.zeros((0, 3)), numpy.array([(1.5, 2), (2.5, -3)], RECORD), numpy.array([1 + 2j, 3]),
          numpy.array([b"abc", b"d"]), numpy.arange(3, dtype=">i4"), numpy.array([True, False]),
          numpy.asfortranarray(numpy.arange(6).reshape(2, 3))]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("source", ARRAYS, ids=repr)
def test_an_array_of_numpy(source, order):
    view = shmview.array(source, order=order)
    expected = numpy.array(source, order=order)
    assert view.array.dtype == expected.dtype and view.array.tolist() == expected.tolist()
    assert view.shape == expected.shape and (0 in view.shape or view.strides == expected.strides)
    assert view.nbytes == 0 or numpy.shares_memory(view.array, numpy.frombuffer(view.segment.buf, "u1"))


@pytest.mark.parametrize("source", [b"abc", bytearray(b"xyz"), memoryview(b"a"), array.array("d", [1, 2.5]),
                                    array.array("i", [-1])], ids=repr)
def test_a_buffer_needs_no_numpy(run, source):
    text = repr(bytes(source) if isinstance(source, memoryview) else source)
    assert shmview.array(source).tolist() == memoryview(source).tolist()
    assert run("import sys; from array import array; sys.modules['numpy'] = None\nimport shmview\n"
               f"print(shmview.array({text}).tolist())") == f"{memoryview(source).tolist()}\n"
    view = shmview.array(shmview.array([1, 2, 3]))
    assert view.tolist() == [1, 2, 3]


def test_lists_and_types():
    assert shmview.array([[1, 2], [3, 4]]).array.tolist() == [[1, 2], [3, 4]]
    view = shmview.array([1.7, -2.2], "i4")
    assert (view.format, view.tolist()) == ("i", numpy.array([1.7, -2.2]).astype("i4").tolist())
    assert shmview.array(range(3), dtype=RECORD["x"]).tolist() == [0, 1, 2]
    for source in ([object()], ["abc"], [[1], [1, 2]]):
        with pytest.raises((TypeError, ValueError)):
            shmview.array(source, name="refused")
    shmview.array([1], name="refused")  # the failure left no segment


def test_zeros_ones_full_empty():
    assert shmview.zeros(3).array.tolist() == shmview.empty(3).array.tolist() == [0, 0, 0]
    assert shmview.ones((2, 2), "i2").array.tolist() == [[1, 1], [1, 1]]
    assert [shmview.full(2, value).format for value in (7, 0.5, True, 1j)] == ["q", "d", "?", "Zd"]
    assert shmview.full((2, 2), [1, 2]).array.tolist() == [[1, 2], [1, 2]]
    assert shmview.zeros((), "f4").item() == 0 and shmview.zeros((0, 3)).shape == (0, 3)
    assert shmview.zeros((2, 3), "f4", "F").array.flags.f_contiguous
    assert shmview.zeros(2, numpy.dtype(("f4", (3,)))).shape == (2, 3)
    with pytest.raises(shmview.ConversionError):
        shmview.full(2, 300, "i1", name="refused")
    with pytest.raises(ValueError):
        shmview.zeros(2, order="K")
    shmview.zeros(1, name="refused")


@pytest.mark.parametrize("value, dtype", [
    (numpy.int64(300), "u1"), (numpy.array([1, -1]), "u2"), ([1.5, 2.9], "i4"),
    (numpy.float32(1.5), "i4"), ([1j, 2], "f8"), (["1"], "i4"), ([b"abcdef", b"a"], "S3"),
    (numpy.array((1, 2.5), [("a", "i8"), ("b", "f8")]), [("a", "i8"), ("b", "i8")])], ids=repr)
def test_full_keeps_values(value, dtype):
    dtype = numpy.dtype(dtype)
    for shape in (2, (3, 2)) + ((),) * (numpy.ndim(value) == 0):
        with pytest.raises((shmview.ConversionError, shmview.FormatError, TypeError)):
            shmview.full(shape, value, dtype, name="refused")
        assert not shmview.exists("refused")


def test_full_converts():
    for value, dtype in ((numpy.int64(200), "u1"), ([1.0, 2.0], "i4"), ([0.1, 1e10], "f4"), ([1 + 0j, 2], "f8"),
                         ([b"abc", b"d"], "S5"), (numpy.float64(7), ">i2"), (numpy.array((1, 2.0), RECORD), "f4,i4")):
        for shape in (2, (3, 2)) + ((),) * (numpy.ndim(value) == 0):
            expected = numpy.full(shape, value, dtype)
            view = shmview.full(shape, value, numpy.dtype(dtype))
            assert view.array.dtype == expected.dtype and view.array.tolist() == expected.tolist()


def test_the_last_view_ends_it():
    view = shmview.zeros(10, name="shared")
    array = view.array
    del view
    array[3] = 7  # numpy's array keeps the memory
    assert shmview.attach_array("shared").array[3] == 7
    del array
    gc.collect()
    with pytest.raises(shmview.NotFound):
        shmview.attach_array("shared")


def test_another_process(run):
    view = shmview.array(numpy.arange(6.0).reshape(2, 3), name="shared")
    assert run("""
import shmview
view = shmview.attach_array("shared")
with view.segment.locked():
    view.array[1, 2] = 50
try:
    shmview.attach_array("shared", readonly=True).array[0] = 1
except ValueError:
    print("read-only", view.array.shape, view.array.sum())
""") == "read-only (2, 3) 60.0\n"
    assert view[1, 2] == 50


def test_attach_array_needs_one_view():
    one = shmview.create("one", c={"A": ("i4", 3)})  # also if another call has created it
    two = shmview.create("two", c={"A": "i4", "B": "f4"}, d={"A": "i8"})
    none = shmview.create("none", 10)
    assert shmview.attach_array("one").shape == (3,)
    for seg, text in ((two, "3 views ('A' of 'c', 'B' of 'c', 'A' of 'd')"), (none, "0 views (none)")):
        with pytest.raises(LookupError, match="use attach") as caught:
            shmview.attach_array(seg.name)
        assert text in str(caught.value)
    for seg in (one, two, none):
        seg.close()


def test_attach_array_waits_for_the_array(monkeypatch):
    """With a timeout, a segment that has no view yet is no error."""
    seg = shmview.create("late", 80)
    with pytest.raises(LookupError):
        shmview.attach_array("late")
    with pytest.raises(LookupError):
        shmview.attach_array("late", timeout=0.01)
    monkeypatch.setattr("time.sleep", lambda _: seg.define(numbers={"numbers": ("f8", 10)}))
    assert shmview.attach_array("late", timeout=60).shape == (10,)
    seg.close()


def test_elements_are_there_when_the_lock_is_free():
    class Number:
        def __float__(self):
            other = shmview.attach_array("filled")
            free.append(other.segment.trylock())
            return 7.0
    free = []
    view = shmview.full(2, numpy.array(Number(), dtype=object), "f8", name="filled")
    assert free and not any(free) and view.tolist() == [7, 7]
    assert view.segment.trylock()
    view.segment.unlock()
