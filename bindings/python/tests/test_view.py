# SPDX-License-Identifier: Apache-2.0
"""Views: elements of every type, parts, indices, assignment, comparison, formats and casts."""

import array
import copy
import ctypes
import itertools
import math
import operator
import pickle
import struct
import weakref

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")

LIMITS = {"b": (-128, 127), "B": (0, 255), "h": (-2**15, 2**15 - 1), "H": (0, 2**16 - 1),
          "i": (-2**31, 2**31 - 1), "I": (0, 2**32 - 1), "q": (-2**63, 2**63 - 1), "Q": (0, 2**64 - 1)}


@pytest.mark.parametrize("mark", ["", "<", ">"])
@pytest.mark.parametrize("letter", LIMITS)
def test_integers(seg, letter, mark):
    v = seg.cast(mark + letter, 4)
    low, high = LIMITS[letter]
    for x in (low, high, 1, high // 3):
        v[1] = x
        assert v[1] == x and type(v[1]) is int
        assert v.tobytes()[v.itemsize:2 * v.itemsize] == struct.pack((mark or "@") + letter, x)
    for x in (low - 1, high + 1, 1 << 200, -(1 << 200)):
        with pytest.raises(shmview.ConversionError) as e:
            v[1] = x
        assert isinstance(e.value, ValueError) and isinstance(e.value, OverflowError)
        assert v[1] == high // 3
    for x in (1.0, "1", None, b"1", 1j):
        with pytest.raises(TypeError):
            v[1] = x


@pytest.mark.parametrize("letter", ["e", "f", "d", "<d", ">d", ">f", ">e"])
def test_floats(seg, letter):
    v = seg.cast(letter, 4)
    pack = letter if len(letter) > 1 else "@" + letter
    for x in (0.0, -0.0, 1.5, -2.25, math.inf, -math.inf, 0.1, 3):
        v[2] = x
        assert v.tobytes()[2 * v.itemsize:3 * v.itemsize] == struct.pack(pack, x)
        assert v[2] == struct.unpack(pack, struct.pack(pack, x))[0]
    v[2] = math.nan
    assert math.isnan(v[2])
    if letter[-1] != "d":
        v[2] = 1
        with pytest.raises(OverflowError):
            v[2] = 1e300
        assert v[2] == 1
    with pytest.raises(TypeError):
        v[2] = "1.5"


def test_other_types(seg):
    v = seg.cast("?", 4)
    v[0] = True
    v[1] = "yes"
    assert v.tolist() == [True, True, False, False]
    for letter, tolerance in (("Zf", 1e-6), ("Zd", 0), (">Zd", 0)):
        v = seg.cast(letter, 4)
        v[1] = 1.25 - 0.1j
        assert abs(v[1] - (1.25 - 0.1j)) <= tolerance
        v[1] = 2
        assert v[1] == 2
    v = seg.cast("c", 4)
    v[0] = b"x"
    assert v[0] == b"x"
    with pytest.raises(ValueError):
        v[0] = b"xy"
    v[:] = b"abcd"
    assert v.tobytes() == b"abcd"
    v = seg.cast("5s", 3)
    v[1] = b"abc"
    assert v[1] == b"abc\0\0"
    with pytest.raises(ValueError):
        v[1] = b"abcdef"
    v[:] = b"no"
    assert v.tolist() == [b"no\0\0\0"] * 3
    v = seg.cast("5p", 3)
    v[1] = b"abcd"
    assert v[1] == b"abcd" and v.tobytes()[5] == 4
    seg.buf[5] = 255  # another client may write any length there
    assert v[1] == b"abcd"
    with pytest.raises(ValueError):
        v[1] = b"abcde"
    v = seg.cast("g", 2)
    v[1] = 2.5
    assert v[1] == 2.5
    assert v.tobytes()[26:] == bytes(6)  # padding, which must not reveal the writer's memory
    v = seg.cast("P", 2)
    v[1] = 2**63
    assert v[1] == 2**63


def test_small_floats(seg):
    v = seg.cast("bfloat16", 4)
    for x, expected in ((1.0, 1.0), (3.14159, 3.140625), (1 + 2**-8, 1.0), (1 + 3 * 2**-8, 1 + 2**-6),
                        (1 + 2**-8 + 2**-40, 1 + 2**-7), (-1 - 2**-8 + 2**-40, -1.0), (math.inf, math.inf)):
        v[0] = x
        assert v[0] == expected
    v[0] = math.nan
    assert math.isnan(v[0])
    v[0] = 5
    with pytest.raises(OverflowError):
        v[0] = 3.4e38 * 1.01
    with pytest.raises(OverflowError):
        v[0] = 1e39
    assert v[0] == 5
    v = seg.cast("float8_e4m3fn", 4)
    v[1] = 448
    assert v.tolist()[1] == 448.0
    with pytest.raises(OverflowError):
        v[1] = 1000


def test_indexing(seg):
    v = seg.cast("i", (4, 5, 6))
    v[...] = 0
    for i, j, k in itertools.product(range(4), range(5), range(6)):
        v[i, j, k] = 100 * i + 10 * j + k
    assert (v[1, 2, 3], v[-1, -1, -1], v[(0, 0, 5)]) == (123, 345, 5)
    assert v[1].shape == (5, 6) and v[1][2][3] == 123 and v[1, 2].tolist()[3] == 123
    assert v[1:3, 2, ::2].tolist() == [[120, 122, 124], [220, 222, 224]]
    assert v[..., 3].shape == (4, 5) and v[..., 3][1, 2] == 123
    assert v[1, ..., 3].tolist() == [103, 113, 123, 133, 143]
    assert v[::-1, 0, 0].tolist() == [300, 200, 100, 0]
    assert v[()].shape == v.shape and v[...].shape == v.shape
    for wrong in (4, -5, (0, 5), (0, 0, 6), (0, 0, -7), 1 << 100, -(1 << 100), (0, 0, 1 << 70),
                  (0, 0, 0, 0), (..., ...)):
        with pytest.raises(IndexError):
            v[wrong]
        with pytest.raises(IndexError):
            v[wrong] = 1
    for wrong in ("a", 1.0, None, [1], (0, "x")):
        with pytest.raises((TypeError, LookupError, shmview.Error)):
            v[wrong]
    with pytest.raises(TypeError):
        del v[0]
    zero = seg.cast("i", ())
    zero[()] = 7
    assert zero[()] == 7 and zero.tolist() == 7 and zero[...].ndim == 0
    for wrong in (lambda: len(zero), lambda: iter(zero)):
        with pytest.raises(TypeError):
            wrong()


def test_slices_as_lists_have_them(seg):
    v = seg.cast("B", 10)
    v[:] = range(10)
    model = list(range(10))
    bounds = [None, 0, 1, 5, 9, 10, 11, -1, -9, -10, -11, 2**63, -2**63, -2**63 - 1, 1 << 80]
    for start, stop in itertools.product(bounds, bounds):
        for step in (None, 1, 2, 3, 11, -1, -2, -10, 2**63 - 1, -2**63):
            assert v[start:stop:step].tolist() == model[start:stop:step], (start, stop, step)
    with pytest.raises(ValueError):
        v[::0]
    empty = seg.cast("B", 0)
    assert empty[::-1].tolist() == [] == empty[:].tolist() and len(empty) == 0


def test_assignment(seg):
    v = seg.cast("h", (3, 4))
    v[...] = 5
    assert v.tolist() == [[5] * 4] * 3
    v[1] = [1, 2, 3, 4]
    v[:, 0] = (7, 8, 9)
    v[2, 1:] = array.array("h", [-1, -2, -3])
    assert v.tolist() == [[7, 5, 5, 5], [8, 2, 3, 4], [9, -1, -2, -3]]
    v[:] = [[1, 2, 3, 4], array.array("h", [5, 6, 7, 8]), range(4)]
    assert v.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [0, 1, 2, 3]]
    v[:] = v[::-1]  # source and target overlap
    assert v.tolist() == [[0, 1, 2, 3], [5, 6, 7, 8], [1, 2, 3, 4]]
    v[:] = array.array("d", [1, 2, 3, 4])  # converted, and repeated as numpy does it
    assert v.tolist() == [[1, 2, 3, 4]] * 3
    v[0, :] = (x for x in range(4))
    assert v[0].tolist() == [0, 1, 2, 3]
    with pytest.raises(shmview.ConversionError):
        v[0] = array.array("d", [1, 2.5, 3, 4])
    for wrong in ([1, 2], range(5), [[1] * 4] * 2):
        with pytest.raises(ValueError):
            v[0] = wrong
    with pytest.raises(ValueError):
        v[0] = array.array("h", [1, 2])
    with pytest.raises(TypeError):
        v[0] = "abcd"
    v.fill(3)
    assert v.tolist() == [[3] * 4] * 3
    b = seg.buf
    b[10:15] = b"hello"
    b[15:17] = memoryview(b"xyz")[1:]
    assert bytes(b[10:17]) == b"helloyz" and b[10:15] == b"hello"
    with pytest.raises(ValueError):
        b[0:3] = b"toolong"
    for far in (2**64, -2**64):
        with pytest.raises(shmview.Bounds):
            b[far] = 7
    assert b[-1] == 0


