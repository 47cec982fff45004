# SPDX-License-Identifier: Apache-2.0
"""Segments of an MPI job, with mpi4py: one segment on each node, collectives between the nodes, views
from rank to rank, and arrays that are divided over the ranks.

    from mpi4py import MPI
    import shmview.mpi

    with shmview.mpi.open(MPI.COMM_WORLD, "tables", layouts={"ready": {"table": ("f8", (1000, 1000))}}) as job:
        table = job.view("table", "ready")
        if job.rank == 0:
            table.array[:] = read_table()
        job.bcast(table, root=0, phase="ready")

The ranks of a node share its segment, so that data that every rank needs is in the memory of a node once,
and crosses the network once. docs/MPI.md is the guide. The module needs mpi4py and the libshmview-mpi for
mpi4py's MPI, and import raises ImportError without them.

Collective calls: every rank of the communicator makes the same calls in the same order, and no rank holds
the segment's lock when it calls. The calls wait without the GIL, at most until their timeout, and Python's
signal handlers run after them. Arguments are compared before a byte moves: a wrong one raises Invalid on
every rank, after which the job may go on. They may also raise

    PeerFailed     a rank has died, or MPI reports an error; its attribute rank
    TimedOut       a rank did not make the call, or a transfer did not end in time
    Lost           an earlier call has ended with one of these

One thread at a time may use a Job, or a Link and its Splits: another one gets Busy. A forked child must not
use them."""

import atexit
import ctypes
import os
import threading
import time
import warnings
import weakref

from . import _core, _mpi
from ._errors import Busy, ConversionError, Invalid, PeerFailed
from ._layouts import _numbers, collect, names
from ._mpi import Borrowed, byref, c_int, c_int64, c_uint64, c_void_p, calls, node_comm, number, rank_number

from mpi4py import MPI  # after _mpi, which reports that it is missing

__all__ = ["Job", "Link", "Split", "link", "node_comm", "open", "split", "split_bytes"]

TIMEOUT = 60.0
_LIFETIMES = {"attached": 1, "manual": 2}
_CARRY = {"measured": 0, "datatype": 1, "packed": 2}


# --- Jobs --------------------------------------------------------------------

def open(comm, name, size=None, *, layouts=None, lifetime="attached", timeout=TIMEOUT, connection=None, **more):
    """Opens the segment called name on each node of a communicator, for writing on every rank, and returns
    a Job. Collective. The rank with the lowest number on a node creates the segment, or adopts the one of
    that name, if size, lifetime and layouts agree.

    comm: an intracommunicator of mpi4py. The job uses a duplicate.
    size: bytes of each segment. None: the size that the layouts need.
    layouts, and further keywords: as for shmview.create().
    lifetime: 'attached' (until the last attachment ends), or 'manual' (until it is removed): the next job
    of that name adopts such a segment, with the phase of the last whole result.
    timeout: the longest time in seconds that a collective call of the job waits.
    connection: a Connection, which must not be closed during the call. None: the default connection of the
    process.

    Raises Exists if there is a segment of another size or lifetime, LayoutExists, the errors of create()
    and define(), and those of collective calls. All ranks get the error of any, and the text names the
    node; no segment is left that the call has created."""
    resolved, end = collect(layouts, more)
    if size is None and not end:
        raise TypeError("open() needs a size, or layouts that have one")
    if lifetime not in _LIFETIMES:
        raise ValueError(f"lifetime: 'attached' or 'manual', not {lifetime!r}")
    if timeout is not None and timeout <= 0:
        raise ValueError("timeout: seconds above 0")
    made = _mpi.layouts(resolved)
    spec = _mpi.Spec(ctypes.sizeof(_mpi.Spec), _LIFETIMES[lifetime], end if size is None else number(c_uint64, size),
                     max(_mpi.nanoseconds(timeout), 1), made, len(made))
    if connection is None:
        connection = _core._default_connection(True)
    pointer = c_void_p()
    try:
        result = _mpi.check(calls.open(_mpi.handle_of(comm), _mpi.connection_pointer(connection), name.encode(),
                                       byref(spec), byref(pointer)), name=name)
    except BaseException:
        if pointer:  # an interrupt: the job is given up
            _core._adopt(calls.segment(pointer), connection).close()
        raise
    segment = _core._adopt(calls.segment(pointer), connection)
    segment._layouts = names(resolved)
    return Job(pointer.value, comm, segment, result == _mpi.DIED)


