# SPDX-License-Identifier: Apache-2.0
"""repr() of views: the elements as numpy prints them, without numpy, and without reading more of a
large view than its edges."""

import inspect
import struct

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture
def seg(daemon):
    return shmview.create("seg", 1 << 17, floats={"A": ("f4", 2)}, ints={"A": ("i4", 2)})


def elements(view):
    """Returns the part of repr(view) after the facts."""
    text = repr(view)
    assert text.startswith(f"<shmview.View of 'seg', format '{view.format}', shape {view.shape}") and text[-1] == ">"
    return text.split(f"shape {view.shape}", 1)[1][:-1]


def test_elements(seg):
    v = seg.cast("i4", (2, 3))
    v[...] = [[1, 2, 3], [40, -5, 6]]
    assert repr(v) == inspect.cleandoc("""
        <shmview.View of 'seg', format 'i', shape (2, 3):
        [[ 1,  2,  3],
         [40, -5,  6]]>""")
    assert repr(v[0]) == "<shmview.View of 'seg', format 'i', shape (3,): [1, 2, 3]>"
    assert elements(v.toreadonly()[1]) == ", read-only: [40, -5,  6]"
    assert elements(seg.cast("i4", ())) == ": 1" and elements(seg.cast("i4", 0)) == ": []"
    assert elements(seg.cast("i2", (2, 1, 2))) == ":\n[[[1, 0]],\n\n [[2, 0]]]"


def test_types(seg):
    def shown(format, *values):
        v = seg.cast(format, len(values))
        v[:] = list(values)
        return elements(v).split(" ", 1)[1]
    assert shown("f4", 0.1, float("inf"), float("nan"), -2) == "[ 0.1,  inf,  nan, -2.0]"
    assert shown(">f4", 1e-7, 16777217) == "[     1e-07, 16777216.0]"
    assert shown("f2", 0.1, 65504) == "[    0.1, 65500.0]" and shown("d", 0.1) == "[0.1]"
    assert shown("c8", 0.1 - 0.2j) == "[(0.1-0.2j)]" and shown("?", True, False) == "[ True, False]"
    assert shown("3s", b"a", b"abc") == "[b'a\\x00\\x00', b'abc']" and shown("c", b"a") == "[b'a']"
    assert shown("T{i:a:d:b:}", (1, 2.5), (10, 1)) == "[(1, 2.5), (10, 1.0)]"
    assert shown("T{(9)B:a:}", (range(9),)) == "[([0, 1, 2, 3, 4, 5, ...],)]"
    assert elements(seg.cast("(3)B", 1)) == ": [[0, 1, 2]]"


@pytest.mark.parametrize("letter", "ef")
def test_short_floats_read_back(seg, letter):
    """Each text is the shortest that stands for this number, and no double is longer than needed."""
    v = seg.cast(letter, 600)
    v.cast("B")[:] = bytes(i * 7919 % 251 for i in range(v.nbytes))
    for text, value in zip(elements(v)[2:].strip("[]").split(","), v):
        if value == value:
            assert struct.pack(letter, float(text)) == struct.pack(letter, value)
            assert len(text.strip()) <= len(repr(value))


def test_large(seg):
    v = seg.cast("i4", 1000)
    v[:] = range(1000)
    assert elements(v).count(",") == 999
    v = seg.cast("i4", 1001)
    assert elements(v) == ": [  0,   1,   2, ..., 998, 999,   0]"
    v = seg.cast("B", (200, 300))
    assert elements(v).count("...") == 7 and elements(v).count(",") == 7 * 6
    assert len(repr(seg.cast("B", (3,) * 8))) < 6000
    assert elements(seg.cast("5000s", 2)) == ": elements of 5000 bytes"


def test_reads_only_the_edges(seg):
    """A view with suboffsets fails where a stored offset is wrong, so it shows which rows are read."""
    rows = 2000
    offsets = seg.cast("u8", rows)
    offsets[:] = [1 << 60] * rows
    for i in 0, 1, 2, -3, -2, -1:
        offsets[i] = 65536
    v = seg.cast("B", (rows, 4), strides=(8, 1), suboffsets=(0, -1))
    assert elements(v).count("[0, 0, 0, 0]") == 6
    offsets[2] = 1 << 60
    assert elements(v).startswith(": Bounds: ")


def test_unreadable(seg):
    with seg.locked():
        seg.switch("floats")
        v = seg["A"]
        assert elements(v) == ": [0.0, 0.0]"
        seg.switch("ints")
    assert repr(v) == "<shmview.View of 'seg', format 'f', shape (2,), stale>"
    v.release()
    assert repr(v) == "<shmview.View, released>"


def test_messages_have_no_elements(seg):
    with pytest.raises(TypeError, match=r"not <shmview.View of 'seg', format 'B', shape \(3,\)>$"):
        int(seg.cast("B", 3))
    assert repr(memoryview(seg.cast("B", 2)).obj) == "<buffer of <shmview.View of 'seg', format 'B', shape (2,)>>"


def test_as_numpy(seg):
    """Integers look as numpy prints them."""
    numpy = pytest.importorskip("numpy")
    seg.buf[:] = bytes(i * 31 % 256 for i in range(1 << 17))
    for shape in (5, (3, 4), (2, 3, 4), (40, 50), 2000, (11, 12, 13), ()):
        v = seg.cast("i2", shape)
        body = elements(v)[2:]
        with numpy.printoptions(linewidth=1000):
            assert body == numpy.array2string(numpy.asarray(v), separator=", ").replace(" \n", "\n")
