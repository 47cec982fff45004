#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A frame for another process, beside torch.multiprocessing's queue; options and table as of python.py.

    PYTHONPATH=build/python bench/python_torch.py [--quick] [--only PATTERN] [--json] [--check] [--daemon PATH]

The producer writes a frame of 1 MiB, the consumer is woken up, looks at its first and its last byte,
and wakes up the producer. Where there is no torch, nothing is measured, and a note on stderr reports that."""

import multiprocessing
import statistics
import sys
import time

try:
    import torch
    import torch.multiprocessing
except ImportError:
    print("no torch (python3-torch): nothing is measured", file=sys.stderr)
    print('{"rows": []}' if "--json" in sys.argv else "", end="")
    sys.exit(0)
from python import FRAMES, MIB, main, row, rows

import shmview

rows.clear()  # those of python.py itself


def rounds(send, consumer, *arguments):
    """The median time of FRAMES frames that send() takes to the consumer and back."""
    child = multiprocessing.Process(target=consumer, args=arguments)
    child.start()
    times = []
    for i in range(FRAMES):
        t = time.perf_counter_ns()
        send(i)
        times.append(time.perf_counter_ns() - t)
    child.join()
    return statistics.median(times)


def check(frame, i):
    assert frame[0] == frame[-1] == i % 256


def our_consumer(name):
    seg = shmview.attach(name)
    frame = torch.from_dlpack(seg.cast("B"))
    for i in range(FRAMES):
        seg.wait(change=2 * i)
        check(frame, i)
        seg.notify()


def ours():
    seg = shmview.create(size=MIB)
    frame = torch.from_dlpack(seg.cast("B"))

    def send(i):
        frame.fill_(i % 256)
        seg.notify()
        while seg.wait(change=2 * i + 1) != 2 * i + 2:
            pass
    return rounds(send, our_consumer, seg.name)


def their_consumer(queue, done):
    for i in range(FRAMES):
        check(queue.get(), i)
        done.release()


def theirs():
    queue, done = torch.multiprocessing.Queue(), torch.multiprocessing.Semaphore(0)

    def send(i):
        queue.put(torch.full((MIB,), i % 256, dtype=torch.uint8))
        done.acquire()
    return rounds(send, their_consumer, queue, done)


def queued():
    """The same, on a queue of torch's own, with one tensor that was moved to shared memory before."""
    queue, done = torch.multiprocessing.Queue(), torch.multiprocessing.Semaphore(0)
    frame = torch.zeros(MIB, dtype=torch.uint8).share_memory_()

    def send(i):
        frame.fill_(i % 256)
        queue.put(frame)
        done.acquire()
    return rounds(send, their_consumer, queue, done)


row("1 MiB to a consumer and back", "torch.multiprocessing.Queue", 0.083, lambda: (ours, theirs))
row("1 MiB to a consumer and back", "the same, shared before", None, lambda: (ours, queued))

if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