def test_readonly(seg):
    for v in (seg.cast("i", 4, readonly=True), seg.cast("i", 4).toreadonly(),
              shmview.attach("seg", readonly=True).cast("i", 4)):
        assert v.readonly and v[1:].readonly and memoryview(v).readonly
        for change in (lambda: v.__setitem__(0, 1), lambda: v.fill(1),
                       lambda: v.__setitem__(slice(None), 1), lambda: v[1:].fill(2)):
            with pytest.raises(shmview.ReadOnly) as e:
                change()
            assert isinstance(e.value, TypeError)
    assert not seg.cast("i", 4).readonly


def test_compare(seg):
    v = seg.cast("i", 4)
    v[:] = [1, 2, 3, 4]
    assert v == array.array("i", [1, 2, 3, 4]) and array.array("d", [1, 2, 3, 4]) == memoryview(v)
    assert v == array.array("d", [1, 2, 3, 4]) and not v != array.array("h", [1, 2, 3, 4])
    assert v != array.array("i", [1, 2, 3, 5]) and v != array.array("i", [1, 2, 3])
    assert v == v and v == seg.cast("i", 4) and v != seg.cast("T{i:a:}", 4) and v != [1, 2, 3, 4]
    assert v[::-1] == array.array("i", [4, 3, 2, 1])
    assert (v == 5) is False and v != None  # noqa: E711
    with pytest.raises(TypeError):
        v < v
    with pytest.raises(TypeError):
        hash(v)