class Job(_mpi.Handle):
    """The segments of a job, one on each node. open() returns it. At the end of a with block it is closed
    by close(); if the block raises, it is given up instead, without waiting for other ranks.

    comm: the communicator that open() was given.
    rank, size: of comm.
    segment: the Segment of this node, which cannot be closed before the job.
    owner_died: whether a node has adopted a segment in which the last owner of the lock has died, so that
    its bytes may be half written.

    In all collectives, phase is the layout that becomes current on the nodes that have received elements;
    None counts a change instead. Views are those of segment, of any format and strides, but without
    suboffsets. Views that are sent and received have the same format and shape, and may not overlap those
    of other ranks. A view of another phase than the current one raises StaleViewError; view() returns one
    for the phase to come."""

    _what = "job"

    def __init__(self, pointer, comm, segment, owner_died):
        super().__init__(pointer)
        self.comm, self.segment, self.owner_died = comm, segment, owner_died
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self._pin = segment.buf  # until the job ends, segment.close() raises Busy
        self._failed = False

    def __repr__(self):
        return f"<shmview.mpi.Job '{self.segment.name}', rank {self.rank} of {self.size}{', closed' * self.closed}>"

    @property
    def is_leader(self):
        """Whether this rank moves the bytes of its node: the one with the lowest number."""
        return self._fact(calls.is_leader) == 1

    @property
    def nodes(self):
        """How many nodes the job has."""
        return self._fact(calls.nodes)

    @property
    def node(self):
        """The number of this rank's node, from 0, in the order of the lowest ranks."""
        return self.node_of(self.rank)

    def node_of(self, rank):
        """Returns the number of the node of a rank. Raises IndexError for a wrong rank."""
        node = self._fact(calls.node, rank_number(rank))
        if node < 0:
            raise IndexError(f"the job has no rank {rank}")
        return node

    @property
    def failed_rank(self):
        """The rank whose failure has broken the job, or None if none has or it is not known."""
        rank = self._fact(calls.failed_rank)
        return None if rank < 0 else rank

    def view(self, name, layout):
        """Returns the View called name of a layout, for collectives that begin its phase: unlike
        segment.view(), it can be used before, and belongs to no phase. Raises NoLayout."""
        return self.segment._bind(self.segment.view(name, layout), _mpi.NO_LAYOUT, 0)

    def _fact(self, call, *arguments):
        if not self._pointer:
            raise ValueError("the job is closed")
        return call(self._pointer, *arguments)

    def _collective(self, call, views, *arguments, phase):
        """Makes a collective call. If a view cannot be used here, passes none, so that all ranks get an error
        instead of waiting for this one."""
        borrowed, refusal = _mpi.attempt(lambda each: [view if view is None else Borrowed(view) for view in each], views)
        borrowed = borrowed or [None] * len(views)
        phase, results = None if phase is None else phase.encode(), []
        pointer = self._begin()
        try:
            _mpi.run(results, call, pointer, *borrowed, *arguments, phase)
            if refusal is not None:
                raise refusal
            _mpi.check(results[0], **({"rank": self.failed_rank} if -results[0] == PeerFailed.code else {}))
        finally:
            self._failed = not results or results[0] < 0 and -results[0] not in (Invalid.code, ConversionError.code)
            self._end()
            refusal = None  # its traceback refers to this frame

    def bcast(self, view, root=0, phase=None):
        """Copies the elements of view from the node of rank root to all other nodes. All ranks of a node
        pass the same view."""
        self._collective(calls.bcast, [view], rank_number(root), phase=phase)

    def scatter(self, send, receive, root=0, phase=None):
        """Copies block r of the view send of rank root to the view receive of rank r. send has one block for
        each rank along its first dimension; on other ranks it is ignored and may be None."""
        self._collective(calls.scatter, [send, receive], rank_number(root), phase=phase)

    def gather(self, send, receive, root=0, phase=None):
        """Copies the view send of rank r to block r of the view receive of rank root. receive has one block
        for each rank along its first dimension; on other ranks it is ignored and may be None."""
        self._collective(calls.gather, [send, receive], rank_number(root), phase=phase)

    def allgather(self, send, receive, phase=None):
        """Copies the view send of rank r to block r of the view receive on every node. All ranks of a node
        pass the same view receive."""
        self._collective(calls.allgather, [send, receive], phase=phase)

    def alltoall(self, send, receive, phase=None):
        """Copies block s of the view send of rank r to block r of the view receive of rank s."""
        self._collective(calls.alltoall, [send, receive], phase=phase)

    def reduce(self, send, receive, op=MPI.SUM, root=0, phase=None):
        """Combines the elements of the views send of all ranks one by one, in the order of the ranks. All
        ranks of a node pass the same view receive, which gets the result on the node of rank root, and is
        undefined on others. It may be the view send of one rank.

        op: an operation of MPI, or one of MPI.Op.Create(), which gets contiguous elements.

        Raises ConversionError if the operation is not defined for the format."""
        self._collective(calls.reduce, [send, receive], _mpi.handle_of(op), rank_number(root), phase=phase)

    def allreduce(self, send, receive, op=MPI.SUM, phase=None):
        """Like reduce(), with the result on all nodes."""
        self._collective(calls.allreduce, [send, receive], _mpi.handle_of(op), phase=phase)

    def close(self):
        """Ends the job, and closes the segment as the end of a with block does: views of it keep its memory.
        Collective, unless the job has failed. Closing it again has no effect.

        Raises the errors of collective calls, after which the job is closed too; Busy if a thread of this
        process holds the lock, after which only the segment is still open."""
        if not self._pointer:
            return
        kept = c_void_p()
        pointer, self._pointer = self._begin(), None  # also an interrupted call frees the handle
        try:
            result = calls.close_keeping(pointer, byref(kept))
        finally:
            self._end()
            self._let_go(kept.value is None)
        _mpi.check(result)

    def _let_go(self, may_be_written):
        """Ends the use of the segment. If MPI may still write to it, it stays attached until the process ends."""
        pin, self._pin = self._pin, None
        if may_be_written:
            _mpi.leak(pin)
        else:
            pin.release()
            self.segment.__exit__(None, None, None)

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.close()
        elif self._pointer:
            self._pointer = None
            self._let_go(self._failed or self._lock.locked())

    def __del__(self):
        if getattr(self, "_pointer", None):
            warnings.warn(f"{self!r} was not closed", ResourceWarning, source=self)
            if self._failed:
                _mpi.leak(self._pin)


