# SPDX-License-Identifier: Apache-2.0
"""The calls of libshmview-mpi for shmview.mpi: the library that belongs to the MPI of mpi4py, the structs
of its headers, and conversions between objects and pointers. ctypes calls without the GIL."""

import ctypes
import os
import threading
import time
from ctypes import POINTER, Structure, byref, c_char_p, c_int, c_int64, c_ssize_t, c_uint32, c_uint64, c_void_p
from itertools import starmap
from operator import index

from . import _core, _errors
from ._errors import Busy, Error, Invalid, NoMemory, PeerFailed, TimedOut
from ._layouts import _numbers

try:
    from mpi4py import MPI
except ImportError as error:
    raise ImportError("shmview.mpi needs mpi4py: install the package python3-mpi4py, or 'pip install mpi4py' "
                      f"with the MPI of your programs ({error})") from error

MAX_NDIM = 8
FOREVER = 2**63 - 1
DIED = 1  # SHMVIEW_OWNER_DIED
NO_LAYOUT = 2**32 - 1  # of a view that belongs to no phase
BLOCK, CYCLIC, WHOLE = 0, 1, 2


# --- The library -----------------------------------------------------------

def implementation():
    """Returns the name that the library of mpi4py's MPI has: openmpi or mpich."""
    vendor, _ = MPI.get_vendor()
    return "openmpi" if vendor == "Open MPI" else "mpich"