def test_sequence(seg):
    v = seg.cast("i", 5)
    v[:] = range(5)
    assert list(v) == [0, 1, 2, 3, 4] == [*reversed(v)][::-1] and 3 in v and 9 not in v
    assert len(v) == 5
    assert [row.tolist() for row in seg.cast("i", (2, 2))] == [[0, 1], [2, 3]]
    a, b, *rest = v
    assert (a, b, rest) == (0, 1, [2, 3, 4])
    assert sum(v) == 10 and max(v) == 4
    assert v.summary() == (5, 0, 0, 4, 10.0)
    assert bytes(seg.cast("B", 3)) == b"\0\0\0" and seg.cast("h", 2).hex(":", 2) == "0000:0000"


def test_facts(seg):
    v = seg.cast("f4", (3, 4), offset=16)
    assert (v.format, v.itemsize, v.nbytes, v.ndim, v.size) == ("f", 4, 48, 2, 12)
    assert (v.shape, v.strides, v.suboffsets, v.offset) == ((3, 4), (16, 4), (), 16)
    assert v.c_contiguous and v.contiguous and not v.f_contiguous and v.T.f_contiguous
    assert v.segment is seg and v.obj is seg and v.generation is None and not v.stale
    assert v[1, 1:].offset == 16 + 16 + 4 and v[1:].address == v.address + 16
    assert weakref.ref(v)() is v
    strided = seg.cast("i", (2, 2), strides=(-16, 8), offset=64)
    strided[1, 1] = 9
    assert seg.cast("i", 100)[(64 - 16 + 8) // 4] == 9
    assert strided.tobytes("F") == strided.T.tobytes("C")


def test_shapes(seg):
    v = seg.cast("h", 24)
    v[:] = range(24)
    assert v.reshape(4, 6)[1, 2] == 8 and v.reshape((2, -1)).shape == (2, 12)
    assert v.reshape(2, 3, 4).transpose(2, 0, 1).shape == (4, 2, 3)
    assert v.reshape(4, 6).T[2, 1] == 8 and v.reshape(2, 3, 4).transpose(-1, 0, 1)[1, 1, 1] == 17
    assert v[:3].broadcast(2, 3).tolist() == [[0, 1, 2]] * 2 and v[:3].broadcast(2, 3).readonly
    assert v.cast("B").nbytes == 48 and v.cast("i").shape == (12,) and v.cast("i", (3, 4)).shape == (3, 4)
    assert seg.cast("B", 8).cast("d")[0] == seg.cast("d", 1)[0]
    for wrong, error in ((lambda: v.reshape(5, 5), shmview.IllSized), (lambda: v[:3].cast("i"), shmview.IllSized),
                         (lambda: v[::2].cast("B"), shmview.Invalid), (lambda: v.transpose(1), ValueError),
                         (lambda: v.reshape(2, 12).transpose(0, 0), ValueError),
                         (lambda: v.reshape(2, 12).transpose(0, 5), ValueError),
                         (lambda: v.reshape(2, 12).transpose(-2**32 - 2, 1), ValueError),
                         (lambda: v.broadcast(5), ValueError),
                         (lambda: v.cast("nonsense"), shmview.FormatError),
                         (lambda: v.reshape(*range(1, 11)), ValueError)):
        with pytest.raises(error):
            wrong()


def test_cast_errors(seg):
    with pytest.raises(shmview.FormatError) as e:
        seg.cast("i%d")
    assert e.value.format == "i%d"
    with pytest.raises(shmview.Misaligned, match="byte"):
        seg.cast("i", 4, offset=2)
    with pytest.raises(shmview.Bounds, match="4096"):
        seg.cast("i", 1025)
    with pytest.raises(shmview.Bounds):
        seg.cast("B", offset=5000)
    with pytest.raises(shmview.IllSized):
        seg.cast("3f", offset=8)
    with pytest.raises(shmview.Overflow):
        seg.cast("i", (1 << 62, 4))
    for wrong in (lambda: seg.cast("i", -1), lambda: seg.cast("i", offset=-4), lambda: seg.cast("i", 4, strides=(1, 2)),
                  lambda: seg.cast("i", strides=4), lambda: seg.cast("i", (1,) * 9), lambda: seg.cast("i", (1 << 64,))):
        with pytest.raises((ValueError, OverflowError)):
            wrong()
    with pytest.raises(TypeError):
        seg.cast(5)
    with pytest.raises(TypeError):
        seg.cast("i", "4")


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_short), ("y", ctypes.c_double), ("z", ctypes.c_char * 3)]


