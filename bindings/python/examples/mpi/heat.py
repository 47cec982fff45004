#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Heat in a square plate, whose rim has fixed temperatures: 100 degrees at the left, 0 elsewhere. In each step a
cell becomes the mean of its four neighbours. Each rank has a block of the plate, with a halo of one cell, in a
segment that it shares with the other ranks of its node.

    mpiexec -n 4 python3 -m mpi4py heat.py --cells 1000 --steps 500 --output plate.npy"""

import argparse
from typing import Any, Dict

import numpy
import numpy.typing
from mpi4py import MPI

import shmview
import shmview.mpi

LEFT = 100.0
Cells = numpy.typing.NDArray[numpy.float64]


def set_rim(plate: shmview.mpi.Split) -> None:
    """The rim lies in the halos of the blocks at the edges of the plate."""
    cells = plate.whole.array
    cells[...] = 0
    if plate.place[1] == 0:
        cells[:, 0] = LEFT


def step(new: Cells, old: Cells) -> float:
    """Computes the cells of one time, and returns the largest change."""
    new[1:-1, 1:-1] = 0.25 * (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:])
    return float(abs(new[1:-1, 1:-1] - old[1:-1, 1:-1]).max())


def alone(n: int, steps: int) -> Cells:
    """The same computation on one rank."""
    new, old = numpy.zeros((n + 2, n + 2)), numpy.zeros((n + 2, n + 2))
    new[:, 0] = old[:, 0] = LEFT
    for _ in range(steps):
        step(new, old)
        new, old = old, new
    return old[1:-1, 1:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Heat in a plate, on all ranks.")
    parser.add_argument("--cells", type=int, default=200, help="the length of a side")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--output", help="the last state, as an array of numpy")
    parser.add_argument("--compare", action="store_true", help="compare with the computation of one rank")
    options = parser.parse_args()
    n = options.cells
    comm = MPI.COMM_WORLD

    # Two plates, one after the other in the segment of each node.
    plate: Dict[str, Any] = {"shape": (n, n), "format": "f8", "halo": 1}
    with shmview.mpi.link(comm) as link:
        n_bytes = shmview.mpi.split_bytes(link, **plate)
        with shmview.mpi.open(comm, "heat", 2 * n_bytes) as job:
            old = shmview.mpi.split(link, job, **plate)
            new = shmview.mpi.split(link, job, offset=n_bytes, **plate)
            set_rim(old)
            set_rim(new)
            change = 0.0
            for _ in range(options.steps):
                old.halo()
                change = step(new.whole.array, old.whole.array)
                new, old = old, new
            largest = comm.reduce(change, MPI.MAX)
            if comm.rank == 0:
                print(f"after {options.steps} steps the largest change is {largest:.6g}")
            if options.output:
                old.save(options.output)
            if options.compare:
                everything = numpy.empty((n, n)) if comm.rank == 0 else None
                old.gather(None if everything is None else shmview.wrap(everything))
                if everything is not None:
                    assert (everything == alone(n, options.steps)).all()
                    print("equal to the computation of one rank")


if __name__ == "__main__":
    main()
