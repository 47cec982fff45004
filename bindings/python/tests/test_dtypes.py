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


@pytest.mark.parametrize("seed", range(4))
def test_a_view_is_what_numpy_has(seed):
    choose = random.Random(seed)
    seg = shmview.create(None, BYTES)
    numpy.frombuffer(seg.buf, "u1")[:] = numpy.frombuffer(choose.randbytes(BYTES), "u1")
    equal, refused = 0, set()
    for _ in range(25_000):
        dtype, offset = any_dtype(choose), choose.choice([0, 0, 0, 16, 32, 1, 2, 8])
        try:
            view = seg.cast(dtype, 3, offset=offset)
        except (TypeError, ValueError, shmview.Misaligned) as e:
            assert str(e)
            refused.add(type(e))
            continue
        array, expected = numpy.asarray(view), numpy.frombuffer(seg.buf, dtype, 3, offset)
        assert array.dtype == expected.dtype, dtype
        assert array.__array_interface__["data"] == expected.__array_interface__["data"], dtype
        assert (array.shape, array.strides) == (expected.shape, expected.strides), dtype
        if dtype.names:
            assert plain(view[1]) == plain(expected[1].item()), dtype
        equal += 1
    assert equal > 10_000 and refused == {ValueError, shmview.Misaligned, shmview.FormatError}, refused
    del view, array, expected
    seg.close()


def test_packed_structs_keep_their_size():
    dtype = numpy.dtype([("x", "f4"), ("flag", "i1")])
    seg = shmview.create(None, 100, one={"A": (dtype, 4)})
    view = seg.view("A", "one")
    assert (view.itemsize, view.strides, view.format) == (5, (5,), "T{<f:x:b:flag:}")
    view[1] = 0.5, -3
    assert numpy.frombuffer(seg.buf, dtype, 2)[1].item() == (0.5, -3) == view[1]
    del view
    seg.close()


@pytest.mark.parametrize("dtype, why", [
    ({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [0, 2]}, "'b' begins at byte 2, before the end of an"),
    ({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]}, "'b' begins at byte 0, before the end of an"),
    ([(("title", "a"), "i4")], "'a' has a title"), ("U3", "no format for <U3"), ("M8[ns]", "share it as int64"),
    ("O", "no format for object"), ([("a", "V3")], "no format for |V3"), (">g", "no format for >f16"),
])
def test_refused(dtype, why):
    with pytest.raises((TypeError, ValueError)) as caught:
        shmview.create(None, one={"A": (numpy.dtype(dtype), 4)})
    assert why in str(caught.value)
