#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Two phases on all nodes in the same bytes. In the first, the ranks measure floats, whose mean over all ranks
arrives in every segment. In the second, the bytes are integers: how far each value is from the mean, as a
histogram. A view of the first phase then raises StaleViewError.

    mpiexec -n 4 python3 -m mpi4py phases.py"""

import numpy
from mpi4py import MPI

import shmview
import shmview.mpi

N, BINS = 10000, 8


def main() -> None:
    comm = MPI.COMM_WORLD
    me, n_ranks = comm.rank, comm.size
    layouts = {"float": {"samples": ("f4", (n_ranks, N)), "total": ("f4", N)},
               "int": {"edges": ("i4", BINS + 1), "counts": ("i4", (n_ranks, BINS)), "histogram": ("i4", BINS)}}
    with shmview.mpi.open(comm, "phases", layouts=layouts) as job:
        seg = job.segment
        samples, total = job.view("samples", "float"), job.view("total", "float")
        samples[me].array[:] = numpy.random.default_rng(me).normal(size=N)
        job.allreduce(samples[me], total, phase="float")

        # The views of the phase that begins now.
        samples, total = seg["samples"], seg["total"]
        distance = abs(samples[me].array - total.array / n_ranks)
        if me == 0:
            print(f"{seg.phase}: the mean of all is {total.array.mean() / n_ranks:.4f}")

        # When each rank has its copy, the same bytes become integers, first on rank 0.
        edges = job.view("edges", "int")
        comm.Barrier()
        if me == 0:
            edges[:] = [500 * i for i in range(BINS + 1)]
        job.bcast(edges, phase="int")
        try:
            total[0]
        except shmview.StaleViewError as stale:
            if me == 0:
                print("stale:", stale)

        counts, histogram = seg["counts"][me], seg["histogram"]
        counts.array[:], _ = numpy.histogram(1000 * distance, seg["edges"].array)
        job.allreduce(counts, histogram)
        if me == 0:
            print(f"{seg.phase}: {histogram.tolist()}, together {int(histogram.summary().sum)} of {n_ranks * N}")


if __name__ == "__main__":
    main()
