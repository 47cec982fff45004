# SPDX-License-Identifier: Apache-2.0
"""Structured dtypes: a view that is made with a dtype has numpy's offsets, size and values, or the dtype is refused.
Random dtypes are packed, aligned or have explicit offsets, which may overlap; they nest, have arrays, both byte orders
and titles."""

import random

import numpy
import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")

SCALARS = ["i1", "u1", "<i2", ">i2", "=u2", "<i4", ">u4", "<i8", ">i8", "f2", ">f2", "<f4", ">f4", "<f8", ">f8",
           "<c8", ">c8", "<c16", "?", "S1", "S5", "g", "G"]
BYTES = 1 << 16


def any_dtype(choose, depth=0):
    kind = choose.random()
    if depth < 3 and kind < (0.25 if depth else 0.8):
        return any_struct(choose, depth)
    if depth < 4 and kind > 0.85:
        return numpy.dtype((any_dtype(choose, depth + 1), tuple(choose.choices((1, 2, 3), k=choose.randint(1, 2)))))
    return numpy.dtype(choose.choice(SCALARS))


def any_struct(choose, depth):
    fields = {f"f{i}": any_dtype(choose, depth + 1) for i in range(choose.randint(1, 4))}
    form = choose.choice(["packed", "aligned", "packed", "aligned", "gaps", "gaps", "any", "titles"])
    if form in ("packed", "aligned"):
        return numpy.dtype(list(fields.items()), align=form == "aligned")
    if form == "titles":
        return numpy.dtype([((f"title of {name}", name), dtype) for name, dtype in fields.items()])
    offsets, at = [], 0
    for dtype in fields.values():
        offsets.append(choose.randint(0, 24) if form == "any" else at + choose.choice([0, 0, 1, 3, 4]))
        at = max(at, offsets[-1] + dtype.itemsize)
    return numpy.dtype({"names": list(fields), "formats": list(fields.values()), "offsets": offsets,
                        "itemsize": at + choose.choice([0, 0, 1, 4])})


def plain(value):
    """Returns the value as text, with lists for arrays, because NaNs do not compare equal."""
    if isinstance(value, tuple):
        return f"({', '.join(map(plain, value))})"
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, bytes):
        return repr(value.rstrip(b"\0"))  # numpy cuts zeros off
    return repr(float(value) if isinstance(value, numpy.longdouble) else complex(value)
                if isinstance(value, numpy.clongdouble) else value)


def compare(view, array, dtype):
    """Compares a view with numpy's array of the same memory: all elements, each element, each field."""
    assert plain(view.tolist()) == plain(array.tolist() if view.ndim == array.ndim else [(x,) for x in array.tolist()])
    if view.ndim == array.ndim:
        for i in range(len(array)):
            assert plain(view[i]) == plain(array[i].item() if array.ndim == 1 else array[i]), dtype
    for name in dtype.names or ():
        field, other = view[name], array[name]
        seen = numpy.asarray(field)
        assert seen.__array_interface__["data"] == other.__array_interface__["data"] or not seen.size, dtype
        assert (seen.dtype, seen.shape, seen.strides) == (other.dtype, other.shape, other.strides), dtype
        # numpy's dtypes of structs know whether they are aligned; a format does not have that
        assert seen.flags.aligned == other.flags.aligned or other.dtype.names, dtype
        if field.ndim == 1:
            compare(field, other, dtype[name])
        else:
            assert plain(field.tolist()) == plain(other.tolist())


def assign(choose, view, array, dtype):
    """Assigns random records in one of the forms that numpy accepts."""
    values = numpy.frombuffer(choose.randbytes(3 * dtype.itemsize), dtype, 3)
    if dtype.subdtype:
        view.field(None)[:] = values
    elif dtype.names is None:
        view[:] = values
    else:
        form = choose.randrange(5)
        if form == 0:
            view[:] = values
        elif form == 1:
            for i in range(3):
                view[i] = values[i]
        elif form == 2:
            view[:] = values.tolist()
        elif form == 3:
            for name in dtype.names:
                view[name] = values[name] if view[name].ndim == 1 or dtype[name].base.names is None \
                    else values[name].tolist()
        else:
            view[:] = values.astype(repacked(dtype))
    array_after = numpy.asarray(view)
    assert plain(array_after.tolist()) == plain(values.tolist()), dtype