def _beside_libshmview(name):
    """Returns the path of a library beside the loaded libshmview, if there is one."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if os.path.basename(path).startswith("libshmview.so"):
                found = f"/{os.path.dirname(path)}/{name}"
                return [found] if os.path.exists(found) else []
    return []


def load():
    """Loads the library. $SHMVIEW_MPI_LIBRARY is the path of one to take instead."""
    chosen = os.environ.get("SHMVIEW_MPI_LIBRARY")
    mpi, tried = implementation(), []
    names = [f"libshmview-mpi-{mpi}.so.0", "libshmview-mpi.so.0"]
    for candidate in [chosen] if chosen else sum((_beside_libshmview(name) + [name] for name in names), []):
        try:
            return ctypes.CDLL(candidate)
        except OSError as error:
            tried.append(str(error))
    raise ImportError(f"shmview.mpi needs libshmview-mpi for the MPI of mpi4py, {' '.join(map(str, MPI.get_vendor()))}: "
                      f"install the package libshmview-mpi-{mpi}0, or build shmview where mpicc.{mpi} or mpicc is; "
                      f"{'; '.join(tried)}")


# --- Its structs -----------------------------------------------------------

_HANDLE = c_void_p if MPI._sizeof(MPI.Comm) == ctypes.sizeof(c_void_p) else c_int


class ViewStruct(Structure):
    """struct shmview_view."""
    _fields_ = [("data", c_void_p), ("segment", c_void_p), ("format", c_char_p), ("item", c_void_p),
                ("nbytes", c_uint64), ("itemsize", c_uint32), ("dtype", c_uint32), ("ndim", c_uint32),
                ("flags", c_uint32), ("layout", c_uint32), ("generation", c_uint32),
                ("shape", c_ssize_t * MAX_NDIM), ("strides", c_ssize_t * MAX_NDIM),
                ("suboffsets", c_ssize_t * MAX_NDIM), ("reserved", c_uint64 * 4)]


class ViewSpec(Structure):
    """struct shmview_view_spec."""
    _fields_ = [("name", c_char_p), ("format", c_char_p), ("offset", c_uint64), ("ndim", c_uint32),
                ("flags", c_uint32), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("suboffsets", POINTER(c_int64))]


class Layout(Structure):
    """struct shmview_mpi_layout."""
    _fields_ = [("name", c_char_p), ("views", POINTER(ViewSpec)), ("n_views", ctypes.c_size_t)]


class Spec(Structure):
    """struct shmview_mpi_spec."""
    _fields_ = [("struct_bytes", c_uint32), ("lifetime", c_uint32), ("size", c_uint64), ("timeout_ns", c_int64),
                ("layouts", POINTER(Layout)), ("n_layouts", ctypes.c_size_t)]


class SplitSpec(Structure):
    """struct shmview_mpi_split_spec."""
    _fields_ = [("format", c_char_p), ("ndim", c_uint32), ("periodic", c_uint32), ("shape", POINTER(c_int64)),
                ("distribution", POINTER(c_int)), ("block", POINTER(c_int64)), ("grid", POINTER(c_int)),
                ("halo", POINTER(c_int64)), ("node", POINTER(_HANDLE))]


_VIEW = c_void_p
_PROTOTYPES = {
    "open": (c_int, _HANDLE, c_void_p, c_char_p, POINTER(Spec), POINTER(c_void_p)),
    "close_keeping": (c_int, c_void_p, POINTER(c_void_p)),
    "segment": (c_void_p, c_void_p),
    "is_leader": (c_int, c_void_p),
    "nodes": (c_int, c_void_p),
    "node": (c_int, c_void_p, c_int),
    "node_comm": (c_int, _HANDLE, POINTER(_HANDLE)),
    "failed_rank": (c_int, c_void_p),
    "error_text": (c_char_p,),
    "bcast": (c_int, c_void_p, _VIEW, c_int, c_char_p),
    "reduce": (c_int, c_void_p, _VIEW, _VIEW, _HANDLE, c_int, c_char_p),
    "allreduce": (c_int, c_void_p, _VIEW, _VIEW, _HANDLE, c_char_p),
    "scatter": (c_int, c_void_p, _VIEW, _VIEW, c_int, c_char_p),
    "gather": (c_int, c_void_p, _VIEW, _VIEW, c_int, c_char_p),
    "allgather": (c_int, c_void_p, _VIEW, _VIEW, c_char_p),
    "alltoall": (c_int, c_void_p, _VIEW, _VIEW, c_char_p),
    "link_open": (c_int, _HANDLE, POINTER(c_void_p)),
    "link_close": (c_int, c_void_p),
    "link_carry": (c_int, c_void_p, c_int),
    "type": (c_int, c_void_p, _VIEW, POINTER(_HANDLE)),
    "send": (c_int, c_void_p, _VIEW, c_int, c_int64),
    "receive": (c_int, c_void_p, _VIEW, c_int, c_int64),
    "sendrecv": (c_int, c_void_p, _VIEW, c_int, _VIEW, c_int, c_int64),
    "split_bytes": (c_int, c_void_p, POINTER(SplitSpec), c_int64, POINTER(c_uint64)),
    "split": (c_int, c_void_p, POINTER(SplitSpec), c_void_p, c_uint64, c_int64, POINTER(c_void_p)),
    "split_free": (c_int, c_void_p),
    "split_view": (c_int, c_void_p, POINTER(ViewStruct)),
    "split_whole": (c_int, c_void_p, POINTER(ViewStruct)),
    "split_global": (c_int, c_void_p, POINTER(c_int64), POINTER(c_int64)),
    "split_grid": (c_int, c_void_p, POINTER(c_int), POINTER(c_int)),
    "halo": (c_int, c_void_p, c_int64),
    "split_copy": (c_int, c_void_p, c_void_p, c_int64),
    "split_gather": (c_int, c_void_p, c_int, _VIEW, c_int64),
    "split_save": (c_int, c_void_p, c_int, c_char_p, c_int64),
}


class Calls:
    """The functions of the library, without their prefix."""

    def __init__(self, library):
        for name, (result, *arguments) in _PROTOTYPES.items():
            try:
                function = getattr(library, f"shmview_mpi_{name}")
            except AttributeError as error:
                raise ImportError(f"this libshmview-mpi is older than shmview: {error}") from error
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)


calls = Calls(load())


def check(result, **facts):
    """Returns the result of a call of the library, or raises its error."""
    if result >= 0:
        return result
    text = calls.error_text().decode(errors="replace")
    raise _errors.make(-result, text, facts)


def run(results, call, *arguments):
    """Calls a function of the library, and appends its result to results. Python's handlers of signals that come
    during the call run after extend(): if one raises, the result is there."""
    results.extend(starmap(call, [arguments]))


# --- Conversions -----------------------------------------------------------

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]


def connection_pointer(connection):
    """The handle of a Connection, which the caller keeps open."""
    return _pointer(connection._handle(), b"shmview.connection")


def segment_pointer(segment):
    """The handle of a Segment, which the caller keeps attached by a view."""
    return _pointer(segment._handle(), b"shmview.segment")


class Borrowed:
    """A view for one call: a View of the same elements, which release() of the caller's View does not end."""

    def __init__(self, view):
        if not isinstance(view, _core.View):
            raise TypeError(f"a View of shmview, not {type(view).__name__}")
        self._as_parameter_ = None
        self._view = view[...]
        self._as_parameter_ = _pointer(self._view._description(), b"shmview.view")


