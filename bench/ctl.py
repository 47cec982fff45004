#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""shmviewctl beside programs that do the like with files, in one run.

    make bench-ctl
    bench/ctl.py --build build/release [--quick] [--only PATTERN] [--check]

Each figure is a whole run of a program. The two sides of a row take turns; ours and the reference
are medians over the rounds in milliseconds; ratio is ours divided by the reference round by round,
then the median; min..max are the extreme rounds. Less is better."""

import argparse
import contextlib
import fnmatch
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import shmview

N_SEGMENTS = 10000
rows = []


def row(name, reference, target=None, target_ms=None):
    """Notes make(work), a context manager that gives two commands, ours and the reference. target is
    of the ratio, target_ms of ours."""
    def note(make):
        rows.append((name, reference, target, target_ms, make))
        return make
    return note


class Work:
    """A daemon in a directory of its own, and shmviewctl for it."""

    def __init__(self, build, directory):
        self.directory = directory
        self.ctl = os.path.join(build, "cli/shmviewctl")
        self.socket = os.path.join(directory, "io.shmview")
        self.environment = dict(os.environ, SHMVIEW_SOCKET=self.socket, SHMVIEW_CONFIG="/dev/null")
        ready, told = os.pipe()
        self.daemon = subprocess.Popen([os.path.join(build, "daemon/shmviewd"), "--socket",
                                        self.socket, "--ready-fd", str(told)],
                                       env=self.environment, pass_fds=[told],
                                       stderr=subprocess.DEVNULL)
        os.close(told)
        os.read(ready, 1)
        os.close(ready)
        self.connection = shmview.connect(self.socket)

    def end(self):
        self.daemon.send_signal(signal.SIGINT)
        self.daemon.wait()

    def time_ms(self, command):
        begin = time.perf_counter()
        subprocess.run(command, check=True, env=self.environment, stdout=subprocess.DEVNULL)
        return (time.perf_counter() - begin) * 1000


# --- The rows ----------------------------------------------------------------

@contextlib.contextmanager
def many_segments(work):
    names = [f"segment.{i}" for i in range(N_SEGMENTS)]
    for name in names:
        shmview.create(name, 4096, lifetime="manual", connection=work.connection).close()
    yield
    for name in names:
        shmview.remove(name, connection=work.connection)


@row(f"list, {N_SEGMENTS} segments", f"ls -l, {N_SEGMENTS} files", target_ms=500)
@contextlib.contextmanager
def list_many(work):
    with tempfile.TemporaryDirectory(dir=work.directory) as files, many_segments(work):
        for i in range(N_SEGMENTS):
            open(os.path.join(files, f"segment.{i}"), "w").close()
        yield [work.ctl, "list"], ["ls", "-l", files]


@row(f"list --json, {N_SEGMENTS} segments", "list")
@contextlib.contextmanager
def list_json(work):
    with many_segments(work):
        yield [work.ctl, "list", "--json"], [work.ctl, "list"]


# --- The table ---------------------------------------------------------------

def measure(work, make, rounds):
    with make(work) as commands:
        for command in commands:
            work.time_ms(command)
        return list(zip(*[[work.time_ms(command) for command in commands] for _ in range(rounds)]))


def show(name, reference, target, target_ms, ours, theirs):
    """Prints the row. Returns whether it misses its target."""
    ratios = sorted(a / b for a, b in zip(ours, theirs))
    mine, ratio = statistics.median(ours), statistics.median(ratios)
    missed = target is not None and ratio > target or target_ms is not None and mine > target_ms
    wanted = f"<= {target:.2f}x" if target else f"<= {target_ms} ms" if target_ms else ""
    verdict = "" if not wanted else " MISSED" if missed else " ok"
    print(f"{name:36}{mine:8.0f}  {reference:26}{statistics.median(theirs):8.0f}  ms  {ratio:8.2f}"
          f"  {ratios[0]:.2f}..{ratios[-1]:.2f}  {wanted}{verdict}", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--only", default="*", help="rows whose name fits")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    options = parser.parse_args()
    n_missed = 0
    with tempfile.TemporaryDirectory(prefix="shmview-bench-") as directory:
        work = Work(os.path.abspath(options.build), directory)
        try:
            for name, reference, target, target_ms, make in rows:
                if fnmatch.fnmatch(name, options.only):
                    measured = measure(work, make, 5 if options.quick else 21)
                    n_missed += show(name, reference, target, target_ms, *measured)
        finally:
            work.end()
    sys.exit(1 if options.check and n_missed else 0)


main()
