# SPDX-License-Identifier: Apache-2.0
"""Array, Value and their like, and locks, beside those of multiprocessing."""

import array
import ctypes
import errno
import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings

import pytest
from conftest import await_, descriptors

import shmview

METHODS = ["fork", "spawn", "forkserver"]


@pytest.fixture(params=METHODS)
def context(request):
    return multiprocessing.get_context(request.param)


def arenas():
    with open("/proc/self/maps") as maps:
        mapped = [line for line in maps if "/dev/shm/#" in line]
    return len(mapped), len([fd for fd in descriptors() if "/dev/shm/#" in fd[1]])


@pytest.fixture(autouse=True)
def no_arena_left():
    """What nobody has any more is given back, but for the arena that the next one comes from."""
    yield
    gc.collect()
    shmview._heap._forked_child()
    assert arenas() == (0, 0)


# --- Beside multiprocessing ---------------------------------------------------

def outcome(call, *args):
    try:
        return call(*args)
    except Exception as e:
        return type(e)


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_double), ("z", ctypes.c_int * 2)]


class Both(ctypes.Union):
    _fields_ = [("n", ctypes.c_uint32), ("bytes", ctypes.c_ubyte * 4)]


VALUES = [0, 1, -1, 255, 256, -129, 2**31, -2**31 - 1, 2**63, 2**64, -2**65, 1.5, -0.0, float("inf"),
          1e300, True, False, None, "x", "xy", b"x", b"xy", b"", bytearray(b"z"), object(), [1], 3 + 0j,
          ctypes.c_int(7), ctypes.c_double(2.5), ctypes.c_char(b"q")]
TYPES = ["c", "u", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d", ctypes.c_bool,
         ctypes.c_longdouble, ctypes.c_int16.__ctype_be__, ctypes.c_void_p, ctypes.c_int * 2, Point]


def seen(value):
    """A value in a form that compares."""
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
                    made = type(obj), bytes(obj)
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
    assert p.acquire(False) and p.release() is None  # the failure held nothing
    u = shmview.Value(Both)
    u.n = 0x01020304
    assert list(u.bytes) == [4, 3, 2, 1]
    points = shmview.Array(Point, 3)
    points[1] = Point(1, 2.0)
    assert (points[1].x, points[1].y) == (1, 2.0)
    points[1].x = 5  # an element of a structure is no copy
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
        view[2] = 3  # what is looked at stays
        assert view[1] == 77 and view[2] == 3
    a = shmview.Array("i", 4)
    a[:] = numpy.array([1, 2, 3, 4], "i")
    a[1:3] = numpy.array([7, 8])
    assert a[:] == [1, 7, 8, 4]
    assert memoryview(a).format == "i" and memoryview(a).shape == (4,)
    assert memoryview(shmview.Value("d", 1.5)).nbytes == 8


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


# --- Locks --------------------------------------------------------------------

def test_locks_as_multiprocessing():
    for name in "Lock", "RLock":
        found = []
        for module in multiprocessing, shmview:
            lock = getattr(module, name)()
            steps = [outcome(lock.release), repr(lock), lock.acquire(), repr(lock),
                     lock.acquire(False), lock.acquire(True, 0.001), lock.acquire(timeout=-1),
                     lock.acquire(block=False, timeout=5),
                     repr(lock), lock.release(), repr(lock), outcome(lock.release),
                     outcome(lock.release), outcome(lock.release), lock.__enter__(),
                     lock.__exit__(None, None, None), outcome(pickle.dumps, lock)]
            found.append(steps)
        assert found[0] == found[1]


def test_one_thread_holds_it():
    for lock in shmview.RLock(), shmview.Lock():
        results = []

        def other():
            results.append(lock.acquire(False))
            results.append(lock.acquire(timeout=0.01))
            results.append(repr(lock))
            results.append(outcome(lock.release))
        lock.acquire()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert results[:2] == [False, False]
        if isinstance(lock, shmview.RLock):  # not his to release
            assert results[2:] == ["<RLock(SomeOtherThread, nonzero)>", AssertionError]
            lock.release()
        else:  # any process may release a Lock, any thread too
            assert results[3] is None
            with pytest.raises(ValueError):
                lock.release()


