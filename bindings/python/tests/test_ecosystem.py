# SPDX-License-Identifier: Apache-2.0
"""Views as arguments of other packages: the values, the type and the memory arrive unchanged, or the
package refuses the view. Packages that are not installed are skipped; numpy stands for them, with
objects that offer only one of the protocols that the packages ask for."""

import sys
import types

import pytest

import shmview

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("daemon")

# Formats that numpy has, and those that it does not have.
KNOWN = ("b B h H i I q Q e f d ? c 5s Zf Zd g >h >q >e >d >Zf <i (3)f (2,3)>h T{i:a:d:b:} T{<h:a:>h:b:} "
         "T{3x<i:a:} T{i:a:T{b:x:2xH:y:}:n:} T{>Zf:z:5s:s:} T{i:a:(2,2)d:m:}").split()
UNKNOWN = "P 5p T{P:a:} T{5p:a:}".split()
OF_ML_DTYPES = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]


@pytest.fixture
def seg(daemon):
    seg = shmview.create("seg", 4096, one={"A": ("f4", 2)}, two={"A": ("f4", 2)})
    seg.buf[:] = bytes(i * 7 % 113 for i in range(4096))
    return seg


# --- dtype -------------------------------------------------------------------

@pytest.mark.parametrize("format", KNOWN)
def test_dtype(seg, format):
    view = seg.cast(format, 3)
    assert isinstance(view.dtype, numpy.dtype) and view.dtype.itemsize == view.itemsize
    assert view[1:].T.dtype == view.dtype == seg.cast(view.dtype, 1).dtype
    assert numpy.frombuffer(view, view.dtype).tobytes() == numpy.asarray(view).tobytes() == view.tobytes()