def repacked(dtype):
    """Returns the dtype with the same values in other places, as another program could have them."""
    if dtype.subdtype:
        return numpy.dtype((repacked(dtype.subdtype[0]), dtype.subdtype[1]))
    if dtype.names is None:
        return dtype.newbyteorder()
    return numpy.dtype([(name, repacked(dtype[name])) for name in dtype.names], align=not dtype.isalignedstruct)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 4))])
def test_a_view_is_what_numpy_has(seed, count=5_000):
    choose = random.Random(seed)
    seg = shmview.create(None, BYTES)
    fill = numpy.frombuffer(seg.buf, "u1")
    equal, refused, unaligned = 0, set(), 0
    for i in range(count):
        if i % 100 == 0:
            fill[:] = numpy.frombuffer(choose.randbytes(BYTES), "u1")
        dtype, offset = any_dtype(choose), choose.choice([0, 0, 0, 16, 32, 1, 2, 8])
        try:
            view = seg.cast(dtype, 3, offset=offset)
        except (TypeError, ValueError) as e:
            assert str(e)
            refused.add(type(e))
            continue
        array, expected = numpy.asarray(view), numpy.frombuffer(seg.buf, dtype, 3, offset)
        assert array.dtype == expected.dtype, dtype
        assert array.__array_interface__["data"] == expected.__array_interface__["data"], dtype
        assert (array.shape, array.strides) == (expected.shape, expected.strides), dtype
        compare(view, expected, dtype)
        assign(choose, view, expected, dtype)
        equal += 1
        unaligned += not array.flags.aligned
    assert equal > count * 0.5 and unaligned > count * 0.02 and refused == {ValueError, shmview.FormatError}, refused
    del view, array, expected, fill
    seg.close()


@pytest.mark.parametrize("code", "bBhHiIqQefd?")
def test_a_scalar_at_every_byte(seg, code):
    values = numpy.arange(1, 5).astype(code)
    for mark in "<>":
        for offset in range(17):
            for step in range(1, 3 * values.itemsize + 1):
                dtype = numpy.dtype(code).newbyteorder(mark)
                if step < values.itemsize:
                    continue
                view = seg.cast(dtype, 4, offset=offset, strides=(step,))
                expected = numpy.ndarray(4, dtype, seg.buf, offset, (step,))
                view[:] = values
                assert view.tolist() == expected.tolist() == values.tolist() == view[::-1].tolist()[::-1]
                seen = numpy.asarray(view)
                assert seen.flags.aligned == expected.flags.aligned and seen.tolist() == values.tolist()
                assert numpy.asarray(view[1:3]).tolist() == values[1:3].tolist() and view == values
                view[1] = 1
                view[2:].fill(0)
                assert expected.tolist() == [values[0].item(), values[0].item(), 0, 0]


def test_unaligned_elements(seg):
    view = seg.cast("<i2", 4, offset=1)
    view[:] = [5, -2, 3, 4]
    assert (view.format, view.summary().sum, view[1:2].format) == ("<h", 10, "<h")
    assert numpy.asarray(view).flags.aligned is False and numpy.asarray(view).tolist() == [5, -2, 3, 4]
    assert seg.cast("<i2", 4, offset=1, strides=(3,))[1::2].format == "h" != seg.cast("<i2", 4, offset=1).format
    assert seg.cast("<i2", offset=2).format == "h" and seg.cast(">i2", 3, offset=1).format == ">h"
    with pytest.raises(BufferError, match="unaligned"):
        view.__dlpack__()
    assert view.__dlpack__(copy=True)
    for native in ("h", "@h", "int16", "3h", "T{b:a:h:b:}"):
        with pytest.raises(shmview.Misaligned, match="byte 1 is not a multiple of 2.*a format with '<' or '=' has none"):
            seg.cast(native, 2, offset=1)
    record = numpy.dtype([("flag", "i1"), ("x", "f4")])
    seg.define(L={"a": ("<i4", 3, 1), "b": {"format": record, "shape": 2, "offset": 13}})
    with seg.locked():
        seg.switch("L")
    assert seg.view("a").format == "<i" == seg.layouts["L"]["a"]["format"]
    seg.view("b")["x"] = [0.5, 1.5]
    assert seg.view("b").tolist() == [(0, 0.5), (0, 1.5)]


