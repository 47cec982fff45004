# SPDX-License-Identifier: Apache-2.0
"""Queue, JoinableQueue and SimpleQueue, and what a killed process leaves in them. CPython's own tests
of these classes are in cpython.py."""

import multiprocessing.queues
import os
import pickle
import queue as standard
import random
import signal
import threading
import time
import weakref

import pytest
from conftest import PATIENCE, await_, outcome
from test_synchronize import deaths, die_inside, keeps_out, killed, words

import shmview

pytestmark = pytest.mark.usefixtures("no_arena_left")
LARGE = 3_000_000  # bytes, more than the ring has


@pytest.fixture(params=["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def ctx(request):
    return shmview.get_context(request.param)


def test_order_and_state():
    queue = shmview.Queue(3)
    assert isinstance(queue, multiprocessing.queues.Queue) and queue.empty() and not queue.full()
    for item in 1, b"x" * LARGE, None:
        queue.put(item)
    assert queue.full() and queue.qsize() == 3
    assert outcome(queue.put, 4, True, 0.01) is standard.Full
    assert outcome(queue.put_nowait, 4) is standard.Full
    assert [queue.get(), len(queue.get()), queue.get(timeout=PATIENCE)] == [1, LARGE, None]
    assert outcome(queue.get, True, 0.01) is standard.Empty and outcome(queue.get_nowait) is standard.Empty
    queue.close()
    assert outcome(queue.put, 1) is ValueError and outcome(queue.get) is ValueError
    queue.join_thread()
    assert outcome(queue.empty) is OSError
    assert outcome(shmview.Queue, 2**31) is ValueError
    with pytest.raises(RuntimeError, match="inheritance"):
        pickle.dumps(queue)


def test_more_than_the_ring_has():
    queue = shmview.Queue()
    for n in range(2000):  # nobody reads: they wait in this process
        queue.put((n, b"x" * 1000))
    assert queue.qsize() == 2000
    assert [queue.get()[0] for _ in range(2000)] == list(range(2000))
    end(queue)


def test_sizes_around_a_frame_and_the_end_of_the_ring():
    queue = shmview.SimpleQueue()
    numbers = random.Random(1)
    for n in [65500 + i for i in range(60)] + [numbers.randrange(200_000) for _ in range(300)]:
        data = numbers.getrandbits(8 * n + 8).to_bytes(n + 1, "little")
        queue.put(data)
        assert queue.get() == data
    queue.close()
    assert outcome(queue.get) is OSError


def echo(there, back):
    for item in iter(there.get, None):
        back.put(item)


def test_between_processes(ctx):
    there, back = ctx.Queue(), ctx.SimpleQueue()
    children = [ctx.Process(target=echo, args=(there, back)) for _ in range(2)]
    for child in children:
        child.start()
    for n in range(300):
        there.put((n, b"y" * (n % 7 * 50_000)))
    got = sorted(back.get() for _ in range(300))
    assert [(n, len(data)) for n, data in got] == [(n, n % 7 * 50_000) for n in range(300)]
    for child in children:
        there.put(None)
    for child in children:
        child.join()
    end(there)


# --- Killed processes -----------------------------------------------------------

def end(queue):
    """Ends the thread of a queue, which keeps its memory."""
    if isinstance(queue, shmview.Queue):
        queue.close()
        queue.join_thread()


def put_large(queue, ready):
    ready.set()
    while True:
        queue.put(bytes(LARGE))


def test_a_writer_is_killed_within_an_item(ctx):
    for make in ctx.Queue, ctx.SimpleQueue:
        queue = make()
        memory = words(queue._memory)
        child = ctx.Process(target=put_large, args=(queue, ctx.Event()))
        child.start()
        await_(lambda: memory[208 // 4 + 7])  # WRITER: between two frames, and the ring is full
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        timer = threading.Timer(0.1, queue.put, ("next",))
        timer.start()
        assert queue.get() == "next"
        timer.join()
        assert queue.empty()
        end(queue)


def get_all(queue, ready):
    ready.set()
    while True:
        queue.get()


def test_a_reader_is_killed_within_an_item(ctx):
    queue = ctx.Queue()
    memory = words(queue._memory)
    child = ctx.Process(target=get_all, args=(queue, ctx.Event()))
    child.start()
    feeder = threading.Thread(target=lambda: queue.put(bytes(100_000_000)))
    feeder.start()
    await_(lambda: memory[208 // 4 + 9])  # READER
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    feeder.join()
    queue.put("next")
    assert queue.get() == "next"
    end(queue)


def put_and_wait(queue, ready):
    for _ in range(3):
        queue.put(bytes(LARGE))
    ready.set()
    time.sleep(10 * PATIENCE)


def test_items_that_died_with_their_process_take_no_room(ctx):
    queue = ctx.Queue(3)
    killed(ctx, put_and_wait, queue)
    assert queue.full()
    while not queue.empty():
        assert outcome(queue.get, True, 0.3) in (standard.Empty, bytes(LARGE))
    for n in range(3):
        queue.put(n, timeout=PATIENCE)
    assert [queue.get() for _ in range(3)] == [0, 1, 2]


def get_one(queue, ready):
    queue.get()
    ready.set()
    time.sleep(10 * PATIENCE)


def test_join_after_a_death(ctx):
    queue = ctx.JoinableQueue()
    for n in range(2):
        queue.put(n)
    pid = killed(ctx, get_one, queue)
    assert queue.get() == 1
    queue.task_done()
    assert deaths(queue.join) == (None, [pid])
    assert outcome(queue.task_done) is ValueError
    assert deaths(queue.join) == (None, [])


def test_items_that_are_done_before_they_are_got(ctx):
    queue = ctx.JoinableQueue()
    for n in range(3):
        queue.put(n)
    for _ in range(3):
        queue.task_done()  # of items that nobody has got yet: only their number counts
    assert outcome(queue.task_done) is ValueError
    queue.join()
    assert [queue.get() for _ in range(3)] == [0, 1, 2]
    assert outcome(queue.task_done) is ValueError
    queue.join()
    queue.put(3)
    assert queue.get() == 3
    queue.put(4)
    for _ in range(2):
        queue.task_done()
    assert queue.get() == 4 and outcome(queue.task_done) is ValueError
    queue.join()
    assert outcome(ctx.Queue()._memory.task_done) is ValueError


def test_a_death_inside():
    queue = shmview.Queue(1)
    queue.put("kept")
    die_inside(words(queue._memory), n_writes=0)
    assert queue.get() == "kept" and queue.empty()


def test_a_queue_whose_mutex_is_kept_has_timeouts():
    queue = shmview.Queue(1)
    put, get = queue.put, queue.get
    queue.put("first")
    assert keeps_out(queue._memory, (get, False), (get, True, 0.001)) == [standard.Empty] * 2
    assert queue.get_nowait() == "first"
    assert keeps_out(queue._memory, (put, 1, False), (put, 1, True, 0.001)) == [standard.Full] * 2
    assert queue.empty()


class Sudden(weakref.ref):
    """A reference after whose use no other one is left."""
    kept = ()

    def __call__(self):
        queue = super().__call__()
        Sudden.kept = ()
        return queue


def test_a_queue_that_ends_while_its_thread_looks():
    queue = shmview.Queue()
    change, memory, buffer = queue._change, queue._memory, queue._buffer
    Sudden.kept = [queue]
    reference = Sudden(queue, shmview.queues._notifier(change))
    del queue
    thread = threading.Thread(target=shmview.Queue._feed, args=(reference, memory, buffer, change), daemon=True)
    thread.start()
    await_(lambda: change._waiters or not thread.is_alive(), PATIENCE)
    Sudden.kept = ()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_damaged_memory():
    queue = shmview.Queue()
    memory = words(queue._memory)
    for bad in 2**32 - 1, 2**31, 1_000_000:
        queue.put("lost")
        memory[(256 + 2048) // 4 + memory[208 // 4 + 1] % 2**18 // 4] = bad  # bytes of the frame
        assert outcome(queue.get_nowait) is standard.Empty
    memory[208 // 4] += 2**30  # HEAD
    assert outcome(queue.get_nowait) is standard.Empty
    queue.put("next")
    assert queue.get() == "next"


# --- Anywhere -------------------------------------------------------------------

def work(everything):
    tasks, results, permits, condition, count = everything
    while True:
        task = tasks.get()
        if task is None:
            tasks.task_done()
            return
        with permits:
            results.put(task)
        with condition:
            count.value += 1
            condition.notify()
        tasks.task_done()


@pytest.mark.filterwarnings("ignore::shmview.OwnerDiedWarning")
@pytest.mark.slow
def test_workers_are_killed_anywhere():
    """A few hundred processes are killed at random times. The others go on, and no item comes out
    changed or twice."""
    ctx, numbers = shmview.get_context("fork"), random.Random(5)
    everything = (ctx.JoinableQueue(20), ctx.Queue(), ctx.BoundedSemaphore(2), ctx.Condition(),
                  ctx.Value("i", 0, lock=False))
    tasks, results, permits, condition, count = everything
    sizes = [0, 100, 5000, 70_000, 300_000]

    def start():
        child = ctx.Process(target=work, args=(everything,))
        child.start()
        return child

    def collect():
        while True:
            item = results.get(timeout=3 * PATIENCE)
            if item is None:
                return
            n, data = item
            assert data == bytes([n % 256]) * sizes[n % len(sizes)]
            got.append(n)

    got, sent, n_killed = [], 0, 0
    collector = threading.Thread(target=collect)
    children = [start() for _ in range(3)]
    collector.start()
    limit = time.monotonic() + 6
    while time.monotonic() < limit and n_killed < 200:
        for _ in range(numbers.randrange(20)):
            tasks.put((sent, bytes([sent % 256]) * sizes[sent % len(sizes)]), timeout=3 * PATIENCE)
            sent += 1
        time.sleep(numbers.random() / 100)
        victim = numbers.randrange(3)
        children[victim].kill()
        children[victim].join()
        children[victim] = start()
        n_killed += 1
    after = range(sent, sent + 60)
    for n in after:
        tasks.put((n, bytes([n % 256]) * sizes[n % len(sizes)]), timeout=3 * PATIENCE)
    tasks.join()
    for child in children:
        tasks.put(None)
    for child in children:
        child.join()
        assert child.exitcode == 0
    results.put(None)
    collector.join()
    assert len(got) == len(set(got)) and set(got) <= set(range(after.stop))
    assert permits.acquire(timeout=PATIENCE) and permits.acquire(timeout=PATIENCE)
    # A killed worker takes along what its thread has not sent yet: much, on a busy machine.
    assert set(after) <= set(got)
    end(tasks)
    end(results)
