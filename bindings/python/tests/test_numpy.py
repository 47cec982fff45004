# SPDX-License-Identifier: Apache-2.0
"""numpy and torch on views: arrays share the bytes of the view without a copy, keep the segment,
and are refused where a type does not exist."""

import gc

import pytest

import shmview

numpy = pytest.importorskip("numpy")
pytestmark = pytest.mark.usefixtures("daemon")

TYPES = ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bool").split()
SHAPES = [((), None, 0), ((5,), None, 1), ((5,), (-2,), 8), ((4, 3), None, 0), ((4, 3), (1, 4), 0),
          ((2, 3, 4), (24, -4, 2), 20), ((0, 3), None, 0)]


@pytest.fixture
def seg():
    seg = shmview.create("seg", 8192)
    seg.buf[:] = bytes(i % 2 for i in range(8192))
    return seg


def views(seg, name):
    size = numpy.dtype(name).itemsize
    for shape, strides, first in SHAPES:
        yield seg.cast(name, shape, strides=strides and [s * size for s in strides], offset=first * size)


def same(array, view, name):
    assert array.dtype == numpy.dtype(name) and array.shape == view.shape
    if array.size:
        assert array.ctypes.data == view.address
        assert all(a == v for a, v, n in zip(array.strides, view.strides, view.shape) if n > 1)
        assert array.tolist() == view.tolist()


@pytest.mark.parametrize("name", TYPES)
def test_arrays(seg, name):
    for view in views(seg, name):
        for array in (numpy.asarray(view), numpy.array(view, copy=False)):
            same(array, view, name)
            assert array.flags.writeable
        if name != "bool" and min(view.strides, default=0) >= 0:  # numpy 1.24's from_dlpack knows no bool
            same(numpy.from_dlpack(view), view, name)
    for dtype in (name, numpy.dtype(name), numpy.dtype(name).type, numpy.dtype(name).str):
        assert numpy.asarray(seg.cast(dtype, 4)).dtype == numpy.dtype(name)


def test_array_interface(seg):
    view = seg.cast("<f4", (3, 4), offset=16)
    told = view.__array_interface__
    assert told == {"version": 3, "typestr": "<f4", "shape": (3, 4), "strides": (16, 4), "data": (view.address, False)}

    class Only:
        def __init__(self, view):
            self.view = view
            self.__array_interface__ = view.__array_interface__
    array = numpy.asarray(Only(view))
    same(array, view, "f4")
    assert not numpy.asarray(Only(view.toreadonly())).flags.writeable
    assert seg.cast(">i2", 2).__array_interface__["typestr"] == ">i2"
    assert seg.cast("5s", 2).__array_interface__["typestr"] == "|S5"
    for view in (seg.cast("T{i:a:}"), seg.cast("bfloat16")):
        assert not hasattr(view, "__array_interface__")


def test_structs(seg):
    dtype = numpy.dtype([("a", "i4"), ("b", "f8", (2, 3)), ("c", "S5"), ("d", [("x", "i2"), ("y", ">f4")])], align=True)
    view = seg.cast(dtype, 4)
    array = numpy.asarray(view)
    assert array.dtype["b"].shape == (2, 3) and array.itemsize == dtype.itemsize == view.itemsize
    array["a"] = range(4)
    array["b"][1] = 2.5
    array["d"]["y"] = [1, 2, 3, 4]
    assert view["a"].tolist() == [0, 1, 2, 3] and view[1][1] == [[2.5] * 3] * 2
    assert view["d"]["y"].tolist() == [1, 2, 3, 4]


def test_the_array_keeps_the_segment(seg):
    view = seg.cast("f4", 4)
    array = numpy.asarray(view)[1:]
    del view
    with pytest.raises(shmview.Busy):
        seg.close()
    array[0] = 5
    assert seg.cast("f4", 4)[1] == 5
    del array
    seg.close()


def test_a_segment_that_nobody_names():
    array = numpy.asarray(shmview.create("seg", 800).cast("d"))
    array[:] = 1
    other = shmview.attach("seg")
    assert other.cast("d").tolist() == [1] * 100