# --- Links -------------------------------------------------------------------

def link(comm):
    """Opens a Link between all ranks of an intracommunicator of mpi4py, with communicators of its own.
    Collective. The first call of a process with other ranks measures for about 15 ms how this MPI transfers
    views best.

    Raises Invalid, PeerFailed."""
    return Link(comm)


class Link(_mpi.Handle):
    """Transfers views from rank to rank; link() returns it.

    comm: its communicator.
    rank, size: of comm.

    The two views of a transfer have the same shape and type; their strides may differ. They may belong to any
    segment. No lock is taken."""

    _what = "link"

    def __init__(self, comm):
        pointer = c_void_p()
        _mpi.check(calls.link_open(_mpi.handle_of(comm), byref(pointer)))
        super().__init__(pointer.value)
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self._splits = weakref.WeakSet()

    def send(self, view, rank, timeout=TIMEOUT):
        """Sends all elements of a view to a rank. There are no tags: the n-th send to a rank meets the n-th
        receive there. Waits until the view may be used again, for at most timeout seconds (None: as long as
        necessary). To itself a rank sends with sendrecv().

        Raises ConversionError if shape or type differ, after which the link may go on; NotContiguous for
        suboffsets; Invalid for a wrong rank. After TimedOut, or PeerFailed, MPI may still use the view, whose
        memory stays until the process ends, and all further calls raise Lost: close the link."""
        self._call(calls.send, Borrowed(view), rank_number(rank), _mpi.deadline(timeout))

    def receive(self, view, rank, timeout=TIMEOUT):
        """Receives all elements of a view from a rank, as send() describes. Raises ReadOnly too."""
        self._call(calls.receive, Borrowed(view), rank_number(rank), _mpi.deadline(timeout))

    def sendrecv(self, send, to, receive, source, timeout=TIMEOUT):
        """Sends the view send to rank `to`, and receives the view receive from rank source, both at once. If
        both ranks are the caller's own, it copies. The views must not overlap. Raises as send() does."""
        self._call(calls.sendrecv, Borrowed(send), rank_number(to), Borrowed(receive), rank_number(source), _mpi.deadline(timeout))

    def carry(self, way):
        """Chooses how elements with gaps travel in the transfers of this rank from now on: 'measured' (the
        default), 'datatype' or 'packed'. Where the sides differ, 'packed' wins, then 'datatype'."""
        if way not in _CARRY:
            raise ValueError(f"'measured', 'datatype' or 'packed', not {way!r}")
        self._call(calls.link_carry, _CARRY[way])

    def datatype(self, view):
        """Returns the MPI.Datatype of all elements of a view, which begins at view.address and sends them in C
        order. It is committed and belongs to the link: do not free it, and do not use it after close().

        Raises NotContiguous for suboffsets, Overflow if a length does not fit into an int of C."""
        handle = _mpi.new_handle()
        self._call(calls.type, Borrowed(view), byref(handle))
        return _mpi.datatype(handle)

    def close(self):
        """Closes the link and its Splits. Collective, unless it is lost. Closing it again has no effect."""
        if not self._pointer:
            return
        pointer = self._begin()
        try:
            for each in list(self._splits):
                each._free()
            self._pointer = None  # also an interrupted call frees the handle
            calls.link_close(pointer)
        finally:
            self._end()

    def __exit__(self, kind, error, traceback):
        if kind is None:
            self.close()


