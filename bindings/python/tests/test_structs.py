# SPDX-License-Identifier: Apache-2.0
"""Views whose elements are structs: values, fields and assignment, also with formats of Python's struct
module."""

import ctypes
import random
import struct

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


def test_structs(seg):
    v = seg.cast("T{i:a:d:b:T{b:x:(2,3)h:y:}:c:5s:d:}", 4)
    value = (7, 2.5, (-1, [[1, 2, 3], [4, 5, 6]]), b"abcde")
    v[1] = value
    assert v[1] == value
    assert v["a"].tolist() == [0, 7, 0, 0] and v["b"][1] == 2.5
    assert v["c"]["y"].shape == (4, 2, 3) and v["c"]["y"][1, 1, 2] == 6
    v["a"] = [1, 2, 3, 4]
    v["b"][:] = 0.5
    v["c"]["y"][0, 0] = [9, 9, 9]
    assert v[0] == (1, 0.5, (0, [[9, 9, 9], [0, 0, 0]]), b"\0" * 5)
    v[2:] = value
    assert v[2] == v[3] == value
    for wrong in ((1, 2), (1, 2.5, (-1, [[1, 2, 3]]), b""), (1, 2.5, 3, b""), "abcd", 5,
                  (1, "x", (-1, [[1, 2, 3], [4, 5, 6]]), b"")):
        with pytest.raises((TypeError, ValueError)):
            v[2] = wrong
    for name in ("nobody", ""):
        with pytest.raises(shmview.Error):
            v[name]
    nested = seg.cast("T{T{i:a:i:b:}:s:}", 2)
    nested[1] = ((3, 4),)
    assert nested[1] == ((3, 4),) and nested["s"][1] == (3, 4)
    packed = seg.cast("<bi", 3)
    packed[1] = (-5, 1 << 30)
    assert packed[1] == (-5, 1 << 30) and packed.itemsize == 5
    triple = seg.cast("3f", 2)
    triple[1] = ([1, 2, 3],)
    assert triple[1] == ([1.0, 2.0, 3.0],) and triple.field(None).tolist()[1] == [1, 2, 3]
    array_of_structs = seg.cast("T{(2)T{b:x:h:y:}:s:}", 2)
    array_of_structs[1] = ([(1, 2), (3, 4)],)
    assert array_of_structs[1] == ([(1, 2), (3, 4)],)
    assert array_of_structs["s"]["y"].tolist() == [[0, 0], [2, 4]]


def test_struct_module(seg):
    rng = random.Random(5)
    for _ in range(300):
        text = rng.choice("@=<>") + "".join(rng.choice("bBhHiIqQfd?") for _ in range(rng.randint(2, 6)))
        v = seg.cast(text, 2)
        assert v.itemsize >= struct.calcsize(text)
        values = tuple(rng.choice([True, False]) if c == "?" else rng.randint(0, 100) / (2 if c in "fd" else 1)
                       if c in "fd" else rng.randint(0, 100) for c in text[1:])
        v[1] = values
        assert v[1] == values
        assert struct.unpack(text, v[1:].tobytes()[:struct.calcsize(text)]) == values, text


class Cell(ctypes.Structure):
    _fields_ = [("n", ctypes.c_short * 2 * 3), ("x", ctypes.c_double)]


def test_arrays_of_arrays_of_ctypes(seg):
    assert seg.cast(ctypes.c_int * 3 * 2, 2).format == "(2,3)i"
    grid = (Cell * 2 * 2)()
    grid[1][0].n[2][1], grid[1][0].x = 7, 0.5
    view = seg.cast(Cell * 2 * 2, ())
    assert view.itemsize == ctypes.sizeof(grid) and memoryview(grid).shape == (2, 2)
    seg.buf[:view.itemsize] = bytes(grid)
    zeros = ([[0, 0]] * 3, 0)
    assert view.item() == ([[zeros, zeros], [([[0, 0], [0, 0], [0, 7]], 0.5), zeros]],)
    view[()] = ([[zeros, zeros], [zeros, ([[1, 2], [3, 4], [5, 6]], 1.5)]],)
    grid = (Cell * 2 * 2).from_buffer_copy(view)
    assert grid[1][0].x == 0 and (grid[1][1].n[2][0], grid[1][1].x) == (5, 1.5)
