# SPDX-License-Identifier: Apache-2.0
"""Memory and locks of a family of processes: which children get them, and what happens when a
member dies, is stopped, or exits."""

import gc
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings

import pytest
from conftest import PATIENCE, Point, await_, outcome

import shmview

pytestmark = pytest.mark.usefixtures("no_arena_left")


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
    pipe.send((a[:], a.acquire(timeout=PATIENCE)))


def test_a_child_keeps_what_its_parent_drops(context):
    """Also if the parent makes something else at the same time."""
    go = context.Semaphore(0)
    here, there = context.Pipe()
    child = context.Process(target=echo, args=(shmview.Array("i", [7, 8]), go, there))
    child.start()
    gc.collect()
    more = [shmview.Array("i", [1, 1]) for _ in range(20)]
    go.release()
    assert here.poll(PATIENCE) and here.recv() == ([8, 8], True)
    child.join()
    assert all(a[:] == [1, 1] for a in more)


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
        assert a.acquire(timeout=PATIENCE)
        assert a.owner_died == pid
        with a:
            assert a.get_lock().owner_died == pid
        await_(lambda: lock.acquire(False), what="the lock")
    a.release()
    assert [w.message.pid for w in told] == [pid, pid] and told[0].filename == __file__
    assert lock.owner_died == pid
    lock.release()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with a, lock:  # the death has been handled
            assert a.owner_died is lock.owner_died is None
    child.join()


def test_a_death_can_be_an_error(context):
    a, lock = shmview.Array("i", 2), shmview.Lock()
    child, pid = kill_one(context, a, lock)
    with warnings.catch_warnings():
        warnings.simplefilter("error", shmview.OwnerDiedWarning)
        for take in (lambda: a.acquire(timeout=PATIENCE), lambda: lock.acquire(timeout=PATIENCE), a.__enter__,
                     lambda: a[0], lock.acquire):
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
    assert not lock.acquire(timeout=0.2)  # a stopped process is still alive
    threading.Timer(0.1, os.kill, (child.pid, signal.SIGKILL)).start()
    with pytest.warns(shmview.OwnerDiedWarning):
        assert lock.acquire(timeout=PATIENCE)
    lock.release()
    child.join()


def test_a_thread_that_ends_inside():
    rlock, lock = shmview.RLock(), shmview.Lock()
    thread = threading.Thread(target=lambda: (rlock.acquire(), lock.acquire()))
    thread.start()
    thread.join()
    await_(lambda: not os.path.exists(f"/proc/self/task/{thread.native_id}"), what="its end")
    with pytest.warns(shmview.OwnerDiedWarning):
        assert rlock.acquire(timeout=PATIENCE)
    assert not lock.acquire(timeout=0.1)  # a Lock belongs to the process
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
