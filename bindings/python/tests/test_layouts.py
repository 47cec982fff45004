# SPDX-License-Identifier: Apache-2.0
"""Layouts, phases and changes: several arrays share the bytes of one segment, and each view
belongs to its phase."""

import pickle
import threading

import numpy
import pytest

import shmview
from conftest import await_

pytestmark = pytest.mark.usefixtures("daemon")


def test_layouts():
    seg = shmview.create("seg", float={"A": ("f4", 10), "B": ("f4", (2, 3)), "C": "f8"},
                         int=[("D", "i2", 8), ("E", "i4", (2, 2), 32)])
    a, b, c = (seg.view(name, "float") for name in "ABC")
    assert (a.shape, b.shape, c.shape) == ((10,), (2, 3), ())
    assert (a.offset, b.offset, c.offset, seg.size) == (0, 40, 64, 72)
    assert (seg.view("D").shape, seg.view("E").offset, seg.view("E").shape) == ((8,), 32, (2, 2))
    for wrong in (lambda: seg.view("X"), lambda: seg.view("A", "int"), lambda: seg.view("A", "none")):
        with pytest.raises(shmview.NoLayout) as e:
            wrong()
        assert isinstance(e.value, LookupError)
    seg.define(more={"Z": {"format": "i4", "shape": (2, 3), "strides": (4, 8), "offset": 8, "readonly": True}})
    z = seg.view("Z")
    assert (z.strides, z.offset, z.readonly) == ((4, 8), 8, True)
    with pytest.raises(shmview.LayoutExists):
        seg.define({"more": {"Z": "i"}})
    with pytest.raises(shmview.Bounds, match="Y"):
        seg.define(much={"Y": ("i", 1000)})
    for wrong in ({"Y": ()}, {"Y": ("i", 1, 2, 3)}, {"Y": {"shape": 3}}, {"Y": {"format": "i", "size": 3}},
                  ["Y"], [("Y",)], 5, {"Y": 5}):
        with pytest.raises(TypeError):
            seg.define(wrong=wrong)
    with pytest.raises(ValueError):
        seg.define(wrong={"Y": ("i", 1, -4)})
    with pytest.raises(shmview.ReadOnly):
        shmview.attach("seg", readonly=True).define(other={"Y": "i"})


def test_numpy_dtype():
    dtype = numpy.dtype([("A", "f4", (10,)), ("n", "i8"), ("p", [("x", "i2"), ("y", "f8")], 3)], align=True)
    seg = shmview.create("seg", all=dtype, other={"Q": (dtype, 1), "R": (numpy.float32, 4), "S": numpy.dtype(("i2", (3,)))})
    assert seg.size >= dtype.itemsize
    assert (seg.view("A").shape, seg.view("n").shape, seg.view("p").shape) == ((10,), (), (3,))
    assert [seg.view(name).offset for name in dtype.names] == [dtype.fields[name][1] for name in dtype.names]
    assert seg.view("p").itemsize == dtype["p"].base.itemsize
    assert numpy.asarray(seg.view("Q")).dtype == dtype and seg.view("S").shape == (3,)


def test_create_that_fails():
    for lifetime in ("attached", "manual"):
        with pytest.raises(shmview.FormatError):
            shmview.create("seg", 100, lifetime=lifetime, one={"A": "i4"}, two={"B": "nonsense"})
        with pytest.raises(shmview.Bounds):
            shmview.create("seg", 10, lifetime=lifetime, one={"A": ("i4", 100)})
        with pytest.raises(shmview.NoLayout):
            shmview.create("seg", 10, lifetime=lifetime, phase="none")
        with pytest.raises(FileNotFoundError):
            shmview.attach("seg")
    with pytest.raises(TypeError):
        shmview.create("seg")
    with pytest.raises(TypeError):
        shmview.create("seg", layouts={"a": {"A": "i"}}, a={"A": "i"})


def test_phases():
    seg = shmview.create("seg", float={"A": ("f4", 4)}, int={"D": ("i4", 4)})
    assert (seg.phase, seg.generation, seg.change) == (None, 0, 0)
    with pytest.raises(shmview.NotOwner):
        seg.switch("float")
    with seg.locked():
        seg.switch("float")
    assert (seg.phase, seg.generation) == ("float", 1)
    a = seg.view("A")
    a[:] = [1, 2, 3, 4]
    row, array = a[1:], numpy.asarray(a)
    saved = pickle.dumps(a)
    with pytest.raises(shmview.NoLayout):
        seg.view("D")
    d = seg.view("D", "int")
    assert d.stale  # it belongs to a phase that has not begun
    with seg.locked():
        seg.switch("int")
    assert a.stale and row.stale and (a.generation, seg.generation) == (1, 2)
    for use in (lambda: a[0], lambda: row[0], lambda: a.tolist(), lambda: a.__setitem__(0, 1), lambda: memoryview(a),
                lambda: a[:], lambda: a == a, lambda: a.cast("B"), lambda: iter(a), lambda: a.__dlpack__(),
                lambda: a.__array_interface__, lambda: numpy.asarray(a), lambda: a.summary(),
                lambda: pickle.loads(saved)[0], lambda: a.T, lambda: numpy.from_dlpack(a), lambda: pickle.dumps(a)):
        with pytest.raises(shmview.StaleViewError) as e:
            use()
    assert "phase 1" in str(e.value) and "phase 2 ('int')" in str(e.value)
    assert len(a) == 4 and a.format == "f"  # these members are valid in every phase
    assert seg.view("D").tolist() == array.view("i4").tolist()
    with pytest.raises(shmview.NoLayout):
        with seg.locked():
            seg.switch("none")


