# SPDX-License-Identifier: Apache-2.0
"""The tuples that calls of the extension module return, and the functions that unpickle its
objects."""

from typing import NamedTuple, Tuple


class Summary(NamedTuple):
    """The result of View.summary()."""
    n: int  #: number of elements
    n_nan: int  #: number of NaNs among them, which are ignored in the other members
    min: float  #: an int for signed integers and those of up to 32 bits
    max: float  #: like min
    sum: float  #: of integers: the exact sum, rounded once


class LockParty(NamedTuple):
    """One process in a LockStatus. The members are what the process itself wrote into its slot."""
    role: str  #: 'holds', 'holds shared', 'waits' or 'waits to share'
    pid: int
    command: str
    slot: int
    since: float  #: seconds on the clock of time.monotonic(); 0: unknown


class LockStatus(NamedTuple):
    """The holders of a lock and the waiters. The members are read one after the other, so they may
    belong to slightly different times."""
    held: bool  #: held exclusively
    owner_is_dead: bool
    dirty: bool  #: an owner is inside now, or died inside, which the next owner will get reported
    parties: Tuple[LockParty, ...]
    n_parties: int  #: number of parties, which may be more than are listed


def make_lock_status(held, dead, dirty, parties, n):
    return LockStatus(bool(held), bool(dead), bool(dirty),
                      tuple(LockParty(*party) for party in parties), n)


_connections = {}


def load_connection(path):
    """Returns the connection of this process to the daemon at path, and makes it if there is none."""
    from . import _core
    own = _core._own_connection()
    if own is not None and not own.closed and own.path == path:
        return own
    connection = _connections.get(path)
    if connection is None or connection.closed:
        connection = _connections[path] = _core.Connection(path)
    return connection


def load_segment(path, name, access):
    """Unpickles a segment: attaches it again."""
    from . import _core
    return _core.attach(name, access=access, connection=load_connection(path))


def load_view(segment, format, offset, shape, strides, suboffsets, readonly, phase):
    """Unpickles a view: makes it again from its description, in the phase to which it belonged."""
    view = segment.cast(format, shape, offset=offset, strides=strides, suboffsets=suboffsets,
                        readonly=readonly)
    return segment._bind(view, *phase) if phase else view