# --- Messages of mpi4py ------------------------------------------------------

_own = None  # the link of View.mpi(), over COMM_SELF
_own_lock = threading.Lock()


def _close_own(*_):
    """Closes the link of View.mpi() before MPI ends."""
    global _own
    link, _own = _own, None
    if link is not None and link._process == os.getpid() and not MPI.Is_finalized():
        link.close()


def _own_datatype(view):
    global _own
    with _own_lock:
        if _own is None:
            _own = Link(MPI.COMM_SELF)
            atexit.register(_close_own)
            # MPI_Finalize() deletes the attributes of COMM_SELF first.
            MPI.COMM_SELF.Set_attr(MPI.Comm.Create_keyval(delete_fn=_close_own), True)
        return _own.datatype(view)


def _message(view):
    """Implements View.mpi()."""
    part = Borrowed(view)._view
    datatype = _own_datatype(part)
    # The first byte stands for all, because the datatype has the reach of the elements. MPI keeps it for as
    # long as a request lasts, and it keeps the view.
    memory = (ctypes.c_char * 1).from_address(part.address)
    memory._view = part
    return [memoryview(memory).toreadonly() if part.readonly else memory, 1, datatype]


# --- Splits ------------------------------------------------------------------

def split_bytes(link, shape, format, *, halo=None, periodic=False, distribution=None, block=None, grid=None,
                node=None, timeout=TIMEOUT):
    """Returns how many bytes a segment must have for the blocks of the ranks of any node. Collective. The
    arguments are those of split()."""
    spec = _mpi.split_spec(shape, format, halo, periodic, distribution, block, grid, node)
    needed = c_uint64()
    link._call(calls.split_bytes, byref(spec), _mpi.deadline(timeout), byref(needed))
    return link.comm.allreduce(needed.value, MPI.MAX)


def split(link, segment, shape, format, *, offset=0, halo=None, periodic=False, distribution=None, block=None,
          grid=None, node=None, timeout=TIMEOUT):
    """Divides a global array over the ranks of a link, by the rules of MPI_Type_create_darray(), and returns a
    Split. The block of each rank lies in the segment of its node, from byte offset on, in the order of the
    ranks. Elements are not touched. Collective.

    segment: a Segment, or a Job for that of the job. split_bytes() returns how large it must be.
    shape, format: of the global array.
    halo: elements of the halo on each side; not for 'cyclic', and not wider than any block.
    periodic: whether the first element follows the last one.
    distribution: 'block' (one block for each process, the default), 'cyclic' (blocks by turns), or 'whole' (not
    divided).
    block: elements of a block. None: the least that suffices; 1 for 'cyclic'.
    grid: the processes in each dimension, 0 where MPI chooses. None: MPI chooses all.
    node: a communicator of the ranks that share the segment, on all ranks or on none. None: those that can share
    memory.

    halo, periodic, distribution and block are one value, or one for each dimension.

    Raises Invalid, FormatError, Overflow, Bounds for a segment that is too small, ConversionError if the ranks
    differ, TimedOut, PeerFailed, Lost."""
    spec = _mpi.split_spec(shape, format, halo, periodic, distribution, block, grid, node)
    return Split(link, segment.segment if isinstance(segment, Job) else segment, spec, number(c_uint64, offset), timeout)