def test_an_attacher_knows_the_layouts():
    layouts = {"float": {"A": ("f4", (2, 3)), "B": ("f8", 4, 32)}, "int": {"A": "i4", "D": ("i2", 8)},
               "odd": {"S": {"format": "i", "shape": (2, 3), "strides": (4, 8), "offset": 8, "readonly": True}}}
    seg = shmview.create("seg", 128, layouts=layouts)
    other = shmview.attach("seg", readonly=True)
    told = other.layouts
    assert list(told) == ["float", "int", "odd"] and list(told["float"]) == ["A", "B"]
    assert told["float"]["B"] == dict(format="d", shape=(4,), offset=32, strides=(8,), readonly=False)
    assert told["odd"]["S"] == dict(format="i", shape=(2, 3), offset=8, strides=(4, 8), readonly=True)
    copy = shmview.create("copy", layouts=told)  # the description can be used to declare them again
    assert copy.layouts == told
    assert other.view("B").shape == (4,) and other.view("D").format == "h"  # each name occurs in one layout only
    with pytest.raises(shmview.NoLayout, match="2 layouts have a view 'A', .'float', 'int'."):
        other.view("A")
    with pytest.raises(shmview.NoLayout, match="no layout has a view 'C'") as e:
        other["C"]
    assert (e.value.layout, e.value.view) == (None, "C")
    seg.define(late={"L": ("B", 3)})
    assert other.view("L").nbytes == 3 and list(other.layouts["late"]) == ["L"]
    with seg.locked():
        seg.switch("int")
    assert other.view("A").format == "i"
    rows = shmview.create("rows", 256)
    rows.define(rows={"R": dict(format="i", shape=(3, 4), strides=(8, 4), offset=128, suboffsets=(0, -1))})
    assert rows.layouts["rows"]["R"]["suboffsets"] == (0, -1)
    assert shmview.create("plain", 8).layouts == {}
    rows.remove()
    with pytest.raises(shmview.NotFound):
        rows.layouts
    rows.close()
    with pytest.raises(ValueError):
        rows.layouts


def test_wait():
    seg = shmview.create("seg", float={"A": ("f4", 4)}, int={"D": ("i4", 4)})
    other = shmview.attach("seg")
    for wait in (lambda: other.wait(timeout=0), lambda: other.wait(timeout=0.01), lambda: other.wait("int", timeout=0.01),
                 lambda: other.wait(generation=0, timeout=0), lambda: other.wait(change=0, timeout=0.06)):
        with pytest.raises(shmview.TimedOut) as e:
            wait()
        assert isinstance(e.value, TimeoutError)
    with pytest.raises(shmview.NoLayout) as e:
        other.wait("none", timeout=0)
    assert e.value.layout == "none"
    for wrong in (-1, float("nan"), "x"):
        with pytest.raises((ValueError, TypeError)):
            other.wait(timeout=wrong)
    for wrong in (lambda: other.wait("int", change=1), lambda: other.wait(5)):
        with pytest.raises(TypeError):
            wrong()
    seg.notify()
    seg.notify(one=True)
    assert other.change == 2 and other.wait(change=0) == 2 == other.wait(change=1, timeout=60)
    found = []
    threads = [threading.Thread(target=lambda: found.append(other.wait("int", timeout=60))),
               threading.Thread(target=lambda: found.append(other.wait(generation=1, timeout=60))),
               threading.Thread(target=lambda: found.append(other.wait(change=2, timeout=60)))]
    for thread in threads:
        thread.start()
    with seg.locked():
        seg.switch("float")
        seg.switch("int")
    for thread in threads:
        thread.join()
    assert sorted(found) in ([2, 2, 3], [2, 2, 4])
    assert other.wait("int", generation=1) == 2


def test_closing_while_another_waits():
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    def wait():
        with seg.locked():
            pass
    thread = threading.Thread(target=wait)
    with other.locked():
        thread.start()
        await_(lambda: "waits" in [party.role for party in other.lock_status().parties])
        with pytest.raises(shmview.Busy, match="1 threads"):
            seg.close()
    thread.join()
    seg.close()


def test_no_lock():
    seg = shmview.create("seg", 100, lock=False)
    for use in (seg.lock, seg.trylock, seg.notify, seg.lock_status, lambda: seg.wait(timeout=0), lambda: seg.phase,
                seg.shared().__enter__, seg.recover().__enter__, seg.locked().__enter__):
        with pytest.raises(shmview.NoLock):
            use()
    seg.buf[:3] = b"abc"
    seg2 = shmview.create("three", 100)
    peek = shmview.attach("three", access="peek")
    with pytest.raises(shmview.NoLock):
        peek.lock()
    assert peek.buf.readonly and peek.access == "peek" and seg2.buf == peek.buf


def test_views_by_subscript():
    seg = shmview.create("seg", one={"A": ("i4", 3)}, two={"B": "f4"}, phase="one")
    seg["A"][1] = 5
    assert seg["A"].tolist() == [0, 5, 0] and seg.view("A") == seg["A"]
    with pytest.raises(shmview.NoLayout):
        seg["B"]
    with pytest.raises(TypeError, match="seg.buf"):
        seg[0]
    with pytest.raises(TypeError):
        iter(seg)
    seg.close()
    with pytest.raises(ValueError):
        seg["A"]


def test_what_is_no_size_and_no_layout():
    with pytest.raises(TypeError, match="size is a number of bytes, not .* make.. and zeros.. create one view"):
        shmview.create("q", ("i4", 5))
    for wrong in "i4", ("i4", 3), [5]:
        with pytest.raises(TypeError, match="a layout is a dict of views, as in float="):
            shmview.create("q", A=wrong)
    assert not shmview.exists("q")
