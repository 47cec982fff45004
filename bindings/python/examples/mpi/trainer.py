#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A trainer broadcasts parameters to workers. Rank 0 is the trainer; the others compute gradients from data that
each has for itself. All ranks of a node read the parameters in its segment, so they are there once.

There are two sets of parameters, which the trainer fills by turns. The name of the phase is that of the current set,
and its generation is the version. So a reader that takes no part in the job can use one version as a whole: here a thread
on each node, which computes the error of the versions that it sees. Another program on the node could do the same.

    mpiexec -n 4 python3 -m mpi4py trainer.py"""

import threading
from typing import List, Tuple

import numpy
import numpy.typing
from mpi4py import MPI

import shmview
import shmview.mpi

Numbers = numpy.typing.NDArray[numpy.float64]
LENGTH, ROWS, STEPS, RATE = 100, 200, 30, 0.5


def watch(seg: shmview.Segment, truth: Numbers, ret_seen: List[Tuple[int, float]]) -> None:
    """Waits for versions, until the last one."""
    version = 0
    while version < STEPS:
        version = seg.wait(generation=version, timeout=60)
        with seg.shared():
            weights = seg["weights"]
            version = weights.generation or 0
            error = float(abs(weights.array - truth).max())
        ret_seen.append((version, error))


def gradient(weights: Numbers, data: Numbers, wanted: Numbers) -> Numbers:
    return data.T @ (data @ weights - wanted) / ROWS


def main() -> None:
    comm = MPI.COMM_WORLD
    me, n_ranks = comm.rank, comm.size
    truth = numpy.random.default_rng(0).normal(size=LENGTH)
    data = numpy.random.default_rng(me).normal(size=(ROWS, LENGTH)) / numpy.sqrt(LENGTH / ROWS)
    wanted = data @ truth

    at, layouts = 8 * LENGTH, {}
    for name in "even", "odd":
        layouts[name] = {"weights": ("f8", LENGTH, at * (name == "odd")), "gradients": ("f8", (n_ranks, LENGTH), 2 * at),
                         "sum": ("f8", LENGTH, (2 + n_ranks) * at)}
    with shmview.mpi.open(comm, "trainer", layouts=layouts) as job:
        seg = job.segment
        seen: List[Tuple[int, float]] = []
        watcher = threading.Thread(target=watch, args=(seg, truth, seen))
        if job.is_leader:
            watcher.start()
        current = numpy.zeros(LENGTH)  # of the trainer
        for version in range(1, STEPS + 1):
            phase = ("even", "odd")[version % 2]
            weights = job.view("weights", phase)
            if me == 0:
                weights.array[:] = current
            job.bcast(weights, root=0, phase=phase)
            assert seg.generation == version and seg.phase == phase

            own = seg["gradients"][me]
            own.array[:] = gradient(seg["weights"].array, data, wanted) if me > 0 else 0
            job.reduce(own, seg["sum"], MPI.SUM, root=0)
            if me == 0:
                current -= RATE / max(n_ranks - 1, 1) * seg["sum"].array
        if job.is_leader:
            watcher.join()
            versions = [version for version, _ in seen]
            assert versions == sorted(versions) and versions[-1] == STEPS
        best = comm.allreduce(seen[-1][1] if seen else 0.0, MPI.MAX)
        if me == 0:
            print(f"version {STEPS} on {job.nodes} nodes: the largest error fell from {abs(truth).max():.2f} to {best:.2f}")


if __name__ == "__main__":
    main()
