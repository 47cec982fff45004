#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Frames in streams, beside the queues of multiprocessing and torch, and SharedMemory with semaphores;
options and table as of python.py.

    PYTHONPATH=build/python bench/python_streams.py [--quick] [--only PATTERN] [--json] [--check] [--daemon PATH]

A producer writes frames of 1 MiB of float64, and a consumer in another process adds up each of them. All
sides have room for eight frames, so that producer and consumer work at the same time. The time is that of
one frame. Where there is no torch, its row is left out, and a note on stderr reports that."""

import multiprocessing
import queue
import sys
import time
from multiprocessing import shared_memory

import numpy
from python import MIB, main, row, rows

import shmview

try:
    import torch
    import torch.multiprocessing
except ImportError:
    torch = None

rows.clear()  # those of python.py itself
N, SLOTS, FRAMES = MIB // 8, 8, 200


# --- One call ------------------------------------------------------------------

def pair(slots, shape):
    stream = shmview.create_stream(x=("f8", shape), slots=slots, lossless=True)
    reader = shmview.open_stream(stream.name)
    reader.join()
    return stream, reader


def iteration(n=100, rounds=20):
    """The cost of one frame in a loop, when all frames are there already."""
    stream, reader = pair(128, 4)

    def ours():
        spent = 0
        for _ in range(rounds):
            for _ in range(n):
                stream.loan().publish()
            stream.end()
            t = time.perf_counter_ns()
            for frame in reader:
                pass
            spent += time.perf_counter_ns() - t
        return spent / n / rounds
    return ours


def writing(n=100, rounds=20):
    stream, reader = pair(128, 4)

    def ours():
        spent = 0
        for _ in range(rounds):
            t = time.perf_counter_ns()
            for _ in range(n):
                with stream.loan() as frame:
                    pass
            spent += time.perf_counter_ns() - t
            stream.end()
            for frame in reader:
                pass
        return spent / n / rounds
    return ours


def getting(n=100, rounds=20):
    """The fastest queue of the standard library, within one thread."""
    q = queue.SimpleQueue()

    def theirs():
        spent = 0
        for _ in range(rounds):
            for i in range(n):
                q.put(i)
            t = time.perf_counter_ns()
            for _ in range(n):
                q.get()
            spent += time.perf_counter_ns() - t
        return spent / n / rounds
    return theirs


def limit(ns):
    return lambda: ns


row("for frame in stream", "the target: 1500 ns", 1, lambda: (iteration(), limit(1500)))
row("for frame in stream", "queue.SimpleQueue, one thread", None, lambda: (iteration(), getting()))
row("with stream.loan()", "queue.SimpleQueue, one thread", None, lambda: (writing(), getting()))


# --- Frames of 1 MiB -------------------------------------------------------------

def through(send, consume, *arguments):
    """The time of one of FRAMES frames. consume(done, ...) releases done before the first frame and
    after the last one."""
    done = multiprocessing.Semaphore(0)
    child = multiprocessing.Process(target=consume, args=(done, *arguments))
    child.start()
    done.acquire()
    t = time.perf_counter_ns()
    for i in range(FRAMES):
        send(i)
    done.acquire()
    spent = time.perf_counter_ns() - t
    child.join()
    return spent / FRAMES


def check(total, i):
    assert total == i * N


def take_stream(done, name):
    with shmview.open_stream(name) as reader:
        reader.join()
        done.release()
        for i in range(FRAMES):
            with reader.take() as frame:
                check(frame["x"].array.sum(), i)
        done.release()


def ours():
    stream = shmview.create_stream(x=("f8", N), slots=SLOTS, lossless=True)

    def send(i):
        with stream.loan() as frame:
            frame["x"].array[:] = i
    spent = through(send, take_stream, stream.name)
    stream.close()
    return spent


def take_queue(done, q):
    done.release()
    for i in range(FRAMES):
        check(q.get().sum(), i)
    done.release()


def queued():
    q = multiprocessing.Queue(SLOTS)
    spent = through(lambda i: q.put(numpy.full(N, float(i))), take_queue, q)
    q.close()
    q.join_thread()
    return spent


def take_memory(done, name, full, empty):
    memory = shared_memory.SharedMemory(name)
    frames = numpy.frombuffer(memory.buf, "f8", N * SLOTS).reshape(SLOTS, N)
    done.release()
    for i in range(FRAMES):
        full.acquire()
        check(frames[i % SLOTS].sum(), i)
        empty.release()
    done.release()
    del frames
    memory.close()


def by_hand():
    memory = shared_memory.SharedMemory(create=True, size=MIB * SLOTS)
    frames = numpy.frombuffer(memory.buf, "f8", N * SLOTS).reshape(SLOTS, N)
    full, empty = multiprocessing.Semaphore(0), multiprocessing.Semaphore(SLOTS)

    def send(i):
        empty.acquire()
        frames[i % SLOTS][:] = i
        full.release()
    spent = through(send, take_memory, memory.name, full, empty)
    del frames
    memory.close()
    memory.unlink()
    return spent


def torch_queued():
    q = torch.multiprocessing.Queue(SLOTS)
    spent = through(lambda i: q.put(torch.full((N,), float(i), dtype=torch.float64)), take_queue, q)
    q.close()
    q.join_thread()
    return spent


row("1 MiB written and summed", "multiprocessing.Queue", 0.05, lambda: (ours, queued))
row("1 MiB written and summed", "SharedMemory, two Semaphores", None, lambda: (ours, by_hand))
if torch:
    row("1 MiB written and summed", "torch.multiprocessing.Queue", 0.083, lambda: (ours, torch_queued))

if __name__ == "__main__":
    if torch:
        torch.set_num_threads(1)
    else:
        print("no torch (python3-torch): its row is left out", file=sys.stderr)
    sys.exit(main())
