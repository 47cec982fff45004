# SPDX-License-Identifier: Apache-2.0
"""Array, Value, RawArray and RawValue behave as those of multiprocessing, and their memory is
freed."""

import array
import ctypes
import errno
import gc
import multiprocessing
import struct

import pytest
from conftest import Point, arenas, outcome

import shmview

pytestmark = pytest.mark.usefixtures("no_arena_left")


class Both(ctypes.Union):
    _fields_ = [("n", ctypes.c_uint32), ("bytes", ctypes.c_ubyte * 4)]


VALUES = [0, 1, -1, 255, 256, -129, 2**31, -2**31 - 1, 2**63, 2**64, -2**65, 1.5, -0.0, float("inf"),
          1e300, True, False, None, "x", "xy", b"x", b"xy", b"", bytearray(b"z"), object(), [1], 3 + 0j,
          ctypes.c_int(7), ctypes.c_double(2.5), ctypes.c_char(b"q")]
TYPES = ["c", "u", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d", ctypes.c_bool,
         ctypes.c_longdouble, ctypes.c_int16.__ctype_be__, ctypes.c_void_p, ctypes.c_int * 2, Point]


def seen(value):
    """Returns a value in a form that compares."""
    if isinstance(value, ctypes.Structure):
        return type(value), bytes(value)
    if isinstance(value, ctypes.Array):
        return type(value), list(value)
    if isinstance(value, list):
        return [seen(each) for each in value]
    return type(value), repr(value)


@pytest.mark.parametrize("lock", [True, False, "lock"])
@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_elements_as_multiprocessing(type_, lock):
    made = []
    for module in multiprocessing, shmview:
        chosen = module.Lock() if lock == "lock" else lock
        made.append((module.Array(type_, 5, lock=chosen), module.Value(type_, lock=chosen)))
    (theirs, their_value), (ours, our_value) = made
    slices = [slice(a, b, c) for a in (None, 0, 2, -2, 9) for b in (None, 3, -1)
              for c in (None, 2, -1, -2)]

    def same(what):
        assert outcome(what, ours) == outcome(what, theirs)

    for value in VALUES:
        for i in 0, 4, -5, 5, -6, "x", None, 1.0, 2**70:
            same(lambda a: a.__setitem__(i, value))
            same(lambda a: seen(a[i]))
        same(lambda a: [seen(x) for x in a])
        if hasattr(their_value, "value"):
            assert outcome(setattr, our_value, "value", value) == \
                outcome(setattr, their_value, "value", value)
            assert seen(our_value.value) == seen(their_value.value)
    for cut in slices:
        same(lambda a: seen(a[cut]))
        n = len(range(*cut.indices(5)))
        for source in ([3] * n, (2.5,) * n, [b"k"] * n, ["k"] * n, range(n), b"abcdefg"[:n], [1] * (n + 1),
                       array.array("i", range(n)), array.array("d", range(n)), [1] * (n - 1) + ["x"],
                       7, None):
            same(lambda a: a.__setitem__(cut, source))
            same(lambda a: [seen(x) for x in a])
    same(len)
    same(lambda a: [seen(x) for x in reversed(a)])
    same(lambda a: 1 in a)


@pytest.mark.parametrize("type_", ["i", "d", "c", "B", ctypes.c_int, Point], ids=str)
def test_initializers_as_multiprocessing(type_):
    for arguments in [(3,), ([1, 2, 3],), (range(4),), (b"abc",), ([],), (0,), (-1,), ("x",), (2.5,),
                      (None,), ([(1, 2.5)],), (3, True), ()]:
        for name in "Array", "RawArray", "Value", "RawValue":
            found = []
            for module in multiprocessing, shmview:
                made = outcome(getattr(module, name), type_, *arguments)
                if not isinstance(made, type):
                    obj = made.get_obj() if hasattr(made, "get_obj") else made
                    plain = type(obj)._type_ * len(obj) if isinstance(obj, ctypes.Array) else type(obj)
                    assert isinstance(obj, plain) and type(obj).__name__ == plain.__name__
                    made = plain, bytes(obj)
                found.append(made)
            assert found[0] == found[1], (name, arguments)


def test_lock_arguments():
    for make in (lambda **kw: shmview.Array("i", 3, **kw), lambda **kw: shmview.Value("i", 3, **kw)):
        for lock in True, None:
            assert isinstance(make(lock=lock).get_lock(), shmview.RLock)
        for lock in shmview.Lock(), shmview.RLock(), multiprocessing.Lock(), multiprocessing.RLock():
            made = make(lock=lock)
            assert made.get_lock() is lock
            with made:
                assert not lock.acquire(False) or lock.release() is None
            assert made.acquire(timeout=1) and made.release() is None
        plain = make(lock=False)
        assert not hasattr(plain, "get_lock") and not hasattr(plain, "acquire")
        with pytest.raises(AttributeError):
            make(lock="no lock")
    with pytest.raises(TypeError):
        shmview.Array("i", 3, True)


