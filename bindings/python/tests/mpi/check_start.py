# SPDX-License-Identifier: Apache-2.0
"""A job and a message of two ranks, and its end by MPI.Finalize() and by the interpreter."""

import os
import sys
import warnings

from mpi4py import MPI

import shmview
import shmview.mpi
from support import comm, me, raises


def check_lifetimes():
    """The next job adopts a segment with its phase; another size or lifetime is refused."""
    layouts = {"done": {"numbers": ("i4", 4)}}
    with shmview.mpi.open(comm, "kept", layouts=layouts, lifetime="manual") as job:
        numbers = job.view("numbers", "done")
        if me == 0:
            numbers[:] = [1, 2, 3, 4]
        job.bcast(numbers, phase="done")
    with raises(shmview.Exists):
        shmview.mpi.open(comm, "kept", 100, lifetime="manual")
    with raises(shmview.Exists):
        shmview.mpi.open(comm, "kept", layouts=layouts)
    with raises(shmview.LayoutExists, text="node"):
        shmview.mpi.open(comm, "kept", 16, done={"numbers": ("f4", 4)}, lifetime="manual")
    with shmview.mpi.open(comm, "kept", layouts=layouts, lifetime="manual") as job:
        assert job.segment.phase == "done" and job.segment["numbers"].tolist() == [1, 2, 3, 4]
        assert not job.owner_died
        comm.Barrier()
        if me == 1 and os.fork() == 0:
            job.segment.lock()
            os._exit(0)
        if me == 1:
            os.wait()
    with shmview.mpi.open(comm, "kept", layouts=layouts, lifetime="manual") as job:
        assert job.owner_died
        if me == 0:
            job.segment.remove()


def check_node():
    """The ranks of a node are those that share a segment."""
    node = shmview.mpi.node_comm(comm)
    with shmview.mpi.open(comm, "node", 64) as job:
        members = [rank for rank in range(job.size) if job.node_of(rank) == job.node]
        assert node.size == len(members) and node.rank == members.index(me)
    node.Free()
    with raises(shmview.Invalid):
        shmview.mpi.node_comm(MPI.COMM_NULL)


def check_handles():
    """A handle is refused where it cannot be used."""
    job = shmview.mpi.open(comm, "handles", 64, connection=shmview.connect(os.environ["SHMVIEW_SOCKET"]))
    assert job.segment.connection is shmview.connect(os.environ["SHMVIEW_SOCKET"]) and "handles" in repr(job)
    view = job.segment.buf
    child = os.fork() if me == 0 else None
    if child == 0:
        try:
            job.bcast(view)
        except shmview.Invalid:
            os._exit(0)
        os._exit(1)
    assert child is None or os.waitpid(child, 0)[1] == 0
    # The lock is held at the end: the job is closed, and the segment only later.
    view.release()
    if me == 0:
        job.segment.lock()
        with raises(shmview.Busy):
            job.close()
        assert job.closed and not job.segment.closed
        job.segment.unlock()
    else:
        job.close()
    with raises(ValueError, text="'attached' or 'manual'"):
        shmview.mpi.open(comm, "handles", 64, lifetime="creator")
    with raises(ValueError):
        shmview.mpi.open(comm, "handles", 64, timeout=0)
    with raises(shmview.Invalid):
        shmview.mpi.open(MPI.COMM_NULL, "handles", 64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        shmview.mpi.open(comm, "handles", 64)
    assert [each.category for each in caught] == [ResourceWarning]


def main():
    check_lifetimes()
    check_node()
    check_handles()
    memory = shmview.wrap(bytearray([me] * 8))
    comm.Bcast(memory.mpi(), 1)
    assert memory.tolist() == [1] * 8
    if "finalize" in sys.argv:
        MPI.Finalize()
        assert shmview.mpi._own is None


if __name__ == "__main__":
    sys.exit(main())
