# SPDX-License-Identifier: Apache-2.0
"""nodes: 2. Views from rank to rank by a Link, and by the calls of mpi4py with View.mpi()."""

import gc
import sys
import threading
import time

import numpy
from mpi4py import MPI

import shmview
import shmview.mpi
from support import ROOM, comm, me, n_ranks, pattern, raises, region, store

FORMATS = ["i1", "<u2", ">i4", "f4", "f8", "?", "c16", "f2", "S5", numpy.dtype([("a", "i2"), ("b", "f8")], align=True)]
SHAPES = [(), (7,), (3, 5), (2, 3, 4), (0, 3)]


def check_link(link, segment, format, shape, order):
    """Each rank sends to the next one."""
    send, receive = region(segment, 2 * me, format, shape, order), region(segment, 2 * me + 1, format, shape, order + 1)
    mine = pattern(send, me)
    store(send, mine)
    after, before = (me + 1) % n_ranks, (me - 1) % n_ranks
    wanted = comm.sendrecv(mine, after, source=before)
    receive.fill(receive._none.dtype.type() if receive.dtype.names is None else (0, 0))
    link.sendrecv(send, after, receive, before, timeout=60)
    assert values(receive) == values_of(wanted, receive), (format, shape, order)


def values(view):
    return view.array.tolist()


def values_of(data, view):
    return numpy.frombuffer(data, view.dtype).reshape(view.shape).tolist()


def check_message(segment, format, shape, order):
    """The same by mpi4py: a broadcast, and a request of which nothing but MPI has the view."""
    view = region(segment, 2 * me, format, shape, order)
    wanted = pattern(view, 5)
    if me == 0:
        store(view, wanted)
    comm.Bcast(view.mpi(), 0)
    assert values(view) == values_of(wanted, view), (format, shape, order)
    after, before = (me + 1) % n_ranks, (me - 1) % n_ranks
    receive = region(segment, 2 * me + 1, format, shape, order)
    requests = [comm.Irecv(receive.mpi(), before), comm.Isend(view.mpi(), after)]
    view.release()
    del view
    gc.collect()
    MPI.Request.Waitall(requests)
    assert values(receive) == values_of(wanted, receive)


def check_datatypes(link, segment):
    table = region(segment, 2 * me, "f4", (3, 5))
    column = table[:, 2]
    datatype = link.datatype(column)
    assert datatype.Get_size() == 12
    buffer, count, same = column.mpi()
    assert count == 1 and same.Get_size() == 12 and same.Get_extent() == datatype.Get_extent()
    assert not memoryview(buffer).readonly and memoryview(column.toreadonly().mpi()[0]).readonly
    # The message keeps the memory.
    alone = shmview.create(f"alone-{me}", 8)
    message = alone.buf.mpi()
    with raises(shmview.Busy):
        alone.close()
    del message
    alone.close()
    rows = segment.cast("f8", (2, 4), offset=2 * me * ROOM, strides=(8, 8), suboffsets=(0, -1))
    with raises(shmview.NotContiguous):
        rows.mpi()


def check_errors(link, segment):
    view = region(segment, 2 * me, "f4", (8,))
    for rank in n_ranks, 2**32, -2**32:
        with raises(shmview.Invalid, text="rank"):
            link.send(view, rank)
    with raises(TypeError, text="a View of shmview, not list"):
        link.send([1], 0)
    with raises(ValueError):
        link.carry("fast")
    # The receiver has another shape: both fail, and the link goes on.
    large = region(segment, 2 * me, "f4", (2000,))
    if me == 0:
        with raises(shmview.ConversionError):
            link.send(segment.cast("f8", (20000,)), 1, timeout=60)
        link.send(large, 1, timeout=60)
    elif me == 1:
        with raises(shmview.ConversionError):
            link.receive(large, 0, timeout=60)
        with raises(shmview.ReadOnly):
            link.receive(large.toreadonly(), 0)
        link.receive(large, 0, timeout=60)
    comm.Barrier()
    # Nobody sends.
    lost = shmview.mpi.link(comm)
    if me == 0:
        alone, other = shmview.create("alone", 8), shmview.create("other", 8)
        with raises(shmview.TimedOut):
            lost.receive(alone.buf, 1, timeout=0.05)
        with raises(shmview.Lost):
            lost.receive(other.buf, 1)
        lost.close()
        # MPI may still write to the one view, and has not got the other one.
        with raises(shmview.Busy):
            alone.close()
        other.close()
    comm.Barrier()
    if me == 0:
        # Another thread is in a call.
        thread = threading.Thread(target=link.receive, args=(view, 1, 60))
        thread.start()
        while not link._lock.locked():
            time.sleep(0.001)
        with raises(shmview.Busy):
            link.send(view, 1)
        comm.send(None, 1)
        thread.join()
    elif me == 1:
        comm.recv(source=0)
        link.send(view, 0, timeout=60)
    comm.Barrier()


def main():
    size = max(ROOM * 2 * n_ranks, 160000)
    with shmview.mpi.open(comm, "transfers", size) as job, shmview.mpi.link(comm) as link:
        assert (link.rank, link.size) == (me, n_ranks)
        turn = 0
        for f, format in enumerate(FORMATS):
            for s, shape in enumerate(SHAPES):
                for order in ((f + s) % 2, 2 + (f + s) % 2):
                    link.carry(("measured", "datatype", "packed")[turn % 3])
                    turn += 1
                    check_link(link, job.segment, format, shape, order)
                    check_message(job.segment, format, shape, order)
        check_datatypes(link, job.segment)
        check_errors(link, job.segment)
        # The memory of any object has views too.
        array = numpy.arange(6.0)
        other = numpy.zeros(6)
        link.sendrecv(shmview.wrap(array), me, shmview.wrap(other), me)
        assert (array == other).all()
    assert link.closed
    with raises(ValueError):
        link.send(shmview.wrap(array), 0)


if __name__ == "__main__":
    sys.exit(main())
