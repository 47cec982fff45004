# SPDX-License-Identifier: Apache-2.0
"""Semaphore, BoundedSemaphore, Condition, Event and Barrier, and what a killed process leaves in
them. CPython's own tests of these classes are in cpython.py."""

import ctypes
import multiprocessing.pool
import multiprocessing.synchronize
import os
import pickle
import signal
import sys
import threading
import time
import warnings

import pytest
from conftest import PATIENCE, await_, outcome

import shmview

pytestmark = pytest.mark.usefixtures("no_arena_left")


@pytest.fixture(params=["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def ctx(request):
    return shmview.get_context(request.param)


def killed(ctx, target, *args, until=lambda: True):
    """Runs target(*args, ready) in a child until it has called ready.set() and until() is true, and
    kills it."""
    ready = ctx.Event()
    child = ctx.Process(target=target, args=(*args, ready))
    child.start()
    assert ready.wait(PATIENCE)
    await_(until)
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    return child.pid


def deaths(call, *args):
    """Returns the result of call, and the process ids of the deaths that it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call(*args)
    return result, [each.message.pid for each in caught]


def test_they_are_those_of_multiprocessing():
    for name, args in (("Semaphore", ()), ("BoundedSemaphore", ()), ("Condition", ()), ("Event", ()),
                       ("Barrier", (2,))):
        thing = getattr(shmview, name)(*args)
        assert isinstance(thing, getattr(multiprocessing.synchronize, name))
        assert type(thing).__module__ == "shmview.synchronize"
        with pytest.raises(RuntimeError, match="inheritance"):
            pickle.dumps(thing)


# --- Semaphore ----------------------------------------------------------------

def test_semaphore():
    semaphore = shmview.Semaphore(1)
    assert repr(semaphore) == "<Semaphore(value=1)>"
    with semaphore as entered:
        assert entered is True and semaphore.get_value() == 0
        assert not semaphore.acquire(timeout=0.01) and not semaphore.acquire(block=False)
    semaphore.release()
    assert semaphore.get_value() == 2
    assert outcome(shmview.Semaphore, -1) is ValueError
    bounded = shmview.BoundedSemaphore(1)
    assert outcome(bounded.release) is ValueError and bounded.get_value() == 1
    with pytest.raises(ValueError):
        shmview._sync.Semaphore(shmview.Event()._block)


def take(semaphore, n, ready):
    for _ in range(n):
        semaphore.acquire()
    ready.set()
    time.sleep(10 * PATIENCE)


def test_permits_of_a_killed_process_come_back(ctx):
    semaphore = ctx.Semaphore(3)
    pid = killed(ctx, take, semaphore, 3)
    assert semaphore.get_value() == 0
    assert deaths(semaphore.acquire) == (True, [pid])
    assert semaphore.get_value() == 2
    pid = killed(ctx, take, semaphore, 2)
    assert deaths(semaphore.acquire, False) == (True, [pid])  # also without waiting


def test_an_exception_leaves_the_permit():
    ctx = shmview.get_context("fork")
    semaphore = ctx.BoundedSemaphore(1)
    killed(ctx, take, semaphore, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", shmview.OwnerDiedWarning)
        assert outcome(semaphore.acquire) is shmview.OwnerDiedWarning
    assert semaphore.get_value() == 1


def give(semaphore, ready):
    semaphore.release()
    ready.set()
    time.sleep(10 * PATIENCE)


def test_a_permit_may_be_given_back_by_another_process():
    ctx = shmview.get_context("fork")
    semaphore = ctx.Semaphore(1)
    semaphore.acquire()
    killed(ctx, give, semaphore)  # it gave back that of this process, which holds none now
    assert deaths(semaphore.acquire, False) == (True, [])
    assert semaphore.get_value() == 0


def test_events_that_were_counted_do_not_come_back():
    ctx = shmview.get_context("fork")
    semaphore = ctx.Semaphore(0)
    for _ in range(2):
        semaphore.release()
    killed(ctx, take, semaphore, 2)
    assert deaths(semaphore.acquire, True, 0.3) == (False, [])


# --- Dying inside -------------------------------------------------------------

def words(thing):
    return thing._block.create_memoryview().cast("I")


def test_a_change_is_completed_by_the_next_process():
    """A process noted a change, and was killed before it had carried it out: see sync/monitor.h."""
    semaphore = shmview.Semaphore(5)
    memory, value = words(semaphore), 208 // 4
    assert memory[value] == 5
    memory[128 // 4:128 // 4 + 4] = memoryview(b"".join(
        n.to_bytes(4, "little") for n in (208, 9, 2**31, 7))).cast("I")
    die_inside(memory, n_writes=2)
    assert semaphore.acquire() and semaphore.get_value() == 8  # the second write is none of its words


def die_inside(memory, n_writes):
    """Leaves the mutex of a monitor to a process that has ended."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    memory[4 // 4] = n_writes
    mutex = 64 // 4
    memory[mutex + 4] = pid  # the owner: its id, and a birth of 0, which is not known
    memory[mutex + 7] = pid


def library():
    """Returns libshmview, whose calls keep the GIL."""
    with open("/proc/self/maps") as maps:
        found = ctypes.PyDLL(next(line.split(None, 5)[5].strip() for line in maps if "/libshmview.so" in line))
    found.shmview_mutex_lock.argtypes = [ctypes.c_void_p, ctypes.c_int64]
    return found


def mutex_of(thing):
    """Returns the mutex of a monitor."""
    return (ctypes.c_char * 64).from_buffer(thing._block.create_memoryview()[64:128])


def keeps_out(thing, *calls):
    """Keeps the mutex of a monitor, as a process does that is stopped inside. Returns the outcomes of the calls in
    another thread, which must end nevertheless."""
    library_, mutex, outcomes = library(), mutex_of(thing), []
    thread = threading.Thread(target=lambda: outcomes.extend(outcome(*call) for call in calls))
    assert library_.shmview_mutex_lock(mutex, 0) == 0
    try:
        thread.start()
        thread.join(PATIENCE)
        return list(outcomes)
    finally:
        library_.shmview_mutex_unlock(mutex)
        thread.join()


def test_a_semaphore_whose_mutex_is_kept_has_a_timeout():
    semaphore = shmview.Semaphore(1)
    assert keeps_out(semaphore, (semaphore.acquire, False), (semaphore.acquire, True, 0.001)) == [False, False]
    assert semaphore.acquire(False) and semaphore.get_value() == 0
    assert not semaphore.acquire(True, 0.001)


def keeps_to_the_end(make, wait, patience, timeout=0.3):
    """Keeps the mutex of a monitor from within a wait, which ends at the timeout. Returns what the wait returned within
    this many seconds more, and then what it returned after that. A wait that ended before the mutex was kept shows
    nothing; then a longer one follows."""
    thing, library_, outcomes = make(), library(), []
    monitor = getattr(thing, "_memory", thing)
    mutex, memory, began = mutex_of(monitor), words(monitor), time.monotonic()
    thread = threading.Thread(target=lambda: outcomes.append(outcome(wait, thing, timeout)))
    thread.start()
    await_(lambda: memory[16 // 4 + 1] or outcomes)  # somebody waits for bell 0
    assert library_.shmview_mutex_lock(mutex, time.monotonic_ns() + PATIENCE * 10**9) == 0
    is_late = time.monotonic() >= began + timeout
    try:
        if not is_late:
            thread.join(timeout + patience)
        inside = list(outcomes)
    finally:
        library_.shmview_mutex_unlock(mutex)
        thread.join()
    return keeps_to_the_end(make, wait, patience, 2 * timeout) if is_late else (inside, outcomes)


def test_a_mutex_that_is_kept_when_a_wait_ends():
    """The barrier waits on after its deadline."""
    def acquire(semaphore, timeout):
        return semaphore.acquire(True, timeout)
    assert keeps_to_the_end(lambda: shmview.Semaphore(0), acquire, PATIENCE) == ([False], [False])
    broken = [threading.BrokenBarrierError]
    assert keeps_to_the_end(lambda: shmview.Barrier(2), shmview.Barrier.wait, 0.2) == ([], broken)


def test_nobody_waits_for_the_gil_inside():
    """A thread waits for the mutex of a semaphore. It gets it, and repairs, while this thread keeps the GIL, which
    nobody who is inside may wait for."""
    semaphore, got = shmview.Semaphore(1), []
    memory, owner, rung = words(semaphore), 64 // 4 + 4, 16 // 4
    library_, mutex = library(), mutex_of(semaphore)
    lock, waiters, interval = library_.shmview_mutex_lock, 0x80000000, sys.getswitchinterval()
    assert lock(mutex, 0) == 0
    thread = threading.Thread(target=lambda: got.append(semaphore.acquire()))
    thread.start()
    await_(lambda: memory[owner] & waiters)
    sys.setswitchinterval(1000)
    try:
        deadline = time.monotonic() + PATIENCE
        assert library_.shmview_mutex_unlock_not_repaired(mutex) == 0
        while not memory[rung] and time.monotonic() < deadline:
            pass
        assert memory[rung] and lock(mutex, time.monotonic_ns() + PATIENCE * 10**9) == 0
        library_.shmview_mutex_unlock(mutex)
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    assert got == [True] and semaphore.get_value() == 0


# --- Event --------------------------------------------------------------------

def test_event():
    event = shmview.Event()
    assert "unset" in repr(event) and not event.wait(0.01) and not event.is_set()
    waiter = []
    thread = threading.Thread(target=lambda: waiter.append(event.wait(PATIENCE)))
    thread.start()
    event.set()
    event.set()
    thread.join()
    assert waiter == [True] and event.is_set() and event.wait(0) and " set" in repr(event)
    event.clear()
    event.clear()
    assert not event.is_set()


def wait_first(event, done):
    event.wait(0.3)  # longer than a park
    done.set()


def test_a_wait_is_the_first_call_of_a_process(ctx):
    event, done = ctx.Event(), ctx.Event()
    child = ctx.Process(target=wait_first, args=(event, done))
    child.start()
    child.join()
    assert child.exitcode == 0 and done.is_set()


def test_a_signal_ends_the_waits():
    class Interrupted(Exception):
        pass

    def handler(*_):
        raise Interrupted

    condition, barrier = shmview.Condition(), shmview.Barrier(2)
    old = signal.signal(signal.SIGALRM, handler)
    try:
        with condition:
            for wait in (shmview.Event().wait, shmview.Semaphore(0).acquire, condition.wait,
                         barrier.wait, shmview.Queue().get, shmview.SimpleQueue().get):
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                assert outcome(wait) is Interrupted
    finally:
        signal.signal(signal.SIGALRM, old)
    assert barrier.n_waiting == 0 and condition._waiters.count() == 0


# --- Condition ----------------------------------------------------------------

def wait_for_it(condition, ready):
    with condition:
        ready.set()
        condition.wait()


def test_a_killed_waiter_takes_no_notification(ctx):
    condition = ctx.Condition()
    killed(ctx, wait_for_it, condition, until=lambda: condition._waiters.count() == 1)
    got = []

    def wait():
        with condition:
            got.append(condition.wait(PATIENCE))
    thread = threading.Thread(target=wait)
    thread.start()
    await_(lambda: condition._waiters.count() == 2)
    with condition:
        condition.notify()
    thread.join()
    assert got == [True]
    with condition:
        condition.notify_all()  # there is nobody
    assert condition._waiters.count() == 0


def test_a_notification_of_a_killed_waiter_goes_to_another():
    """The child waits, is stopped, notified and killed."""
    ctx = shmview.get_context("fork")
    condition, ready = ctx.Condition(), ctx.Event()
    child = ctx.Process(target=wait_for_it, args=(condition, ready))
    child.start()
    assert ready.wait(PATIENCE)
    await_(lambda: condition._waiters.count() == 1)
    with condition:
        os.kill(child.pid, signal.SIGSTOP)
        condition.notify()
        thread = threading.Thread(target=lambda: [condition.acquire(), got.append(condition.wait(PATIENCE)),
                                                  condition.release()])
        got = []
        thread.start()
    await_(lambda: condition._waiters.count() == 2)
    os.kill(child.pid, signal.SIGKILL)
    thread.join()
    assert got == [True]
    child.join()


def test_condition():
    for lock in shmview.RLock(), shmview.Lock(), multiprocessing.RLock():
        condition = shmview.Condition(lock)
        assert outcome(condition.wait) is AssertionError and outcome(condition.notify) is AssertionError
        with condition:
            assert condition.wait(0.001) is False
            assert condition.wait_for(lambda: 0, 0.001) == 0 and condition.wait_for(lambda: 3) == 3
            assert lock._semlock._is_mine()
    assert outcome(condition.notify) is AssertionError


def test_too_many_waiters():
    condition = shmview.Condition()
    places = condition._waiters._block.create_memoryview().cast("I")
    for place in range(252):
        places[16 + 4 * place] = os.getpid()
        places[16 + 4 * place + 2] = 1
    with condition:
        with pytest.raises(RuntimeError, match="252 threads wait"):
            condition.wait(0)


def test_the_place_of_a_killed_waiter_is_taken():
    """No place is free. That of a killed waiter had a notification, which the oldest waiter gets."""
    condition = shmview.Condition()
    places = condition._waiters._block.create_memoryview().cast("I")
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    for place in range(252):
        places[16 + 4 * place] = pid if place == 3 else os.getpid()
        places[16 + 4 * place + 2] = 2 if place == 3 else 1
        places[16 + 4 * place + 3] = (place - 7) % 252
    with condition:
        assert condition.wait(0) is False
    states = places[16:].tolist()[2::4]
    assert (states[3], states[7], states.count(1)) == (0, 2, 250)


# --- Barrier ------------------------------------------------------------------

def pass_twice(barrier, ready):
    barrier.wait()
    ready.set()
    barrier.wait()


def test_a_killed_party_breaks_the_barrier(ctx):
    barrier = ctx.Barrier(3)
    others = [threading.Thread(target=lambda: found.append(outcome(barrier.wait))) for _ in range(4)]
    found = []
    for thread in others[:2]:
        thread.start()
    killed(ctx, pass_twice, barrier, until=lambda: barrier.n_waiting == 1 and len(found) == 2)
    for thread in others[2:]:  # the dead party has arrived in this filling, and one more is missing
        thread.start()
        thread.join()
    assert found[2:] == [threading.BrokenBarrierError] * 2
    assert barrier.broken
    barrier.reset()
    assert not barrier.broken and barrier.n_waiting == 0


def never_wait(barrier, ready):
    ready.set()
    time.sleep(10 * PATIENCE)


def leave_in_order(barrier, ready):
    ready.set()


def test_a_party_that_is_killed_before_it_waits(ctx):
    barrier = ctx.Barrier(2)
    killed(ctx, never_wait, barrier)
    assert outcome(barrier.wait) is threading.BrokenBarrierError
    assert barrier.broken


def test_a_party_that_ends_in_order_breaks_nothing(ctx):
    barrier = ctx.Barrier(2)
    child = ctx.Process(target=leave_in_order, args=(barrier, ctx.Event()))
    child.start()
    child.join()
    thread = threading.Thread(target=lambda: indexes.append(barrier.wait(PATIENCE)))
    indexes = []
    thread.start()
    await_(lambda: barrier.n_waiting == 1)
    time.sleep(0.2)  # longer than a waiter waits before it asks the kernel
    indexes.append(barrier.wait(PATIENCE))
    thread.join()
    assert sorted(indexes) == [0, 1]


def test_texts():
    lock, barrier = shmview.Lock(), shmview.Barrier(2)
    assert repr(shmview.Condition(lock)) == f"<Condition({lock})>"
    assert repr(barrier).endswith(": 0/2>")
    barrier.abort()
    assert repr(barrier).endswith(": broken/2>")


def test_an_action_that_raises():
    def fail():
        raise KeyError
    barrier = shmview.Barrier(1, fail)
    assert outcome(barrier.wait) is KeyError and barrier.broken
    assert outcome(barrier.wait) is threading.BrokenBarrierError
    assert outcome(shmview.Barrier, 0) is ValueError


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_context_is_pickled_by_its_start_method(method):
    context = shmview.get_context(method)
    assert pickle.loads(pickle.dumps(context)) is context and context.get_start_method() == method


def test_a_context_of_another_start_method():
    fork, spawn = map(shmview.get_context, ("fork", "spawn"))
    for context in fork, spawn:
        assert context.get_context() is context
        assert context.get_context("fork") is fork and context.get_context("spawn") is spawn
    assert shmview.get_context() is shmview.get_context(multiprocessing.get_start_method())
    with pytest.raises(ValueError):
        fork.get_context("thread")


def test_the_pool_of_a_context(ctx):
    """It is multiprocessing's. Its workers can use the drop-ins, which its initializer gets."""
    number = ctx.Value("i", 40)
    with ctx.Pool(2, keep, (number,)) as pool:
        assert isinstance(pool, multiprocessing.pool.Pool)
        pool.map(add, [1, 1])
        pool.close()
        pool.join()
    assert number.value == 42


def keep(number):
    global kept
    kept = number


def add(n):
    with kept:
        kept.value += n
