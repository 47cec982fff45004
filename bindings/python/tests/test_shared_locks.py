# SPDX-License-Identifier: Apache-2.0
"""Lock, RLock and Condition behave as those of multiprocessing: each test compares both."""

import multiprocessing
import multiprocessing.synchronize
import pickle
import signal
import threading
import time

import pytest
from conftest import PATIENCE, outcome

import shmview

pytestmark = pytest.mark.usefixtures("no_arena_left")


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
        if isinstance(lock, shmview.RLock):  # another thread may not release it
            assert results[2:] == ["<RLock(SomeOtherThread, nonzero)>", AssertionError]
            lock.release()
        else:  # any process and any thread may release a Lock
            assert results[3] is None
            with pytest.raises(ValueError):
                lock.release()


def test_they_are_instances_of_the_standard_librarys():
    class Mine(shmview.Lock):
        pass
    assert isinstance(shmview.Lock(), multiprocessing.synchronize.Lock)
    assert isinstance(shmview.RLock(), multiprocessing.synchronize.RLock)
    assert not isinstance(shmview.Lock(), multiprocessing.synchronize.RLock)
    assert isinstance(shmview.Lock(), shmview.Lock) and Mine().__class__ is Mine


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
            end = time.monotonic() + PATIENCE
            with pytest.raises(Interrupted):
                lock.acquire(timeout=PATIENCE)
            assert time.monotonic() < end, "the handler waited for the end of the wait"
        finally:
            signal.signal(signal.SIGALRM, old)
            leave.set()
            thread.join()
        assert lock.acquire(timeout=PATIENCE) and lock.release() is None


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