def test_structures_and_unions():
    p = shmview.Value(Point, 3, 2.5)
    assert (p.x, p.y, list(p.z)) == (3, 2.5, [0, 0])
    p.x = -7
    with p:
        p.get_obj().z[1] = 9
    assert (p.x, list(p.z)) == (-7, [0, 9])
    with pytest.raises(TypeError):
        p.x = "x"
    assert p.acquire(False) and p.release() is None  # the failed call holds nothing
    u = shmview.Value(Both)
    u.n = 0x01020304
    assert list(u.bytes) == [4, 3, 2, 1]
    points = shmview.Array(Point, 3)
    points[1] = Point(1, 2.0)
    assert (points[1].x, points[1].y) == (1, 2.0)
    points[1].x = 5  # an element of a structure is not a copy
    assert points.get_obj()[1].x == 5


def test_strings():
    s = shmview.Array("c", 8)
    assert s.raw == bytes(8) and s.value == b""
    s.value = b"abc"
    assert s.value == b"abc" and s.raw == b"abc" + bytes(5) and s[1] == b"b" and s[:3] == b"abc"
    s.raw = b"12345678"
    assert s.value == b"12345678"
    with pytest.raises(ValueError):
        s.value = b"123456789"
    assert s.acquire(False) and s.release() is None
    raw = shmview.RawArray("c", b"xyz")
    assert raw.value == b"xyz"


def test_ctypes_and_numpy():
    numpy = pytest.importorskip("numpy")
    for code in "bBhHiIlLqQfd":
        a = shmview.Array(code, range(5))
        view, whole = numpy.asarray(a), numpy.frombuffer(a.get_obj(), dtype=numpy.dtype(code))
        assert view.dtype == numpy.dtype(code) and view.shape == (5,)
        assert view.ctypes.data == whole.ctypes.data == ctypes.addressof(a.get_obj())
        view[1] = 77
        assert a[1] == whole[1] == 77
        again = (ctypes.c_char * 4).from_buffer(a.get_obj())
        again[0] = b"\x05"
        assert bytes(memoryview(a).cast("B"))[0] == 5
        del a, whole, again
        gc.collect()
        view[2] = 3  # memory stays while a view of it exists
        assert view[1] == 77 and view[2] == 3
    a = shmview.Array("i", 4)
    a[:] = numpy.array([1, 2, 3, 4], "i")
    a[1:3] = numpy.array([7, 8])
    assert a[:] == [1, 7, 8, 4]
    assert memoryview(a).format == "i" and memoryview(a).shape == (4,)
    assert memoryview(shmview.Value("d", 1.5)).nbytes == 8


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_an_array_without_elements(code):
    numpy = pytest.importorskip("numpy")
    a = shmview.Array(code, 0)
    assert numpy.asarray(a).shape == (0,) and numpy.asarray(a).dtype == code
    assert memoryview(a).itemsize == struct.calcsize(code) and memoryview(a).nbytes == len(a) == 0
    assert a[:] == []


@pytest.mark.parametrize("code, values", [("i", [1, 2]), ("B", [255, 0]), ("d", [1, 2]), ("c", b"ab"), ("i", [-1, 2])])
def test_bytes_and_numpy_arrays_have_the_values_of_the_standard_librarys(code, values):
    numpy = pytest.importorskip("numpy")
    mine, theirs = shmview.Array(code, values), multiprocessing.Array(code, values)
    assert outcome(bytes, mine) == outcome(bytes, theirs)
    assert numpy.array(mine).tolist() == numpy.array(theirs).tolist()


