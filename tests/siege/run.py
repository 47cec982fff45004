#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A stateful fuzzer of shmviewd; README.md beside it describes it.

    run.py [--seed N] [--sieges N] [--steps N] [--seconds S] [--verbose]

A siege is one daemon and one seed. The sieges of a run have seeds N, N+1, ...
"""

import argparse
import os
import sys
import time

sys.dont_write_bytecode = True

import agent  # noqa: E402
import oracle  # noqa: E402
import step_daemon  # noqa: E402
import steps  # noqa: E402
from server import Broken  # noqa: E402
from siege import Siege  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36


def parse(arguments):
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--daemon", default=os.environ.get("SHMVIEWD"), help="the program (default: $SHMVIEWD)")
    p.add_argument("--seed", type=int, default=1, help="of the first siege (default: 1)")
    p.add_argument("--steps", type=int, default=200, help="of each siege (default: 200)")
    p.add_argument("--sieges", type=int, default=1 << 30, help="how many (default: until the time is over)")
    p.add_argument("--seconds", type=float, default=20, help="no siege begins after that (default: 20)")
    p.add_argument("--patience", type=float, default=20, help="seconds that any answer may take (default: 20)")
    p.add_argument("--spoil", type=float, default=1, help="how often objects are spoiled, 0 to 1 (default: 1)")
    p.add_argument("--log", help="file for what the daemon logs (default: one that goes)")
    p.add_argument("--verbose", action="store_true", help="print every step")
    options = p.parse_args(arguments)
    if not options.daemon:
        p.error("SHMVIEWD must name the daemon")
    return options


def besiege(seed, options):
    """Runs one siege and prints its longest reply to a bystander. Returns whether the daemon
    withstood it."""
    siege = Siege(seed, options)
    try:
        siege.begin()
        names, weights = list(steps.TABLE), list(steps.TABLE.values())
        for _ in range(options.steps):
            siege.step += 1
            siege.rng.choices(names, weights)[0](siege)
            siege.note_seen()
            siege.ping()
        siege.step += 1
        step_daemon.check(siege)
        oracle.finish(siege)
        return siege.auditor.worst
    except (Broken, RuntimeError) as e:
        report(siege, e)
        return None
    except Exception:
        report(siege, "the siege itself failed")
        raise
    finally:
        siege.end()


def report(siege, fault):
    print(f"\nseed {siege.seed}, step {siege.step}: {fault}\n\nhistory, shortened:\n{siege.shortened(str(fault))}\n")
    print(f"the daemon's log, its end:\n{siege.server.said(most=3000)}")
    print(f"again: run.py --seed {siege.seed} --sieges 1 --steps {siege.options.steps} --verbose", flush=True)


def main():
    options = parse(sys.argv[1:])
    agent.LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:detect_stack_use_after_return=1")
    os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
    print(f"sieges from seed {options.seed}, {options.steps} steps each", flush=True)
    began, seed, worst = time.monotonic(), options.seed, 0.0
    while seed < options.seed + options.sieges and time.monotonic() - began < options.seconds:
        held = besiege(seed, options)
        if held is None:
            return 1
        worst = max(worst, held)
        seed += 1
    print(f"{seed - options.seed} sieges held in {time.monotonic() - began:.0f} s; "
          f"the longest wait of a bystander was {worst * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