class Line(Point):
    _fields_ = [("to", Point * 2)]


def test_formats(seg):
    assert seg.cast(float).format == "d" and seg.cast(int).format == "q" and seg.cast(bool).format == "?"
    for kind in (ctypes.c_int, ctypes.c_double, ctypes.c_uint8, ctypes.c_short * 4, Point, Line):
        assert seg.cast(kind, 2).itemsize == ctypes.sizeof(kind)
    line = Line(1, 2.5, b"ab", ((3, 4.5, b"c"), (5, 6.5, b"d")))
    seg.buf[:ctypes.sizeof(line)] = bytes(line)
    assert seg.cast(Line, 1)[0] == (1, 2.5, [b"a", b"b", b"\0"],
                                    [(3, 4.5, [b"c", b"\0", b"\0"]), (5, 6.5, [b"d", b"\0", b"\0"])])

    class Bits(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int, 3)]

    class Union(ctypes.Union):
        _fields_ = [("a", ctypes.c_int)]
    for kind in (Bits, Union):
        with pytest.raises(TypeError):
            seg.cast(kind)
    for short, letter in (("f4", "f"), ("i2", "h"), ("u1", "B"), ("c16", "Zd"), ("b1", "?"), ("S5", "5s"),
                          (">i4", ">i"), ("int16", "h"), ("float64", "d")):
        assert seg.cast(short, 2).format == letter


