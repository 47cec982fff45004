# SPDX-License-Identifier: Apache-2.0
"""What calls of the extension module return, and what it leaves to Python."""

from typing import NamedTuple, Tuple


class Summary(NamedTuple):
    """What View.summary() found."""
    n: int  #: elements
    n_nan: int  #: of which NaN; they count for nothing else
    min: float  #: of integers an int
    max: float
    sum: float  #: of integers: the exact sum, rounded once


class LockParty(NamedTuple):
    """One process in a lock's status, by what it wrote about itself."""
    role: str  #: 'holds', 'holds shared', 'waits' or 'waits to share'
    pid: int
    command: str
    slot: int
    since: float  #: seconds, as time.monotonic() has them; 0: unknown


class LockStatus(NamedTuple):
    """Who holds a lock and who waits, at about the same time."""
    held: bool  #: exclusively
    owner_is_dead: bool
    dirty: bool  #: the next owner will be told that one died; or one is inside
    parties: Tuple[LockParty, ...]
    n_parties: int  #: that there are, whether or not all are told


def make_lock_status(held, dead, dirty, parties, n):
    return LockStatus(bool(held), bool(dead), bool(dirty),
                      tuple(LockParty(*party) for party in parties), n)


_connections = {}


def load_connection(path):
    """The connection of this process to the daemon at path, for what is unpickled."""
    from . import _core
    own = _core._own_connection()
    if own is not None and not own.closed and own.path == path:
        return own
    connection = _connections.get(path)
    if connection is None or connection.closed:
        connection = _connections[path] = _core.Connection(path)
    return connection


def load_segment(path, name, access):
    """What a pickled segment comes back as."""
    from . import _core
    return _core.attach(name, access=access, connection=load_connection(path))


def load_view(segment, format, offset, shape, strides, suboffsets, readonly, phase):
    """What a pickled view comes back as."""
    view = segment.cast(format, shape, offset=offset, strides=strides, suboffsets=suboffsets,
                        readonly=readonly)
    return segment._bind(view, *phase) if phase else view