def test_records(seg):
    record = numpy.dtype([("a", [("b", "i4")]), ("m", [("x", "i2"), ("y", "f8")], (2,))])
    view, array = seg.cast(record, 3), numpy.zeros(3, record)
    for value in (((1,), [(2, 0.5), (3, 1.5)]), [(1,), [(2, 0.5), (3, 1.5)]]):
        view[:] = numpy.zeros(3, record)
        view[0] = value
        array[0] = tuple(value)
        assert plain(view.tolist()) == plain(array.tolist()), value
    assert view[0] == ((1,), [(2, 0.5), (3, 1.5)]) and view["a"][0] == (1,) and view["a"]["b"][0] == 1
    other = array.astype([("c", [("d", ">i8")]), ("n", [("x", "i8"), ("y", "f4")], (2,))])
    other["c"]["d"] = [7, 8, 9]
    view[:] = other
    assert view["a"].tolist() == [(7,), (8,), (9,)] and view["m"]["x"][0].tolist() == [2, 3]
    view[1] = other[2]
    view[2] = array[0].reshape(())
    assert view["a"]["b"].tolist() == [7, 9, 1]
    view["a"] = array["a"]
    view["m"][1:] = array["m"][0]
    assert view["m"].tolist()[2] == [(2, 0.5), (3, 1.5)] == view["m"].tolist()[1]
    view.fill(array[0])
    assert plain(view.tolist()) == plain([array[0].item()] * 3)
    for wrong in (5, (1, 2), numpy.zeros(3), (("x",), [(2, 0.5), (3, 1.5)])):
        with pytest.raises((TypeError, ValueError)):
            view[0] = wrong
    other["c"]["d"] = 1 << 40
    with pytest.raises((TypeError, shmview.ConversionError)):
        view[:] = other


def test_packed_structs_keep_their_size():
    dtype = numpy.dtype([("x", "f4"), ("flag", "i1")])
    seg = shmview.create(None, 100, one={"A": (dtype, 4)})
    view = seg.view("A", "one")
    assert (view.itemsize, view.strides, view.format) == (5, (5,), "T{<f:x:b:flag:}")
    view[1] = 0.5, -3
    assert numpy.frombuffer(seg.buf, dtype, 2)[1].item() == (0.5, -3) == view[1]
    del view
    seg.close()


@pytest.mark.parametrize("format, why", [(str, "no format for str: share text as bytes"), (object, "no format: <class 'object'>")])
def test_types_without_a_format(seg, format, why):
    for use in seg.cast, lambda format: shmview.make(format=format, shape=2), lambda format: shmview.zeros(2, format):
        with pytest.raises(TypeError, match=why):
            use(format)


@pytest.mark.parametrize("dtype, why", [
    ({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]}, "'b' begins at byte 2, before the end of an"),
    ({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]}, "'b' begins at byte 0, before the end of an"),
    ([(("title", "a"), "i4")], "'a' has a title"), ("U3", "share text as bytes, for example as 'S12'"), ("M8[ns]", "share it as int64"),
    ("O", "no format for object"), ([("a", "V3")], "no format for |V3"), (">g", "no format for >f16"),
])
def test_refused(dtype, why):
    with pytest.raises((TypeError, ValueError)) as caught:
        shmview.create(None, one={"A": (numpy.dtype(dtype), 4)})
    assert why in str(caught.value)