def test_pickle(seg, run):
    v = seg.cast("f4", (3, 4), offset=16)
    v[...] = 2
    copy = pickle.loads(pickle.dumps(v))
    assert copy == v and (copy.shape, copy.offset) == (v.shape, v.offset)
    other = pickle.loads(pickle.dumps([seg, v[::-1, 1], v.toreadonly()]))
    assert other[1].segment is other[0] and other[1].strides == (-16,) and other[2].readonly
    text = run("import pickle, sys; v = pickle.loads(bytes.fromhex(sys.argv[1])); v[1, 1] = 5; print(v)",
               pickle.dumps(v).hex())
    assert text == f"{v!r}\n" and v[1, 1] == 5


def test_make():
    v = shmview.make(80, "d", (2, 5))
    assert v.shape == (2, 5) and v.segment.size == 80 and not v.readonly
    assert shmview.make(80, "i2").shape == (40,)
    w = shmview.make(80, "d", (2, 5), (8, 16), readonly=True)
    assert w.f_contiguous and w.readonly
    with pytest.raises(shmview.Bounds):
        shmview.make(80, "d", 11)


def test_suboffsets(seg):
    rows = seg.cast("q", 3)
    rows[:] = [1024, 2048, 512]
    for i, offset in enumerate(rows.tolist()):
        seg.cast("i", 4, offset=offset)[:] = range(10 * i, 10 * i + 4)
    v = seg.cast("i", (3, 4), strides=(8, 4), suboffsets=(0, -1))
    assert v.suboffsets == (0, -1) and v.tolist() == [[0, 1, 2, 3], [10, 11, 12, 13], [20, 21, 22, 23]]
    assert v[1, 2] == 12 and v[1].tolist() == [10, 11, 12, 13] and v[:, 1:].tolist()[2] == [21, 22, 23]
    v[1, 2] = 99
    v[2, :] = [5, 6, 7, 8]
    assert v[1, 2] == 99 and v[2].tolist() == [5, 6, 7, 8]
    m = memoryview(v)
    assert m.suboffsets and m[1, 2] == 99 and m.tolist() == v.tolist()
    assert pickle.loads(pickle.dumps(v)).tolist() == v.tolist()
    rows[1] = 1 << 40  # another client may write any offset there
    with pytest.raises(shmview.Bounds):
        v[1, 2]
    with pytest.raises(shmview.Bounds):
        v.tolist()
    with pytest.raises(BufferError):
        memoryview(v)


def test_no_leak(seg, no_leak):
    v = seg.cast("d", (10, 10))
    s = seg.cast("T{i:a:(2)d:b:}", 10)

    def use():
        v[1, 2] = v[2, 1] + v[-1][3]
        v[1] = range(10)
        v[:, 2] = array.array("d", range(10))
        v.tolist(), v.T.tobytes(), list(v), v == v, v.shape, repr(v)
        s[1] = (1, [2, 3])
        s[1], s["b"].tolist(), pickle.dumps(s)
        for wrong in (lambda: v[10, 10], lambda: v["x"], lambda: v.__setitem__((1, 1), "x"),
                      lambda: v.__setitem__(1, [1]), lambda: s.__setitem__(0, (1,)), lambda: seg.cast("i", 5000)):
            try:
                wrong()
            except Exception:
                pass
    no_leak(use)
    no_leak(lambda: memoryview(v)[1:].release())


# --- As numpy and the standard library have it -------------------------------

def test_a_view_of_one_element_is_a_number(seg):
    zero_d, one = seg.cast("d", ()), seg.cast("i", (1, 1), offset=8)
    zero_d[()], one[0, 0] = 2.5, -7
    assert (float(zero_d), int(zero_d), zero_d.item()) == (2.5, 2, 2.5)
    assert (float(one), int(one), one.item(), one.item(0, 0)) == (-7, -7, -7, -7)
    for call in (int, float, lambda v: v.item(), lambda v: v.item(0, 0)):
        with pytest.raises(TypeError):
            call(seg.cast("i", 3))
    assert seg.cast("i", (2, 3)).item(1, 2) == 0
    with pytest.raises(ValueError):
        int(seg.cast("3s", ()))
    z = seg.cast("c16", ())
    z[()] = 1 - 2j
    assert (complex(z), complex(zero_d)) == (1 - 2j, complex(zero_d[()]))
    with pytest.raises(TypeError):
        float(z)
    with pytest.raises(TypeError):
        complex(seg.cast("c16", 2))