@pytest.mark.parametrize("format", UNKNOWN + OF_ML_DTYPES)
def test_no_dtype(seg, format, monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    view = seg.cast(format, 3)
    for use in lambda: view.dtype, lambda: view.array, lambda: view.__array__():
        with pytest.raises(TypeError, match="no dtype for format '" + format.split("{")[0]):
            use()
    for use in numpy.asarray, numpy.array, lambda v: numpy.add(v, 1):
        with pytest.raises(ValueError):
            use(view)


@pytest.mark.parametrize("format", OF_ML_DTYPES)
def test_ml_dtypes(seg, format, monkeypatch):
    """A stand-in for the package: a type of the right size."""
    size = seg.cast(format, 1).itemsize
    kind = numpy.dtype([("bits", f"u{size}")])
    monkeypatch.setitem(sys.modules, "ml_dtypes", types.SimpleNamespace(**{format: kind}))
    view = seg.cast(format, (2, 3))
    assert view.dtype == kind and view.array.shape == (2, 3) and view.array.ctypes.data == view.address
    view.array["bits"] = 0
    assert not any(view.tobytes()) and not view.toreadonly().array.flags.writeable
    turned = view.T[::-1, 1:].array
    turned["bits"] = 1
    assert numpy.shares_memory(turned, view.array) and view.array["bits"].tolist() == [[0] * 3, [1] * 3]
    del view
    with pytest.raises(shmview.Busy):
        seg.close()
    del turned
    seg.close()


def test_dtype_of_any_view(seg):
    """The type can be asked for when the elements cannot be read."""
    with seg.locked():
        seg.switch("one")
        view = seg["A"]
        seg.switch("two")
    assert view.stale and view.dtype == "f4"
    assert seg.cast("i2", (2, 3), strides=(8, 2), suboffsets=(0, -1)).dtype == "i2"
    assert seg.cast("i2", (0, 3)).dtype == seg.cast("i2", ()).dtype == "i2"
    view.release()
    with pytest.raises(ValueError, match="released"):
        view.dtype


def test_without_numpy(run, daemon):
    run("""if True:
        import sys
        sys.modules["numpy"] = None
        import shmview
        view = shmview.create("other", 64).cast("i4", 3)
        for use in lambda: view.dtype, lambda: view.array, lambda: view.__array__():
            try:
                use()
                raise AssertionError
            except ImportError:
                pass
        assert shmview.array(view).tolist() == [0, 0, 0] and "[0, 0, 0]" in repr(view)""")


# --- __array__() -------------------------------------------------------------

class Only:
    """Has none of a view's protocols but __array__()."""

    def __init__(self, view):
        self.view = view

    def __array__(self, *args, **kwargs):
        return self.view.__array__(*args, **kwargs)


@pytest.mark.parametrize("view", [lambda s: s.cast("f4", 6), lambda s: s.cast("i2", (3, 4)).T,
                                  lambda s: s.cast(">i4", 9)[::-2], lambda s: s.cast("T{i:a:d:b:}", 3),
                                  lambda s: s.cast("i4", ()), lambda s: s.cast("d", (0, 3))])
def test_array(seg, view):
    view = view(seg)
    expected = numpy.asarray(view)

    def equal(array):
        return array.dtype == expected.dtype and array.shape == expected.shape and (array == expected).all()
    for array in view.__array__(), view.__array__(view.dtype), view.__array__(copy=False), numpy.asarray(Only(view)):
        assert equal(array) and (not array.size or array.ctypes.data == expected.ctypes.data)
        assert array.strides == expected.strides
    for array in view.__array__(copy=True), view.__array__(None, True), numpy.array(Only(view)):
        assert equal(array) and not numpy.shares_memory(array, expected)
    assert view.__array__().flags.writeable and not view.toreadonly().__array__().flags.writeable
    assert view.toreadonly().__array__(copy=True).flags.writeable


def test_array_of_another_type(seg):
    view = seg.cast("i2", 4)
    for dtype in "f8", numpy.float64, numpy.dtype(">i2"):
        array = view.__array__(dtype)
        assert array.dtype == dtype and array.tolist() == view.tolist()
        with pytest.raises(ValueError, match="copy=False"):
            view.__array__(dtype, copy=False)
    assert numpy.asarray(Only(view), dtype="f4").dtype == "f4"
    with pytest.raises(TypeError):
        view.__array__("no such type")


def test_array_of_rows(seg):
    """numpy has no suboffsets, so only a copy can have the elements."""
    seg.cast("u8", 2)[:] = [64, 96]
    view = seg.cast("i4", (2, 3), strides=(8, 4), suboffsets=(0, -1))
    for array in view.__array__(), view.__array__(copy=True), numpy.asarray(Only(view)):
        assert array.tolist() == view.tolist() and array.dtype == "i4" and array.flags.writeable
    with pytest.raises(ValueError, match="suboffsets"):
        view.__array__(copy=False)
    with pytest.raises(TypeError, match="suboffsets"):
        view.array
    for use in numpy.asarray, numpy.frombuffer:
        with pytest.raises((BufferError, ValueError)):
            use(view)


def test_unusable_views(seg):
    with seg.locked():
        seg.switch("one")
        view = seg["A"]
        seg.switch("two")
    for use in (numpy.asarray, numpy.array, lambda v: v.array, lambda v: v.__array__(),
                lambda v: v.__array__("i2", copy=True)):
        with pytest.raises(shmview.StaleViewError):
            use(view)
    view.release()
    for use in lambda v: v.array, lambda v: v.__array__():
        with pytest.raises(ValueError, match="released"):
            use(view)


@pytest.mark.skipif(numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0", reason="numpy 2's copy=")
def test_numpy_2(seg):
    view = seg.cast("f4", 6)
    assert numpy.shares_memory(numpy.asarray(view, copy=False), view.array)
    assert not numpy.shares_memory(numpy.asarray(view, copy=True), view.array)
    for source in view, Only(view):
        with pytest.raises(ValueError):
            numpy.asarray(source, dtype="f8", copy=False)


# --- Each package ------------------------------------------------------------

def test_pandas(seg):
    pandas = pytest.importorskip("pandas")
    v, m = seg.cast("i2", 6), seg.cast("f4", (3, 4), offset=64)
    v[:], m[...] = range(6), numpy.arange(12).reshape(3, 4)
    series = pandas.Series(v)
    assert series.dtype == "int16" and series.tolist() == v.tolist() and numpy.shares_memory(series.values, v.array)
    assert pandas.Series(v[::-2]).tolist() == [5, 3, 1] and pandas.Index(v).tolist() == v.tolist()
    for view in v, m, m.T, v[::2], v.toreadonly():
        frame = pandas.DataFrame(view)
        assert set(frame.dtypes) == {view.dtype} and (frame.values.reshape(view.shape) == view.array).all()
    assert pandas.DataFrame({"x": v, "y": v[::-1]})["y"].tolist() == v.tolist()[::-1]
    records = seg.cast("T{i:a:d:b:}", 3, offset=256)
    records["a"], records["b"] = [1, 2, 3], [.5, 1.5, 2.5]
    frame = pandas.DataFrame(records.array)  # it looks for fields only in arrays of numpy
    assert frame["a"].tolist() == [1, 2, 3] and frame["b"].tolist() == [.5, 1.5, 2.5]
    for use in pandas.Series, pandas.DataFrame, pandas.Index:
        with pytest.raises((TypeError, ValueError)):
            use(seg.cast("bfloat16", 3))


def test_xarray(seg):
    xarray = pytest.importorskip("xarray")
    view = seg.cast("i2", (3, 4))
    array = xarray.DataArray(view, dims=("x", "y"))
    assert array.dtype == "int16" and numpy.shares_memory(array.values, view.array)
    assert array.sum("x").values.tolist() == view.array.sum(0).tolist()
    with pytest.raises((TypeError, ValueError)):
        xarray.DataArray(seg.cast("bfloat16", 3))


TENSORS = ("b", "B", "h", "i", "q", "e", "f", "d", "Zf", "Zd", "bfloat16", "H", "I", "Q", "?")


@pytest.mark.parametrize("format", TENSORS)
def test_torch(seg, format):
    """as_tensor() and tensor() take a view as what it is, or refuse it. torch 1 takes a view as the
    list of its numbers, of which it makes float32 or int64."""
    torch = pytest.importorskip("torch")
    view = seg.cast(format, (2, 3))
    seg.buf[:] = bytes(i % 2 for i in range(4096))
    for use in torch.as_tensor, torch.tensor, torch.from_dlpack:
        try:
            tensor = use(view)
        except (RuntimeError, TypeError, BufferError):
            continue
        expected = view.tolist()
        if use is not torch.from_dlpack and torch.__version__.startswith("1."):
            expected = use(expected).tolist()
        assert tensor.tolist() == expected and tuple(tensor.shape) == view.shape, use


def test_torch_refuses(seg):
    torch = pytest.importorskip("torch")
    for view in seg.cast(">i4", 3), seg.cast("T{i:a:}", 3), seg.cast("i4", 4)[::-1]:
        # to torch 1 a struct is a row
        expected = [list(x) if isinstance(x, tuple) else x for x in view.tolist()]
        for use in torch.as_tensor, torch.tensor:
            try:
                assert use(view).tolist() == expected
            except (BufferError, RuntimeError, TypeError, ValueError):
                pass


def test_torch_asarray(seg):
    """torch.asarray() takes plain bytes of any buffer, like numpy.frombuffer(): the pages warn of it.
    With the dtype it is right, and a view with gaps is refused."""
    torch = pytest.importorskip("torch")
    view = seg.cast("i4", 4)
    assert torch.asarray(view, dtype=torch.int32).tolist() == view.tolist()
    assert torch.asarray(view.array).tolist() == view.tolist()
    with pytest.raises(RuntimeError):
        torch.asarray(view[::2])


def test_polars(seg):
    polars = pytest.importorskip("polars")
    for view in seg.cast("i2", 6), seg.cast("d", 6)[::-2]:
        series = polars.Series(view)
        assert series.to_list() == view.tolist() and str(series.dtype) == {"h": "Int16", "d": "Float64"}[view.format]
    for view in seg.cast("?", 4), seg.cast("bfloat16", 4):
        with pytest.raises(TypeError):
            polars.Series(view)


def test_pyarrow(seg):
    pyarrow = pytest.importorskip("pyarrow")
    for view in seg.cast("i2", 6), seg.cast("d", 6)[::-2], seg.cast("?", 4), seg.cast("bfloat16", 4):
        assert pyarrow.array(view).to_pylist() == view.tolist()
    assert pyarrow.array(seg.cast("i2", 6)).type == pyarrow.int16()


def test_sequences_of_views(seg):
    """A view in a list is one entry, and numpy stacks them."""
    v = seg.cast("i2", 6)
    assert numpy.stack([v[:3], v[3:]]).tolist() == [v[:3].tolist(), v[3:].tolist()]
    assert numpy.concatenate([v, v[::-1]]).tolist() == v.tolist() + v.tolist()[::-1]
    assert (numpy.ones(6) + v).tolist() == [x + 1 for x in v] == (v + numpy.ones(6)).tolist()
    n = seg.cast("i2", ())
    assert numpy.zeros(3)[n % numpy.int64(3)] == 0 and numpy.mean(v) == sum(v) / 6
