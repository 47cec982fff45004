# SPDX-License-Identifier: Apache-2.0
"""nodes: 2. Arrays that are divided over the ranks: blocks, halos, copies, gathers and files, beside numpy."""

import os
import sys
import tempfile

import numpy
from mpi4py import MPI

import shmview
import shmview.mpi
from support import comm, me, n_ranks, raises

SPLITS = [
    dict(shape=10, format="i4"),
    dict(shape=(11,), format="i4", distribution="cyclic"),
    dict(shape=(23,), format="f8", distribution="cyclic", block=3),
    dict(shape=(8, 6), format="f4", halo=1),
    dict(shape=(8, 6), format="f4", halo=(1, 2), periodic=True),
    dict(shape=(9, 7), format="i8", distribution=("cyclic", "block"), block=(2, None)),
    dict(shape=(9, 7), format="i8", distribution=("whole", "block")),
    dict(shape=(9, 7), format=">f8", grid=(n_ranks, 0)),
    dict(shape=(5, 4, 6), format="c16", periodic=(False, True, False), halo=(0, 1, 0)),
    dict(shape=(4, 5), format="<f8", offset=4),
    dict(shape=(700, 300), format="f4", halo=(2, 1)),
]


def fill(split, everything):
    """Stores this rank's elements, one by one, and returns whether there are any."""
    block = split.block.array
    for index in numpy.ndindex(block.shape):
        block[index] = everything[split.global_index(index)]
    return block.size > 0


def bounds(split):
    """Where the block begins in the global array, and its shape, for the distribution in one block."""
    shape = split.block.shape
    return split.global_index((0,) * len(shape)) if 0 not in shape else None, shape


def check_halo(split, everything, spec):
    """The halo has the neighbours' elements; where there are none, what was there."""
    n = everything.ndim
    halo = spec["halo"] if isinstance(spec["halo"], tuple) else (spec["halo"],) * n
    periodic = spec.get("periodic", False)
    periodic = periodic if isinstance(periodic, tuple) else (periodic,) * n
    whole = split.whole.array
    begin, shape = bounds(split)
    assert whole.shape == tuple(length + 2 * width for length, width in zip(shape, halo))
    inner = whole[tuple(slice(width, width + length) for width, length in zip(halo, shape))]
    kept = inner.copy()
    whole[...] = -1
    inner[...] = kept
    comm.Barrier()
    split.halo(timeout=60)
    for index in numpy.ndindex(whole.shape):
        place = [b + i - width for b, i, width in zip(begin, index, halo)]
        is_outside = any(not periodic[d] and not 0 <= place[d] < everything.shape[d] for d in range(n))
        wanted = -1 if is_outside else everything[tuple(p % length for p, length in zip(place, everything.shape))]
        assert whole[index] == wanted, (spec, index)


def check(link, job, spec, turn):
    root = turn % n_ranks
    shape = spec["shape"] if isinstance(spec["shape"], tuple) else (spec["shape"],)
    everything = numpy.arange(1, 1 + int(numpy.prod(shape))).reshape(shape).astype(spec["format"])
    offset = spec.get("offset", 64)
    spec = {name: value for name, value in spec.items() if name != "offset"}
    n_bytes = shmview.mpi.split_bytes(link, **spec)
    half = job.segment.size // 2
    assert comm.allreduce(n_bytes) == n_bytes * n_ranks and n_bytes <= half
    split = shmview.mpi.split(link, job, offset=offset, **spec)
    assert split.shape == shape and numpy.prod(split.grid) == n_ranks and all(
        0 <= place < n for place, n in zip(split.place, split.grid))
    fill(split, everything)
    if "halo" in spec:
        check_halo(split, everything, spec)
    gathered = numpy.zeros_like(everything)
    split.gather(shmview.wrap(gathered) if me == root else None, root, timeout=60)
    assert (gathered == (everything if me == root else 0)).all(), spec

    other = shmview.mpi.split(link, job.segment, shape, spec["format"], offset=half)
    other.block.fill(0)
    comm.Barrier()
    split.copy(other)
    for index in numpy.ndindex(other.block.shape):
        assert other.block.array[index] == everything[other.global_index(*index)]

    path = os.path.join(tempfile.gettempdir(), "split.npy")
    split.save(path if me == root else None, root)
    if me == root:
        assert (numpy.load(path) == everything).all()
        os.unlink(path)
    comm.Barrier()
    kept = split.block
    split.close()
    assert split.closed and split.block is None and kept.format
    with raises(ValueError):
        split.halo()
    other.close()