def attempt(convert, value):
    """Returns what is made of a value, and the error if that fails: (made, None) or (None, error)."""
    try:
        return convert(value), None
    except (TypeError, ValueError, Error) as error:
        return None, error


def handle_of(thing):
    """The handle of an object of mpi4py."""
    return _HANDLE.from_address(MPI._addressof(thing))


def datatype(handle):
    """A Datatype of mpi4py, which does not free the handle."""
    made = MPI.Datatype()
    _HANDLE.from_address(MPI._addressof(made)).value = handle.value
    return made


def node_comm(comm):
    """Returns the ranks of a communicator that are on the node of this one, in the order of their ranks, as
    an Intracomm, which the caller frees by Free(). Collective, without a timeout.

    Ranks are on one node if one kernel runs them and they have the same /dev/shm: they can share a segment.
    comm.Split_type(MPI.COMM_TYPE_SHARED) may return fewer ranks, those among which MPI itself uses shared
    memory: in an MPICH over UCX each rank is alone.

    Raises Invalid for an intercommunicator, and SystemCallFailed where a rank cannot find out its node."""
    node = MPI.Intracomm()
    check(calls.node_comm(handle_of(comm), byref(handle_of(node))))
    return node


def new_handle():
    """Room for a handle that the library returns."""
    return _HANDLE()