def test_an_integer_without_dimensions_is_an_index(seg):
    n, flag = seg.cast("i2", ()), seg.cast("?", (), offset=8)
    n[()], flag[()] = 3, True
    assert operator.index(n) == 3 and list(range(n)) == [0, 1, 2] and "abcde"[n] == "d"
    assert seg.cast("B", 8)[n] == 0 and seg.cast("i2", n).shape == (3,) and seg.buf[:n].nbytes == 3
    assert bytes(n) == b"\3\0"  # the bytes of the view, and not as many zeros
    for view in flag, seg.cast("d", ()), seg.cast("i", 1), seg.cast("i", (2, 2)):
        with pytest.raises(TypeError, match="index|integer"):
            operator.index(view)
    n.release()
    with pytest.raises(ValueError, match="released"):
        operator.index(n)


def test_shapes_from_views(seg):
    """A view of several integers is a sequence where one number or a sequence is possible."""
    dims = seg.cast("i4", 2, offset=64)
    dims[:] = [2, 3]
    assert seg.cast("B", dims).shape == (2, 3) and seg.cast("B", 6).reshape(dims).shape == (2, 3)
    assert shmview.create("dims", layout={"A": ("f4", dims)}).view("A").shape == (2, 3)


def test_truth(seg):
    zero_d = seg.cast("d", ())
    assert not zero_d
    zero_d[()] = 0.5
    assert zero_d and seg.cast("d", 1, offset=64) and seg.cast("d", (2, 2), offset=64)
    assert not seg.cast("d", 0) and not seg.cast("d", (0, 3))
    zero_d.release()
    with pytest.raises(ValueError, match="released"):
        bool(zero_d)


def test_index_and_count(seg):
    """A view finds items as a list does."""
    v = seg.cast("i4", 8)
    v[:] = values = [5, 1, 5, 2, 5, 3, 5, 4]
    for value in 5, 4, 4.0, 7, "5", None:
        assert v.count(value) == values.count(value) and (value in v) == (value in values)
        for bounds in (), (1,), (-3,), (3, 6), (-100, 100), (5, 2), (0, -1), (3, None)[:1]:
            try:
                assert v.index(value, *bounds) == values.index(value, *bounds)
            except ValueError:
                assert value not in values[slice(*(bounds + (None,) * (2 - len(bounds))))]
    assert list(reversed(v)) == values[::-1]
    rows = v.reshape(4, 2)
    assert rows.index(v[2:4]) == 1 and rows.count(v[2:4]) == 1 and rows[3] in rows and 5 not in rows
    assert seg.cast("T{i:a:i:b:}", 4).index((5, 3)) == 2
    assert [row.tolist() for row in reversed(rows)][0] == [5, 4]
    for call in (lambda v: v.index(1), lambda v: v.count(1), lambda v: 1 in v, reversed):
        with pytest.raises(TypeError):
            call(seg.cast("i", ()))
    for wrong in (), (1, "a"), (1, 2, 3, 4):
        with pytest.raises(TypeError):
            v.index(*wrong)


def test_a_comparison_that_releases_the_view(seg):
    class Releases:
        def __eq__(self, other):
            v.release()
    for search in (lambda: v.index(Releases()), lambda: v.count(Releases())):
        v = seg.cast("i4", 4)
        with pytest.raises(ValueError, match="released"):
            search()


def test_names_without_a_size_are_numpys(seg):
    names = {"float": "d", "double": "d", "single": "f", "int": "q", "uint": "Q", "complex": "Zd"}
    assert {name: seg.cast(name, 2).format for name in names} == names


def test_deepcopy_is_refused(seg):
    with pytest.raises(TypeError, match="numpy.array"):
        copy.deepcopy({"view": seg.cast("i", 3)})