@pytest.mark.parametrize("code", ["c", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d"])
def test_arrays_are_those_of_ctypes(code):
    """Also for types of which shmview reads and sets items itself."""
    raw = shmview.RawArray(code, 4)
    element = type(raw)._type_
    plain = element * 4
    one = b"1" if code == "c" else 1

    class Holder(ctypes.Structure):
        _fields_ = [("array", plain)]

    assert isinstance(raw, shmview._sync.Quick) and isinstance(raw, plain)
    assert type(raw) is type(shmview.RawArray(code, [one] * 4)) is type(shmview.copy(raw))
    assert ctypes.sizeof(raw) == ctypes.sizeof(plain) and len(raw) == raw._length_ == 4
    raw[2] = one
    assert plain.from_buffer(raw)[2] == ctypes.cast(raw, ctypes.POINTER(element))[2] == raw[2] == one
    assert plain.from_address(ctypes.addressof(raw))[2] == one
    assert ctypes.pointer(raw).contents[2] == one  # an object of the class that shmview has not made
    theirs = multiprocessing.RawArray(code, 4)
    theirs[2] = one
    assert outcome(lambda: bytes(Holder(raw))) == outcome(lambda: bytes(Holder(theirs)))
    ctypes.pointer(raw).contents[3] = one
    assert raw[-1] == one and raw[:] == plain.from_buffer(raw)[:]
    for taken in [plain], [ctypes.POINTER(plain)], [ctypes.POINTER(element)], [ctypes.c_void_p]:
        function = ctypes.CFUNCTYPE(None, *taken)(lambda _: None)
        function(ctypes.byref(raw) if taken == [ctypes.POINTER(plain)] else raw)
    with pytest.raises(ValueError):
        ctypes.resize(raw, 1 << 20)
    for key in 0, slice(1, 3), 9, "x", None:
        assert outcome(raw.__delitem__, key) == outcome(theirs.__delitem__, key)
    mine = [memoryview(raw), memoryview(theirs)]
    assert mine[0].format == mine[1].format and mine[0].shape == mine[1].shape


def test_an_array_that_others_made():
    """Instances that ctypes has made without memory of ours, and derived classes."""
    cls = type(shmview.RawArray("d", 3))
    made = cls(1, 2, 3)
    made[1] = 5
    assert made[:] == [1, 5, 3] and list(made) == [1, 5, 3]

    class Derived(cls):
        __slots__ = ("a", "b")
    derived = Derived(1, 2, 3)
    derived.a = derived.b = object()
    derived[0] = 7
    assert derived[:] == [7, 2, 3]


def test_they_are_instances_of_the_standard_classes():
    from multiprocessing import sharedctypes as standard
    for made, cls in ((shmview.Value("i"), "Synchronized"), (shmview.Value(Point), "SynchronizedBase"),
                      (shmview.Array("i", 3), "SynchronizedArray"),
                      (shmview.Array("c", 3), "SynchronizedString")):
        for module in standard, shmview.sharedctypes:
            assert isinstance(made, getattr(module, cls)) and isinstance(made, module.SynchronizedBase)
        with pytest.raises(TypeError, match="has a lock already"):
            shmview.synchronized(made)
        own = type(made).__mro__
        for name in ("acquire", "release", "__enter__", "__exit__", "get_obj", "get_lock", "__reduce__",
                     "__init__", "__repr__", "__len__", "__getitem__", "__setitem__", "value"):
            its = [base for base in own if name in base.__dict__]
            assert not its or its[0].__module__.startswith("shmview"), name
    with pytest.raises(TypeError, match="has a lock already"):
        shmview.synchronized(multiprocessing.Value("i"))


def test_copy():
    p = Point(1, 2.5)
    p.z[0] = 4
    q = shmview.copy(p)
    p.x = 9
    assert (q.x, q.y, q.z[0]) == (1, 2.5, 4) and q._wrapper is not None
    s = shmview.synchronized(shmview.copy(ctypes.c_double(2.5)))
    s.value *= 2
    assert s.value == 5
    with pytest.raises(TypeError):
        shmview.synchronized(s)


# --- Their memory ------------------------------------------------------------

def test_what_is_used_again_is_zeroed():
    a = shmview.Array("i", [1, 2, 3])
    a.acquire()
    address = ctypes.addressof(a.get_obj())
    del a
    b = shmview.Array("i", 3)
    assert ctypes.addressof(b.get_obj()) == address or not arenas()[0] > 1
    assert b[:] == [0, 0, 0] and not b.get_lock().locked()


def test_many_need_few_descriptors():
    values = [shmview.Value("d", i) for i in range(3000)]
    assert sum(v.value for v in values) == 3000 * 2999 / 2
    assert arenas()[1] <= 8
    large = shmview.RawArray("B", 3_000_000)
    assert len(large) == 3_000_000 and arenas()[1] <= 9


def test_no_object_is_left(no_leak):
    def use():
        a = shmview.Array("d", [1, 2, 3])
        with a:
            a[0] += a[1]
            a[:] = [4, 5, 6]
        v = shmview.Value(Point, 1)
        v.x += 1
        shmview.Lock().acquire()
        memoryview(a).tolist()
        outcome(a.__setitem__, 9, 1)
        outcome(a.__setitem__, 0, "x")
    no_leak(use)


def test_memory_that_is_not_there():
    with pytest.raises(OSError) as e:
        shmview.RawArray("B", 1 << 60)
    assert e.value.errno == errno.ENOSPC
