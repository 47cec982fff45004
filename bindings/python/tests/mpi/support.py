# SPDX-License-Identifier: Apache-2.0
"""What the programs of several ranks share. A program that fails ends the whole job, because they run by
`python3 -m mpi4py`."""

import contextlib

import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
me, n_ranks = comm.rank, comm.size
ROOM = 1 << 14  # bytes of a region


def region(segment, place, format, shape, order=0):
    """A view in the region of that number: in C order, in Fortran order, with gaps, or backwards."""
    offset = place * ROOM
    if order == 1:
        return segment.cast(format, shape[::-1], offset=offset).T
    if order == 2 and shape:
        wide = segment.cast(format, shape[:-1] + (2 * shape[-1] + 1,), offset=offset)
        return wide[..., 1::2]
    if order == 3 and shape and 0 not in shape:
        return segment.cast(format, shape, offset=offset)[::-1]
    return segment.cast(format, shape, offset=offset)


def pattern(view, seed):
    """Private elements with the format and the shape of a view."""
    dtype = view.dtype
    n = int(numpy.prod(view.shape))
    raw = (numpy.arange(n * dtype.itemsize, dtype="u4") * 7 + seed * 31) % 61
    if dtype == bool:
        raw %= 2
    return raw.astype("u1").tobytes()


def store(view, data):
    if view.size:
        view.array[...] = numpy.frombuffer(data, view.dtype).reshape(view.shape)


def loaded(view):
    return view.tobytes()


@contextlib.contextmanager
def raises(*errors, text=""):
    """Checks that the block raises one of these errors."""
    try:
        yield
    except errors as error:
        assert text in str(error), str(error)
    else:
        raise AssertionError(f"rank {me}: no {errors}")