class Split(_mpi.Handle):
    """A global array that is divided over the ranks; split() returns it. Its calls are collective but for
    global_index() and close(), and take no lock: no rank may write elements while another one's call reads them.

    link, segment: as given to split().
    shape, format: of the global array.
    block: the View of this rank's elements.
    whole: the same with its halo.
    grid: the processes in each dimension.
    place: where this rank is in the grid."""

    _what = "split"

    def __init__(self, link, segment, spec, offset, timeout):
        pointer = c_void_p()
        super().__init__(pointer)  # if an interrupt comes during the call, the end of this object frees the handle
        self._lock = link._lock  # one thread at a time uses the link and its splits
        self.link, self.segment, self._pin = link, segment, segment.buf
        link._call(calls.split, byref(spec), _mpi.segment_pointer(segment), offset, _mpi.deadline(timeout), byref(pointer))
        link._splits.add(self)
        self.shape, format = tuple(spec.shape[:spec.ndim]), spec.format.decode()
        self.block = _mpi.made_view(calls.split_view, pointer, segment, format)
        self.whole = _mpi.made_view(calls.split_whole, pointer, segment, format)
        self.format = self.block.format
        grid, place = (c_int * spec.ndim)(), (c_int * spec.ndim)()
        _mpi.check(calls.split_grid(pointer, grid, place))
        self.grid, self.place = tuple(grid), tuple(place)

    def _use(self):
        if not self._pointer:
            raise ValueError("the split is closed")
        return self._pointer

    def global_index(self, *index):
        """Returns the index in the global array of the element of block that has this index. Raises Bounds."""
        index = _numbers(index[0]) if len(index) == 1 else index
        if len(index) != len(self.shape):
            raise ValueError(f"an index of {len(self.shape)} dimensions, not {len(index)}")
        found = (c_int64 * len(index))()
        _mpi.check(calls.split_global(self._use(), _mpi.numbers(c_int64, index), found))
        return tuple(found)

    def halo(self, timeout=TIMEOUT):
        """Fills the halo of every block from the blocks beside it, corners included. At the end of a dimension
        that is not periodic the halo stays as it is. Raises ReadOnly if the block
        of a rank is read-only; TimedOut, PeerFailed, Lost, as Link.send() describes."""
        self._call(calls.halo, _mpi.deadline(timeout))

    def copy(self, to, timeout=TIMEOUT):
        """Copies all elements to another Split of the same shape, type and link, with other bytes. Halos are not
        touched. Raises Invalid, ConversionError, ReadOnly, TimedOut, PeerFailed, Lost."""
        to._call(calls.split_copy, self._use(), _mpi.deadline(timeout), memory=self._pin)

    def gather(self, view=None, root=0, timeout=TIMEOUT):
        """Copies all elements to a View of the whole array on rank root; on other ranks it is ignored. Raises as
        copy() does."""
        self._to_root(calls.split_gather, self.link.rank, rank_number(root), Borrowed, view, timeout)

    def save(self, path, root=0, timeout=TIMEOUT):
        """Writes the global array to a file of numpy's format (.npy) on rank root, in pieces of at most 16 MiB or
        one row. An existing file is replaced. path is ignored on other ranks. Raises SystemCallFailed on all ranks
        if the file cannot be written, and as copy() does."""
        self._to_root(calls.split_save, self.link.rank, rank_number(root), _mpi.path_bytes, path, timeout)

    def close(self):
        """Ends the split. Not collective. Its views can still be used. Closing it again has no effect."""
        if not self._pointer:
            return
        self._begin()
        try:
            self._free()
        finally:
            self._end()

    def _free(self):
        pointer, self._pointer = self._pointer, None
        if pointer:
            self.block = self.whole = self._pin = None
            calls.split_free(pointer)

    def __del__(self):
        if getattr(self, "_pointer", None):
            self._free()