def leak(thing):
    """Keeps an object until the process ends, also when modules are cleared."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def number(kind, value):
    """A number of C. ctypes would cut off the bits that do not fit."""
    value = index(value)
    if kind(value).value != value:
        raise OverflowError(f"{value} does not fit into {ctypes.sizeof(kind)} bytes")
    return kind(value)


def rank_number(value):
    """A rank. One that does not fit is as wrong as any: the library refuses it with the other ranks."""
    return max(-1, min(index(value), 2**31 - 1))


def numbers(kind, values):
    """An array of C, or None for None."""
    return None if values is None else (kind * len(values))(*(number(kind, value) for value in values))


def path_bytes(path):
    """A path as C has it, which ends at the first zero byte."""
    path = os.fsencode(path)
    if b"\0" in path:
        raise ValueError("a path has no zero bytes")
    return path


def layouts(resolved):
    """The layouts that collect() of shmview._layouts has made, as an array of C."""
    made = (Layout * len(resolved))()
    for layout, (name, views) in zip(made, resolved.items()):
        specs = (ViewSpec * len(views))()
        for spec, (view, format, offset, shape, strides, suboffsets, readonly) in zip(specs, views):
            spec.name, spec.format, spec.offset = view.encode(), format.encode(), offset
            spec.ndim, spec.flags = len(shape), int(readonly)
            spec.shape, spec.strides = numbers(c_int64, shape), numbers(c_int64, strides)
            spec.suboffsets = numbers(c_int64, suboffsets)
        layout.name, layout.views, layout.n_views = name.encode(), specs, len(views)
    return made


def made_view(fill, handle, segment, format):
    """The View of a segment that a call of the library describes. format: as it was given, because the canonical one
    lacks the mark that permits unaligned elements."""
    v = ViewStruct()
    check(fill(handle, byref(v)))
    n = v.ndim
    base = segment.cast("B", 0)
    return segment.cast(format, tuple(v.shape[:n]), offset=v.data - base.address,
                        strides=tuple(v.strides[:n]))


# --- Handles -----------------------------------------------------------------

def nanoseconds(timeout):
    """Converts a timeout. About a hundred years and more are no limit, because the product must fit into 63 bits."""
    if timeout is None:
        return FOREVER
    if not timeout >= 0:  # or not a number
        raise ValueError(f"a timeout is a number of seconds, 0 or more, or None: {timeout!r}")
    return FOREVER if timeout > 3e9 else int(timeout * 1e9)


def deadline(timeout):
    return min(time.monotonic_ns() + nanoseconds(timeout), FOREVER)


_LEAVE_REQUESTS = (TimedOut.code, PeerFailed.code, NoMemory.code)  # errors of transfers


class Handle:
    """A handle of the library: one thread at a time uses it, in the process that has made it."""

    _what = ""
    _pin = None  # a view that keeps the memory of the handle

    def __init__(self, pointer):
        self._pointer, self._process, self._lock = pointer, os.getpid(), threading.Lock()

    def _begin(self):
        if not self._pointer:
            raise ValueError(f"the {self._what} is closed")
        if self._process != os.getpid():
            raise Invalid(f"the {self._what} belongs to process {self._process}: a forked child cannot use MPI")
        if not self._lock.acquire(blocking=False):
            raise Busy(f"another thread is in a call of the {self._what}")
        if not self._pointer:  # another thread has closed it since
            self._lock.release()
            raise ValueError(f"the {self._what} is closed")
        return self._pointer

    def _end(self):
        self._lock.release()

    def _call(self, call, *arguments, memory=None):
        """Calls a function of the library with the handle. Returns its result, or raises its error. If MPI may still
        use the memory of the arguments and of the handle, keeps them until the process ends, and memory too."""
        pointer, results = self._begin(), []
        try:
            run(results, call, pointer, *arguments)
        finally:
            if not results or -results[0] in _LEAVE_REQUESTS:
                leak((arguments, self._pin, memory))
            self._end()
        return check(results[0])

    def _to_root(self, call, rank, root, convert, target, timeout):
        """Calls a function to which rank root passes a target. If that cannot be used, passes none, so that all
        ranks get an error instead of waiting for this one."""
        made, refusal = attempt(convert, target) if rank == root else (None, None)
        try:
            self._call(call, root, made, deadline(timeout))
        except Error as error:
            raise refusal or error
        finally:
            refusal = None  # its traceback refers to this frame

    @property
    def closed(self):
        """Whether close() was called."""
        return not self._pointer

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.close()


# --- Splits ------------------------------------------------------------------

_DISTRIBUTIONS = {"block": BLOCK, "cyclic": CYCLIC, "whole": WHOLE}


def each_dimension(value, ndim, what):
    """A value for every dimension."""
    values = tuple(value) if hasattr(value, "__len__") and not isinstance(value, str) else (value,) * ndim
    if len(values) != ndim:
        raise ValueError(f"{what}: one value for each of {ndim} dimensions, not {len(values)}")
    return values


def split_spec(shape, format, halo, periodic, distribution, block, grid, node):
    shape = _numbers(shape)
    n = len(shape)
    kinds = None
    if distribution is not None:
        kinds = each_dimension(distribution, n, "distribution")
        if not set(kinds) <= set(_DISTRIBUTIONS):
            raise ValueError(f"distribution: 'block', 'cyclic' or 'whole', not {distribution!r}")
        kinds = [_DISTRIBUTIONS[kind] for kind in kinds]

    def optional(value, what):
        return None if value is None else [index(each or 0) for each in each_dimension(value, n, what)]

    periods = sum(bool(each) << d for d, each in enumerate(each_dimension(periodic, n, "periodic")))
    return SplitSpec(_core.format_size(format)[0].encode(), n, periods, numbers(c_int64, shape),
                          numbers(c_int, kinds), numbers(c_int64, optional(block, "block")),
                          numbers(c_int, optional(grid, "grid")), numbers(c_int64, optional(halo, "halo")),
                          None if node is None else ctypes.pointer(handle_of(node)))
