#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package beside the standard library and numpy, in one run.

    make bench-python
    PYTHONPATH=build/python bench/python.py [--quick] [--only PATTERN] [--json] [--check] [--daemon PATH]

The two sides of a row take turns. ours and the reference are medians over the rounds in
nanoseconds, the cost of an empty loop taken off; ratio is ours divided by the reference round by
round, then the median; min..max are the extreme rounds. Less is better."""

import argparse
import fnmatch
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing import shared_memory

import numpy

import shmview

MIB = 1 << 20
rows = []


def row(name, reference, target, make):
    """make() returns two functions of no arguments, ours and the reference: the nanoseconds
    that one operation takes. Called again for each run."""
    rows.append((name, reference, target, make))


# --- One operation in a loop -------------------------------------------------

def loop(statement, n, **names):
    """A function that runs the statement n times and returns nanoseconds for each, less the loop."""
    source = "def run(clock):\n    t = clock()\n    for _ in range({n}):\n        {s}\n    return clock() - t\n"
    space = dict(names)
    exec(source.format(n=n, s=statement), space)
    measured = space["run"]
    empty = {}
    exec(source.format(n=n, s="pass"), empty)
    idle = empty["run"]
    clock = time.perf_counter_ns
    return lambda: max(1, measured(clock) - idle(clock)) / n


def statements(ours, theirs, n=20000):
    """Two statements, each with its names."""
    def make():
        (a, a_names), (b, b_names) = ours(), theirs()
        return loop(a, n, **a_names), loop(b, n, **b_names)
    return make


def segment(format="d", n=1000):
    seg = shmview.create(size=8 * n)
    return seg, seg.cast(format, n)


def with_lock():
    return "with x.locked(): pass", {"x": segment()[0]}


def with_guard():
    return "with x: pass", {"x": segment()[0].locked()}


row("with guard:", "threading.RLock", 0.6,
    statements(with_guard, lambda: ("with x: pass", {"x": threading.RLock()})))
row("with guard:", "multiprocessing.Array", 0.3,
    statements(with_guard, lambda: ("with x: pass", {"x": multiprocessing.Array("d", 1000)})))
row("with segment.locked():", "threading.RLock", 0.85,
    statements(with_lock, lambda: ("with x: pass", {"x": threading.RLock()})))
row("with segment.locked():", "multiprocessing.Array", 0.4,
    statements(with_lock, lambda: ("with x: pass", {"x": multiprocessing.Array("d", 1000)})))
row("with segment.shared():", "multiprocessing.RLock", None,
    statements(lambda: ("with x.shared(): pass", {"x": segment()[0]}),
               lambda: ("with x: pass", {"x": multiprocessing.RLock()})))
for _type in ("d", "f", "i", "B"):
    row(f"view[i], {_type}", "numpy", 0.5,
        statements(lambda t=_type: ("x[5]", {"x": segment(t)[1]}), lambda t=_type: ("x[5]", {"x": numpy.zeros(1000, t)})))
    row(f"view[i] = x, {_type}", "numpy", 0.5,
        statements(lambda t=_type: ("x[5] = y", {"x": segment(t)[1], "y": 7.0 if t in "df" else 7}),
                   lambda t=_type: ("x[5] = y", {"x": numpy.zeros(1000, t), "y": 7.0 if t in "df" else 7})))
row("view[i, j]", "numpy", 0.6,
    statements(lambda: ("x[5, 6]", {"x": segment()[1].reshape(10, 100)}),
               lambda: ("x[5, 6]", {"x": numpy.zeros((10, 100))})))
row("view[a:b]", "numpy", 1.2,
    statements(lambda: ("x[5:900]", {"x": segment()[1]}), lambda: ("x[5:900]", {"x": numpy.zeros(1000)})))
row("with segment.locked(): view[i] = x", "multiprocessing.Array", None,
    statements(lambda: (lambda s, v: ("with s.locked(): x[5] = 7", {"s": s, "x": v}))(*segment()),
               lambda: ("x[5] = 7", {"x": multiprocessing.Array("d", 1000)})))
row("numpy.frombuffer(view)", "frombuffer(Array.get_obj())", 0.85,
    statements(lambda: ("f(x)", {"x": segment()[1], "f": numpy.frombuffer}),
               lambda: ("f(x.get_obj())", {"x": multiprocessing.Array("d", 1000), "f": numpy.frombuffer}), 5000))
row("numpy.asarray(view)", "asarray(Array.get_obj())", None,
    statements(lambda: ("f(x)", {"x": segment()[1], "f": numpy.asarray}),
               lambda: ("f(x.get_obj())", {"x": multiprocessing.Array("d", 1000), "f": numpy.asarray}), 5000))
row("view[:1000].tolist()", "numpy", 1.2,
    statements(lambda: ("x[:1000].tolist()", {"x": segment("d", 2000)[1]}),
               lambda: ("x[:1000].tolist()", {"x": numpy.zeros(2000)}), 300))
row("view[:] = array of 1000", "numpy", 1.1,
    statements(lambda: ("x[:] = y", {"x": segment()[1], "y": numpy.ones(1000)}),
               lambda: ("x[:] = y", {"x": numpy.zeros(1000), "y": numpy.ones(1000)}), 5000))
row("view[:] = array of f4, to i4", "numpy, unchecked", None,
    statements(lambda: ("x[:] = y", {"x": segment("i")[1], "y": numpy.ones(1000, "f4")}),
               lambda: ("x[:] = y", {"x": numpy.zeros(1000, "i4"), "y": numpy.ones(1000, "f4")}), 5000))
# What a call costs whatever it copies: most of the row of 1000, so that only 100000 have a target.
row("view[:] = array of 10 f4, to i4", "numpy, unchecked", None,
    statements(lambda: ("x[:] = y", {"x": segment("i", 10)[1], "y": numpy.ones(10, "f4")}),
               lambda: ("x[:] = y", {"x": numpy.zeros(10, "i4"), "y": numpy.ones(10, "f4")}), 5000))
row("view[:] = 100000 of f4, to i4", "numpy, unchecked", 1.3,
    statements(lambda: ("x[:] = y", {"x": segment("i", 100000)[1], "y": numpy.ones(100000, "f4")}),
               lambda: ("x[:] = y", {"x": numpy.zeros(100000, "i4"), "y": numpy.ones(100000, "f4")}), 200))
row("view.summary()", "numpy's sum, min and max", 1,
    statements(lambda: ("x.summary()", {"x": segment()[1]}),
               lambda: ("x.sum(); x.min(); x.max()", {"x": numpy.zeros(1000)}), 2000))
row("view.summary()", "numpy's sum alone", None,
    statements(lambda: ("x.summary()", {"x": segment()[1]}),
               lambda: ("x.sum()", {"x": numpy.zeros(1000)}), 2000))
row("view[:] = list of 1000", "numpy", 1.2,
    statements(lambda: ("x[:] = y", {"x": segment()[1], "y": [1.5] * 1000}),
               lambda: ("x[:] = y", {"x": numpy.zeros(1000), "y": [1.5] * 1000}), 300))


# --- With the daemon ----------------------------------------------------------

def timed(act, n):
    def run():
        t = time.perf_counter_ns()
        for _ in range(n):
            act()
        return (time.perf_counter_ns() - t) / n
    return run


def creation():
    def ours():
        shmview.create("bench-create", 100000).close()

    def theirs():
        memory = shared_memory.SharedMemory("bench-create", create=True, size=100000)
        memory.close()
        memory.unlink()
    return timed(ours, 100), timed(theirs, 100)


def creation_used():
    """What both are for: a lock beside the memory, and bytes in it."""
    frame = bytes(100000)

    def ours():
        segment = shmview.create("bench-use", 100000)
        with segment.locked():
            segment.buf[:] = frame
        segment.close()

    def theirs():
        memory = shared_memory.SharedMemory("bench-use", create=True, size=100000)
        with multiprocessing.RLock():
            memory.buf[:100000] = frame
        memory.close()
        memory.unlink()
    return timed(ours, 100), timed(theirs, 100)


def attachment():
    held = shmview.create("bench-attach", 100000)
    memory = shared_memory.SharedMemory(create=True, size=100000)

    class Kept:
        def __del__(self):
            memory.close()
            memory.unlink()
    kept = Kept()
    return (timed(lambda held=held: shmview.attach("bench-attach").close(), 100),
            timed(lambda kept=kept: shared_memory.SharedMemory(memory.name).close(), 100))


row("create, close", "SharedMemory, close, unlink", 2.5, creation)
row("create, lock, fill, close", "SharedMemory, RLock, unlink", None, creation_used)
row("attach, close", "SharedMemory, close", 2.5, attachment)


# --- A frame from one process to another ---------------------------------------

FRAMES = 100


def copied():
    """A consumer that takes the frame out, to have it for itself."""
    own = numpy.zeros(MIB, "B")

    def take(frame):
        own[:] = frame
    return take


def summed():
    """One that computes on it: numpy takes ten times as long for a sum of bytes as for a copy."""
    return numpy.sum


def our_consumer(name, consumer):
    seg = shmview.attach(name)
    frame, take = numpy.asarray(seg.cast("B", MIB)), consumer()
    for seen in range(0, 2 * FRAMES, 2):
        seg.wait(change=seen)
        assert frame[0] == seen % 256
        take(frame)
        seg.notify()


def their_consumer(name, full, empty, consumer):
    memory = shared_memory.SharedMemory(name)
    frame, take = numpy.frombuffer(memory.buf, "B", MIB), consumer()
    for seen in range(0, 2 * FRAMES, 2):
        full.acquire()
        assert frame[0] == seen % 256
        take(frame)
        empty.release()
    del frame
    memory.close()


def our_frames(consumer):
    seg = shmview.create(size=MIB)
    frame = numpy.asarray(seg.cast("B"))
    child = multiprocessing.Process(target=our_consumer, args=(seg.name, consumer))
    child.start()
    times = []
    for seen in range(0, 2 * FRAMES, 2):
        t = time.perf_counter_ns()
        frame[:] = seen % 256
        seg.notify()
        while seg.wait(change=seen + 1) != seen + 2:
            pass
        times.append(time.perf_counter_ns() - t)
    child.join()
    return statistics.median(times)


def their_frames(consumer):
    memory = shared_memory.SharedMemory(create=True, size=MIB)
    frame = numpy.frombuffer(memory.buf, "B", MIB)
    full, empty = multiprocessing.Semaphore(0), multiprocessing.Semaphore(0)
    child = multiprocessing.Process(target=their_consumer, args=(memory.name, full, empty, consumer))
    child.start()
    times = []
    for seen in range(0, 2 * FRAMES, 2):
        t = time.perf_counter_ns()
        frame[:] = seen % 256
        full.release()
        empty.acquire()
        times.append(time.perf_counter_ns() - t)
    child.join()
    del frame
    memory.close()
    memory.unlink()
    return statistics.median(times)


# On one processor nobody can poll while the other side works: both sides sleep each time, and the
# target is one for two.
ONE_CPU = len(os.sched_getaffinity(0)) == 1
for _consumer, _target in ((copied, 0.8), (summed, None)):
    row(f"1 MiB there, {_consumer.__name__}, back{', one CPU' if ONE_CPU else ''}", "SharedMemory + Semaphore",
        None if ONE_CPU else _target,
        lambda c=_consumer: (lambda: our_frames(c), lambda: their_frames(c)))


# --- The table -----------------------------------------------------------------

def measure(make, rounds):
    ours, theirs = make()
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    ratios = [a / b for a, b in pairs]
    return (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
            statistics.median(ratios), min(ratios), max(ratios))


class Daemon:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="shmview-bench-")
        self.socket = os.environ["SHMVIEW_SOCKET"] = f"{self.folder.name}/io.shmview"
        self.process = subprocess.Popen([program, "--socket", self.socket], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        while not os.path.exists(self.socket):
            assert self.process.poll() is None, f"{program} does not start"
            time.sleep(0.01)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.folder.cleanup()


def as_json(name, reference, target, a, b, ratio, low, high, met):
    result = {"what": name, "ours": a, "unit": "ns", "reference_name": reference, "reference": b,
              "ratio": ratio, "ratio_min": low, "ratio_max": high}
    if target is not None:
        result |= {"target_of": "ratio", "bound": "most", "target": target, "ok": met}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a quarter of the rounds")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--only", default="*", help="rows whose name holds this shell pattern")
    parser.add_argument("--json", action="store_true", help="print one JSON object, as bench does")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    parser.add_argument("--daemon", default=os.environ.get("SHMVIEW_DAEMON", "shmviewd"))
    options = parser.parse_args()
    multiprocessing.set_start_method("fork")
    daemon = Daemon(options.daemon)
    missed, results = 0, []
    try:
        if not options.json:
            print(f"{'row':28} {'ours ns':>10} {'reference':28} {'ns':>10} {'ratio':>6} {'min..max':>12} target")
        for name, reference, target, make in rows:
            if not fnmatch.fnmatch(name, f"*{options.only}*"):
                continue
            a, b, ratio, low, high = measure(make, max(3, options.rounds // (4 if options.quick else 1)))
            met = target is None or ratio <= target
            missed += not met
            if options.json:
                results.append(as_json(name, reference, target, a, b, ratio, low, high, met))
                continue
            said = "" if target is None else f"{target} {'' if met else 'MISSED'}"
            print(f"{name:28} {a:10.1f} {reference:28} {b:10.1f} {ratio:6.2f} {low:5.2f}..{high:<5.2f} {said}", flush=True)
    finally:
        shmview._core._forget_connections()
        daemon.stop()
    if options.json:
        print(json.dumps({"rows": results}, indent=2))
    return options.check and missed > 0


if __name__ == "__main__":
    sys.exit(main())
