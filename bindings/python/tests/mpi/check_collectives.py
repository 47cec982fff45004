# SPDX-License-Identifier: Apache-2.0
"""nodes: 2. Every collective of a Job, beside that of mpi4py with private buffers."""

import os
import sys

import numpy
from mpi4py import MPI

import shmview
import shmview.mpi
from support import ROOM, comm, loaded, me, n_ranks, pattern, raises, region, store

FORMATS = ["i1", "<u2", ">i4", "f4", "f8", ">f8", "?", "c8", "S5", numpy.dtype([("a", "i2"), ("b", "f8")])]
SHAPES = [(), (7,), (3, 5), (2, 3, 4), (0, 3)]
ORDERS = 4


def views(job, format, shape, order, blocks=1):
    """A view that is common to the node, and one of this rank alone."""
    rows = (shape[0] * blocks,) + shape[1:] if shape else ()
    return region(job.segment, 0, format, rows, order), region(job.segment, 1 + me, format, shape, (order + 1) % ORDERS)


def check_bcast(job, format, shape, order, root):
    view, _ = views(job, format, shape, (order + job.node) % ORDERS)
    wanted = bytearray(pattern(view, root))
    comm.Barrier()
    if me == root:
        store(view, wanted)
    else:
        wanted[:] = bytes(len(wanted))
    comm.Bcast(wanted, root)
    job.bcast(view, root, phase="done" if order % 2 else None)
    assert loaded(view) == wanted, (format, shape, order)


def check_blocks(job, format, shape, order, root):
    large, own = views(job, format, shape, order, n_ranks)
    everything, mine = bytearray(pattern(large, root)), bytearray(pattern(own, me))
    comm.Barrier()
    if me == root:
        store(large, everything)
    comm.Scatter(everything, mine, root)
    job.scatter(large if me == root else None, own, root, "done")
    assert loaded(own) == mine, (format, shape, order)

    mine = bytearray(pattern(own, me + 9))
    store(own, mine)
    comm.Gather(mine, everything, root)
    job.gather(own, large if me == root else None, root)
    assert me != root or loaded(large) == everything
    comm.Barrier()
    comm.Allgather(mine, everything)
    job.allgather(own, large, "done")
    assert loaded(large) == everything

    rows = (shape[0] * n_ranks,) + shape[1:]
    send, receive = region(job.segment, 1 + me, format, rows, order), region(job.segment, 1 + n_ranks + me, format, rows)
    mine, theirs = bytearray(pattern(send, me + 3)), bytearray(send.nbytes)
    store(send, mine)
    comm.Alltoall(mine, theirs)
    job.alltoall(send, receive)
    assert loaded(receive) == theirs


def check_reduce(job, format, shape, order, root, op):
    to, own = views(job, format, shape, order)
    mine = numpy.array(1 + (numpy.arange(own.size) + me) % 3, "f8").reshape(shape)
    wanted = numpy.zeros(shape)
    own.array[...] = mine
    comm.Allreduce(mine, wanted, op)
    job.reduce(own, to, op, root)
    if job.node == job.node_of(root):
        assert (to.array == wanted).all(), (format, shape, order)
    comm.Barrier()
    job.allreduce(own, to, op, "done")
    assert (to.array == wanted).all(), (format, shape, order)


def check_all(job):
    turn = 0
    for f, format in enumerate(FORMATS):
        kind = numpy.dtype(format).kind
        for s, shape in enumerate(SHAPES):
            for order in ((f + s) % 2, 2 + (f + s) % 2):
                turn += 1
                root = turn % n_ranks
                check_bcast(job, format, shape, order, root)
                if kind in "iuf" or kind == "c" and turn % 2:
                    check_reduce(job, format, shape, order, root, MPI.SUM if turn % 2 else MPI.MAX)
                if shape:
                    check_blocks(job, format, shape, order, root)


def compose(inbuf, inoutbuf, datatype):
    """Composition of functions x -> a x + b modulo 2**32: associative, but it does not commute."""
    first, second = numpy.frombuffer(inbuf, "u4").reshape(-1, 2), numpy.frombuffer(inoutbuf, "u4").reshape(-1, 2)
    both = numpy.stack([first[:, 0] * second[:, 0], first[:, 1] * second[:, 0] + second[:, 1]], axis=1)
    second[:] = both