def test_threads_exclude_each_other():
    a, n = shmview.Array("i", 1), 3000

    def add():
        for _ in range(n):
            with a:
                a[0] += 1
    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert a[0] == 4 * n


def test_a_signal_ends_a_wait():
    class Interrupted(Exception):
        pass

    def handler(*_):
        raise Interrupted

    for lock in shmview.Lock(), shmview.RLock():
        held = threading.Event()
        leave = threading.Event()

        def hold():
            with lock:
                held.set()
                leave.wait()
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        old = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(Interrupted):
                lock.acquire()
        finally:
            signal.signal(signal.SIGALRM, old)
            leave.set()
            thread.join()
        assert lock.acquire(timeout=60) and lock.release() is None


def wait_for(condition, ready):
    with condition:
        while not ready[0]:
            condition.wait()
        ready[0] = 2


def test_condition(context):
    condition = context.Condition(shmview.RLock())
    ready = shmview.RawArray("i", 1)
    child = context.Process(target=wait_for, args=(condition, ready))
    child.start()
    with condition:
        ready[0] = 1
        condition.notify_all()
    child.join()
    assert child.exitcode == 0 and ready[0] == 2


# --- Children -----------------------------------------------------------------

def change(everything, stop):
    value, a, raw, point, text, lock = everything
    with lock:
        value.value += 1
        a[1:3] = [5, 6]
        raw[0] = 2.5
        point.x *= 2
        text.value = text.value * 2
    del everything, value, a, raw, point, text, lock
    gc.collect()


def test_children_share(context):
    everything = (shmview.Value("i", 1), shmview.Array("h", 4), shmview.RawArray("d", 2),
                  shmview.Value(Point, 4, 1.0), shmview.Array("c", 8), shmview.Lock())
    everything[4].value = b"ab"
    child = context.Process(target=change, args=(everything, None))
    child.start()
    child.join()
    assert child.exitcode == 0
    value, a, raw, point, text, lock = everything
    assert (value.value, a[:], raw[0], point.x, text.value) == (2, [0, 5, 6, 0], 2.5, 8, b"abab")
    assert not lock.locked()


def test_only_children_get_them():
    for thing in (shmview.Array("i", 3), shmview.Value("i"), shmview.Lock(), shmview.RLock(),
                  shmview.Value(Point), shmview.Array("c", 3)):
        with pytest.raises(RuntimeError, match="inheritance"):
            pickle.dumps(thing)
    from multiprocessing.reduction import ForkingPickler
    for thing in shmview.RawArray("i", 3), shmview.RawValue("d"):
        with pytest.raises(RuntimeError, match="inheritance"):
            ForkingPickler.dumps(thing)


def add_up(a, n):
    for _ in range(n):
        with a:
            a[0] += 1


