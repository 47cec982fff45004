#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""One segment with two phases. In the first, two workers fill the float arrays A and B, and the
parent adds them into C. In the second, the same bytes are the integer arrays D and E. A view of the
first phase then raises StaleViewError."""

import multiprocessing
from typing import Callable

import numpy

import shmview

N = 1000
LAYOUTS = {"float": {"A": ("f4", N), "B": ("f4", N), "C": ("f4", N)},
           "int": {"D": ("i2", 2 * N), "E": ("i4", N)}}


def worker(seg: shmview.Segment, name: str, low: int) -> None:
    """Fills one array in the first phase, and half of D in the second."""
    seg.wait(phase="float", timeout=60)
    with seg.locked():
        seg[name].array[:] = numpy.arange(low, low + N)
        seg.notify()
    seg.wait(phase="int", timeout=60)
    with seg.locked():
        seg["D"].array[low % 2::2] = low
        seg.notify()


def wait_for(seg: shmview.Segment, condition: Callable[[], object]) -> None:
    """Waits for a change until condition() holds under the lock."""
    seen = seg.change
    while True:
        with seg.shared():
            if condition():
                return
        seen = seg.wait(change=seen, timeout=60)


def main() -> None:
    seg = shmview.create(layouts=LAYOUTS)
    workers = [multiprocessing.Process(target=worker, args=(seg, name, low))
               for name, low in (("A", 0), ("B", 1))]
    for process in workers:
        process.start()

    with seg.locked():
        seg.switch("float")
        a, b, c = (seg.view(name) for name in "ABC")
    wait_for(seg, lambda: a[-1] == N - 1 and b[-1] == N)
    with seg.locked():
        numpy.add(a.array, b.array, out=c.array)
        print("float:", c[0], c[N - 1], c.summary().sum)  # 1.0 1999.0 1000000.0

        seg.switch("int")
        d = seg.view("D")
        d.fill(-1)
    try:
        a[0]
    except shmview.StaleViewError as stale:
        print("stale:", stale)
    wait_for(seg, lambda: d[0] == 0 and d[1] == 1)
    for process in workers:
        process.join()
    print("int:", d[:6].tolist(), d.summary().sum)        # [0, 1, 0, 1, 0, 1] 1000.0


if __name__ == "__main__":
    main()