def check_operations(job):
    pair = numpy.dtype([("a", "u4"), ("b", "u4")])
    to, own = views(job, pair, (200,), 0)
    mine = (numpy.arange(400, dtype="u4") * 7 + me).reshape(200, 2)
    own.array[:] = mine.view(pair).reshape(200)
    op = MPI.Op.Create(compose, commute=False)
    job.allreduce(own, to, op, "done")
    everyone = numpy.empty((n_ranks, 200, 2), "u4")
    comm.Allgather(mine, everyone)
    wanted = everyone[0].copy()
    for after in everyone[1:]:
        second = after.copy()
        compose(wanted, second, None)
        wanted = second
    assert (to.array.view("u4").reshape(200, 2) == wanted).all()
    op.Free()

    place = numpy.dtype([("value", "f8"), ("rank", "i4")], align=True)
    to, own = views(job, place, (), 0)
    own[...] = (me % 2, me)
    job.allreduce(own, to, MPI.MAXLOC)
    assert to.item() == (min(1, n_ranks - 1), min(1, n_ranks - 1)), to.item()


def check_errors(job):
    to, own = views(job, "f4", (8,), 0)
    other = region(job.segment, 0, "f4", (9,))
    truth = region(job.segment, 0, "?", (8,))
    is_last = me == n_ranks - 1
    with raises(shmview.Invalid):
        job.bcast(to, n_ranks)
    with raises(shmview.Invalid):
        job.bcast(other if is_last else to)
    with raises(shmview.Invalid, text="without a layout 'unknown'"):
        job.bcast(to, phase="unknown")
    with raises(shmview.ConversionError):
        job.allreduce(truth, truth)
    with raises(TypeError if is_last else shmview.Invalid):
        job.bcast([1] if is_last else to)
    with raises(shmview.Invalid):
        job.allreduce(own, other)
    # A view that cannot be used on one rank is an error of all.
    job.bcast(to, phase="done")
    stale = job.segment.view("bytes", "done")
    job.bcast(to, phase="other")
    with raises(shmview.StaleViewError if is_last else shmview.Invalid):
        job.bcast(stale if is_last else job.segment.view("bytes", "other"))
    own = job.view("bytes", "done")
    if me == 0:
        own.fill(7)
    job.bcast(own, phase="done")
    assert job.segment.phase == "done" and job.segment["bytes"].tolist() == own.tolist() == [7] * 8
    released = job.segment.cast("f4", (8,))
    released.release()
    with raises(ValueError):
        job.bcast(released if is_last else to)
    with raises(shmview.Busy):
        job.segment.close()
    job.bcast(to)


def main():
    layouts = {name: {"bytes": ("B", 8)} for name in ("done", "other")}
    # Regions: 0 is common, then two for each rank; those of check_blocks are longer than one.
    with shmview.mpi.open(comm, "collectives", ROOM * (1 + 2 * n_ranks), layouts=layouts, timeout=60) as job:
        assert job.nodes == int(os.environ.get("NODES_N", 1)) and job.node_of(0) == 0 and not job.owner_died
        assert (job.rank, job.size, job.failed_rank) == (me, n_ranks, None)
        with raises(IndexError):
            job.node_of(n_ranks)
        assert job.segment.connection is shmview.connect()
        check_errors(job)
        check_operations(job)
        check_all(job)
        last = region(job.segment, 0, "i4", (3,))
        comm.Barrier()
        last.fill(me)
        kept = last.tolist()
    # Views keep the memory, the names of layouts come from open(), and the segment is closed.
    assert job.closed and job.segment.closed and len(kept) == len(last.tolist())
    job.close()
    with raises(ValueError):
        job.bcast(last)
    with raises(shmview.Invalid, text="rank"):
        shmview.mpi.open(comm, "other" if me else "one", 100)
    with raises(TypeError):
        shmview.mpi.open(comm, "one")
    # A block that raises does not wait for the others.
    with raises(KeyError):
        with shmview.mpi.open(comm, "given-up", 64) as job:
            raise KeyError
    assert job.closed and job.segment.closed


if __name__ == "__main__":
    sys.exit(main())