def test_processes_exclude_each_other(context):
    for lock in None, shmview.Lock():
        a = shmview.Array("l", 1, lock=lock) if lock is None else shmview.RawArray("l", 1)
        target = add_up if lock is None else add_up_raw
        children = [context.Process(target=target, args=(a, 2000) if lock is None else (a, lock, 2000))
                    for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert [child.exitcode for child in children] == [0, 0, 0] and a[0] == 6000


def add_up_raw(a, lock, n):
    for _ in range(n):
        with lock:
            a[0] += 1


def echo(a, go, pipe):
    go.acquire()
    a[0] += 1
    pipe.send((a[:], a.acquire(timeout=60)))


def test_a_child_keeps_what_its_parent_drops(context):
    """Also where the parent makes something else meanwhile."""
    go = context.Semaphore(0)
    here, there = context.Pipe()
    child = context.Process(target=echo, args=(shmview.Array("i", [7, 8]), go, there))
    child.start()
    gc.collect()
    more = [shmview.Array("i", [1, 1]) for _ in range(20)]
    go.release()
    assert here.poll(100) and here.recv() == ([8, 8], True)
    child.join()
    assert all(a[:] == [1, 1] for a in more)


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


# --- Deaths -------------------------------------------------------------------

def die_holding(a, lock, pid):
    pid.value = os.getpid()
    lock.acquire()
    a.acquire()
    a.acquire()
    a.get_obj()[0] = 1
    os.kill(os.getpid(), signal.SIGKILL)


def kill_one(context, a, lock):
    pid = shmview.RawValue("i")
    child = context.Process(target=die_holding, args=(a, lock, pid))
    child.start()
    await_(lambda: a.get_obj()[0] == 1, what="the child's end")
    return child, pid.value


def test_a_killed_holder_hangs_nobody(context):
    a, lock = shmview.Array("i", 2), shmview.Lock()
    child, pid = kill_one(context, a, lock)  # it may still be a zombie
    with pytest.warns(shmview.OwnerDiedWarning, match=f"process {pid} died") as told:
        with a:
            assert a.owner_died == pid
            with a:
                assert a.get_lock().owner_died == pid
        await_(lambda: lock.acquire(False), what="the lock")
    assert [w.message.pid for w in told] == [pid, pid] and told[0].filename == __file__
    assert lock.owner_died == pid
    lock.release()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with a, lock:  # it is settled
            assert a.owner_died is lock.owner_died is None
    child.join()


def test_a_death_can_be_an_error(context):
    a, lock = shmview.Array("i", 2), shmview.Lock()
    child, pid = kill_one(context, a, lock)
    with warnings.catch_warnings():
        warnings.simplefilter("error", shmview.OwnerDiedWarning)
        for take in a.__enter__, lambda: a[0], lambda: a.acquire(timeout=60), lock.acquire:
            with pytest.raises(shmview.OwnerDiedWarning) as e:
                take()
            assert e.value.pid == pid
        assert not a.get_lock().locked() and not lock.locked()
    with pytest.warns(shmview.OwnerDiedWarning):
        assert a[0] == 1
    child.join()


def test_who_waits_already_gets_it():
    context = multiprocessing.get_context("fork")
    lock, here = shmview.RLock(), context.Event()

    def hold():
        lock.acquire()
        here.set()
        time.sleep(1000)
    child = context.Process(target=hold)
    child.start()
    here.wait()
    assert not lock.acquire(False) and not lock.acquire(timeout=0.1)
    os.kill(child.pid, signal.SIGSTOP)
    assert not lock.acquire(timeout=0.2)  # a stopped process is alive
    threading.Timer(0.1, os.kill, (child.pid, signal.SIGKILL)).start()
    with pytest.warns(shmview.OwnerDiedWarning):
        assert lock.acquire(timeout=100)
    lock.release()
    child.join()


def test_a_thread_that_ends_inside():
    rlock, lock = shmview.RLock(), shmview.Lock()
    thread = threading.Thread(target=lambda: (rlock.acquire(), lock.acquire()))
    thread.start()
    thread.join()
    await_(lambda: not os.path.exists(f"/proc/self/task/{thread.native_id}"), what="its end")
    with pytest.warns(shmview.OwnerDiedWarning):
        assert rlock.acquire(timeout=60)
    assert not lock.acquire(timeout=0.1)  # a Lock is its process's
    lock.release()


def test_a_child_does_not_hold_its_parents_lock():
    context = multiprocessing.get_context("fork")
    a, lock = shmview.Array("i", 1), shmview.Lock()
    results, theirs = context.Pipe()

    def try_it():
        theirs.send((a.acquire(timeout=0.05), outcome(a.release), lock.acquire(timeout=0.05),
                     lock._is_mine()))
    with a, lock:
        child = context.Process(target=try_it)
        child.start()
        assert results.recv() == (False, AssertionError, False, False)
        child.join()


ORPHAN = """
import os, signal, sys, shmview, time
a = shmview.Array("i", [1, 2, 3])
r, w = os.pipe()
if os.fork() == 0:
    while os.getppid() == int(sys.argv[1] if len(sys.argv) > 1 else os.getppid()) and not a.get_obj()[0] == 9:
        time.sleep(0.01)
    with a:
        a[1] += 40
        print(a[:], flush=True)
    os._exit(0)
a[0] = 9
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_children_outlive_a_killed_creator(run):
    assert run(ORPHAN, status=-signal.SIGKILL) == "[9, 42, 3]\n"


def test_nothing_is_said_at_the_end(run):
    assert run("""
import shmview, multiprocessing
a = shmview.Array("i", 3)
keep = [a, shmview.RawValue("d"), shmview.Lock()]
keep[2].acquire()
a.acquire()
cycle = [a]; cycle.append(cycle)
print("done")
""") == "done\n"