def test_dlpack(seg):
    view = seg.cast("f4", (3, 4))
    assert view.__dlpack_device__() == (1, 0)
    tensor = numpy.from_dlpack(view)
    del view
    gc.collect()
    with pytest.raises(shmview.Busy):
        seg.close()
    seg.cast("f4", (3, 4)).fill(3)  # numpy before version 2 takes tensors as read-only
    address = tensor.ctypes.data
    del seg  # now only the tensor has the memory
    gc.collect()
    assert tensor.tolist() == [[3.0] * 4] * 3 and tensor.ctypes.data == address


def test_dlpack_arguments(seg):
    view = seg.cast("f4", (3, 4))
    assert "dltensor_versioned" in repr(view.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(view.__dlpack__(max_version=(0, 8))) and '"dltensor"' in repr(view.__dlpack__())
    assert "dltensor" in repr(view.__dlpack__(stream=None, max_version=None, dl_device=(1, 0), copy=False))
    for wrong in (dict(stream=1), dict(dl_device=(2, 0)), dict(dl_device=(1, 1))):
        with pytest.raises(BufferError):
            view.__dlpack__(**wrong)
    for wrong in (dict(max_version=1), dict(dl_device=1), dict(max_version=("a", 0)), dict(what=1)):
        with pytest.raises(TypeError):
            view.__dlpack__(**wrong)
    readonly = view.toreadonly()
    with pytest.raises(BufferError):
        readonly.__dlpack__()
    readonly.__dlpack__(max_version=(1, 0))
    for format in ("T{i:a:}", ">i4", "3s", "c", "g"):
        with pytest.raises(BufferError):
            seg.cast(format, 2).__dlpack__()


def test_dlpack_copy(seg):
    view = seg.cast("f4", (3, 4)).T
    view[...] = 2

    class Copied:
        def __dlpack__(self, **_):
            return view.__dlpack__(copy=True)

        def __dlpack_device__(self):
            return (1, 0)
    copy = numpy.from_dlpack(Copied())
    assert copy.tolist() == view.tolist() and copy.ctypes.data != view.address and copy.ctypes.data % 256 == 0
    view[0, 0] = 9
    assert copy[0, 0] == 2
    view.__dlpack__(copy=True, max_version=(1, 0))  # numpy does not accept it
    view.toreadonly().__dlpack__(copy=True)  # the copy is writable
    del view
    seg.close()
    assert copy[0, 0] == 2


def test_dlpack_goes_forward_only(seg):
    view = seg.cast("f4", (3, 4))
    view[...] = 1
    for backwards in view[::-1], view[:, ::-2], view[1:, ::-1]:
        for version in {}, {"max_version": (1, 0)}:
            with pytest.raises(BufferError, match="stride of -"):
                backwards.__dlpack__(**version)
            backwards.__dlpack__(copy=True, **version)
    numpy.from_dlpack(view[:1][::-1]).sum()  # strides do not matter in one row


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_torch(seg, torch):
    view = seg.cast("f4", (3, 4))
    tensor = torch.from_dlpack(view)
    assert tensor.data_ptr() == view.address and tuple(tensor.shape) == (3, 4)
    tensor += 5
    assert view[0, 0] == tensor[0, 0] == 5
    tensor = torch.from_dlpack(view.T)
    assert tensor.stride() == (1, 4)
    assert torch.from_dlpack(view[1, ::2]).data_ptr() == view[1, ::2].address
    assert torch.from_dlpack(numpy.asarray(view)).data_ptr() == view.address


TENSORS = {"b": "int8", "B": "uint8", "h": "int16", "i": "int32", "q": "int64", "e": "float16", "f": "float32",
           "d": "float64", "Zf": "complex64", "Zd": "complex128", "bfloat16": "bfloat16"}
LATER = {"H": "uint16", "I": "uint32", "Q": "uint64", "?": "bool"}  # torch 1.13 has bool only, and imports none


@pytest.mark.parametrize("format", [*TENSORS, *LATER])
def test_torch_types(seg, torch, format):
    view = seg.cast(format, 6)
    view.cast("B")[:] = bytes(i % 2 for i in range(view.nbytes))
    try:
        tensor = torch.from_dlpack(view)
    except RuntimeError as e:
        assert format in LATER and "Unsupported" in str(e)
        return
    assert tensor.dtype == getattr(torch, {**TENSORS, **LATER}[format])
    assert tensor.data_ptr() == view.address and tensor.tolist() == view.tolist()


def test_torch_keeps_the_memory(seg, torch):
    view = seg.cast("f4", 4)
    tensor = torch.from_dlpack(view)
    view[2:] = [3, 0]
    del view
    with pytest.raises(shmview.Busy):
        seg.close()
    part = tensor[2:].clone(), tensor[2:]
    del tensor
    with pytest.raises(shmview.Busy):
        seg.close()
    part[1][1] = 7
    assert seg.cast("f4", 4)[3] == 7 and part[0].tolist() == [3, 0]
    del part
    seg.close()


def test_torch_refuses(seg, torch):
    view = seg.cast("f4", 4)
    for refused in view[::-1], seg.cast(">i4", 2), seg.cast("T{i:a:}", 2):
        with pytest.raises(BufferError):
            torch.from_dlpack(refused)


def test_torch_and_a_readonly_view(seg, torch):
    view = seg.cast("f4", 4)
    try:
        tensor = torch.from_dlpack(view.toreadonly())  # from torch 2.14 on
    except BufferError:
        return
    view[:] = [1, 2, 7, 4]
    assert tensor.tolist() == [1, 2, 7, 4]
    del tensor


def test_assigning_arrays(seg):
    view = seg.cast("f4", (3, 4))
    array = numpy.arange(12.0).reshape(3, 4)
    view[...] = array
    assert view == array and view.tolist() == array.tolist()
    view[:, ::2] = array[:, 1::2]
    view[1] = numpy.float32(7)
    view[2, 3] = numpy.float64(1.5)
    view[0, 0] = numpy.int16(3)
    assert view[1].tolist() == [7] * 4 and view[2, 3] == 1.5 and view[0, 0] == 3
    integers = seg.cast("i2", 4)
    integers[numpy.int64(2)] = numpy.uint8(200)
    assert integers[numpy.int8(2)] == 200
    with pytest.raises(shmview.ConversionError):
        integers[:] = numpy.array([1, 2, 3, 40000])
    integers[:] = numpy.frombuffer(b"\0" + b"\1\0" * 4, "i2", offset=1)  # not aligned
    assert integers.tolist() == [1] * 4
    assert (numpy.asarray(view) + 1).shape == (3, 4) and numpy.add(view, view).shape == (3, 4)


@pytest.mark.parametrize("dtype", [*TYPES, ">f8", ">i2", "S3"])
@pytest.mark.parametrize("source", [*TYPES, ">f8", ">i2", "S3"])
def test_assign_every_type(dtype, source):
    """Equal types without gaps are copied as bytes; others are converted, or refused."""
    view, expected = shmview.zeros((3, 4), dtype), numpy.zeros((3, 4), dtype)
    array = (numpy.arange(12).reshape(3, 4) % 2).astype(source)
    if "complex" in source and "complex" not in dtype:
        array, source = array.real, "float64"
    if (dtype == "S3") != (source == "S3"):
        with pytest.raises((TypeError, ValueError)):
            view[:] = array
        return
    for key, value in ((slice(None), array), (1, array[0]), (slice(0, 2), array[1:]), (slice(None), array[::-1]),
                       ((slice(None), slice(None, None, 2)), array[:, 1::2]), (slice(None), array[2:]),
                       (slice(None), array.reshape(4, 3).T), (slice(0, 0), array[:0])):
        view[key] = value
        expected[key] = value
        assert (view.array == expected).all(), key
    with pytest.raises(ValueError):
        view[:] = array.reshape(12)


def test_no_leak(seg, no_leak):
    view = seg.cast("f4", (3, 4))

    def use():
        numpy.asarray(view)[0, 0] = 1
        numpy.from_dlpack(view).sum()
        view.__dlpack__(copy=True)
        view.__dlpack__(max_version=(1, 0))
        view[...] = numpy.ones((3, 4))
        view.__array_interface__
    no_leak(use)