def check_errors(link, job):
    split = shmview.mpi.split(link, job, (8, 6), "f4", halo=1)
    with raises(shmview.Bounds):
        split.global_index(100, 0)
    with raises(ValueError, text="2 dimensions"):
        split.global_index(1)
    with raises(ValueError, text="'block', 'cyclic' or 'whole'"):
        shmview.mpi.split(link, job, 8, "f4", distribution="round")
    with raises(ValueError, text="halo: one value for each of 1"):
        shmview.mpi.split(link, job, 8, "f4", halo=(1, 1))
    with raises(shmview.Invalid):
        shmview.mpi.split(link, job, 8, "f4", grid=n_ranks + 1)
    with raises(OverflowError, text="does not fit into 4 bytes"):
        shmview.mpi.split(link, job, 8, "f4", grid=2**32)
    with raises(OverflowError, text="-4 does not fit"):
        shmview.mpi.split(link, job, 8, "f4", offset=-4)
    with raises(shmview.ConversionError):
        shmview.mpi.split_bytes(link, 8 + (me == 1), "f4")
    with raises(shmview.Bounds):
        shmview.mpi.split(link, job, 10**7, "f4")
    with raises(shmview.FormatError):
        shmview.mpi.split_bytes(link, 8, "nothing")
    with raises(shmview.SystemCallFailed):
        split.save("/nowhere/split.npy", n_ranks - 1)
    with raises(shmview.ConversionError):
        split.gather(split.block, n_ranks - 1)
    # A target that cannot be used on the root is an error of all, at once.
    released = shmview.wrap(numpy.zeros((8, 6), "f4"))
    released.release()
    for target, error in (None, TypeError), ([1], TypeError), (released, ValueError):
        with raises(error if me == 1 else shmview.Invalid):
            split.gather(target, 1)
    for path, error in (None, TypeError), ("a\0b", ValueError):
        with raises(error if me == 1 else shmview.Invalid):
            split.save(path, 1)
    for root in 2**32, -2**32:
        with raises(shmview.Invalid):
            split.gather(split.block, root)
    split.halo()
    with raises(shmview.Busy):
        job.segment.close()
    link.close()
    assert split.closed
    with raises(ValueError):
        split.halo()


def check_lost():
    """After a timeout MPI may still use the memory of both splits and of a view, so that it stays."""
    kept, other, alone = (shmview.create(f"{name}-{me}", 1 << 16) for name in ("kept", "other", "alone"))
    target = bytearray(8 * 6 * 4)
    for make in (lambda a, b: a.halo(timeout=0.05), lambda a, b: a.copy(b, timeout=0.05),
                 lambda a, b: a.gather(shmview.wrap(target, "f4", (8, 6)), timeout=0.05)):
        link = shmview.mpi.link(comm)
        a = shmview.mpi.split(link, kept, (8, 6), "f4", halo=1, node=MPI.COMM_SELF)
        b, last = (shmview.mpi.split(link, segment, (8, 6), "f4", distribution="cyclic", node=MPI.COMM_SELF)
                   for segment in (other, alone))
        if me == 0:
            with raises(shmview.TimedOut):
                make(a, b)
            with raises(shmview.Lost):
                last.halo()
            link.close()
        comm.Barrier()
        for split in (a, b, last):
            split.close()
    if me == 0:
        with raises(shmview.Busy):
            kept.close()
        with raises(shmview.Busy):
            other.close()
        with raises(BufferError):
            target.append(0)
    else:
        kept.close()
        other.close()
    alone.close()


def main():
    link = shmview.mpi.link(comm)
    with shmview.mpi.open(comm, "splits", 4 << 20) as job:
        for turn, spec in enumerate(SPLITS):
            check(link, job, spec, turn)
        check_errors(link, job)
    check_lost()


if __name__ == "__main__":
    sys.exit(main())
