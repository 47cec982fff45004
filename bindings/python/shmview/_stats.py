# SPDX-License-Identifier: Apache-2.0
"""list(), exists() and stats(): segments by name, without attaching them."""

from typing import NamedTuple, Optional, Tuple

from . import _core
from ._errors import NotFound, make

_LIFETIMES = {1: "attached", 2: "manual", 3: "creator"}
_BACKINGS = {1: "file", 2: "sealed"}
_FROZEN = {0: None, 1: "future", 2: "all"}
_ACCESSES = {1: "peek", 2: "read", 3: "write"}


class AttachmentStats(NamedTuple):
    """One attachment of a segment."""
    attachment: int  #: its id
    pid: int  #: of the process; 0 if it is in a pid namespace that the daemon cannot see
    uid: int  #: of the user who attached
    command: str  #: '' until the process has used the lock
    access: str  #: 'peek', 'read' or 'write'
    holds: Optional[str]  #: 'exclusive', 'shared' or None: what it holds of the lock
    waits: Optional[str]  #: like holds: what one of its threads waits for
    slot: int  #: its place in the lock; -1 without one
    since: float  #: since when it holds or waits, as time.time(); 0: unknown


class SegmentStats(NamedTuple):
    """One segment, as stats() and stats(name) return it."""
    name: str
    id: int  #: a number that no other segment of the instance gets
    size: int  #: in bytes
    is_named: bool  #: False if its name was removed, and only attachments keep the memory
    has_lock: bool
    lifetime: str  #: 'attached', 'manual' or 'creator'
    mode: int  #: bits like those of a file
    owner: int  #: uid
    group: int  #: gid
    attachments: int  #: how many there are
    layouts: int  #: how many there are
    created: float  #: as time.time()
    resident: int  #: bytes of memory or swap that the data take
    generation: int  #: of the phase
    phase: Optional[str]  #: the layout that is current
    changes: int  #: the counter of changes
    owner_deaths: int  #: exclusive holders that died, as far as it is known
    parties: Tuple[AttachmentStats, ...]  #: at most 64; holders and waiters come first
    label: str  #: what its creator wrote for people, or ''
    backing: str  #: 'file' or 'sealed'
    frozen: Optional[str]  #: 'all': nobody can write; 'future': nobody can begin to; None
    paid_by: int  #: uid of the user whose process made the memory (own_memory), -1 if the daemon did


class Stats(NamedTuple):
    """The daemon and the segments that this user may see. A number is -1 if only administrators may
    know it."""
    version: str  #: of the daemon
    pid: int  #: of the daemon
    started: float  #: as time.time()
    uptime: float  #: in seconds
    starts: int  #: how often a daemon has started to serve these segments
    connections: int
    attachments: int
    n_all_segments: int  #: including those that this user may not see
    allocated: int  #: bytes of all segments
    memory_free: int  #: bytes that new segments could get
    memory_limit: int  #: bytes that /dev/shm or the daemon's control group may hold
    segments: Tuple[SegmentStats, ...]  #: in the order of their creation


def _segment(fields):
    *head, parties, label, backing, frozen, paid_by = fields
    segment = SegmentStats(*head, tuple(AttachmentStats(*party) for party in parties), label,
                           _BACKINGS.get(backing, "?"), _FROZEN.get(frozen, "?"), paid_by)
    return segment._replace(lifetime=_LIFETIMES.get(segment.lifetime, "?"), parties=tuple(
        party._replace(access=_ACCESSES.get(party.access, "?")) for party in segment.parties))


def stats(name=None, *, connection=None):
    """Returns the SegmentStats of the segment called name; or without a name the Stats of the daemon,
    with those of all segments that this user may see.

    Raises NotFound, also if this user may not see the segment; NoDaemon, Disconnected."""
    *head, segments = _core.stats(name, connection)
    found = tuple(map(_segment, segments))
    if name is None:
        return Stats(*head, found)
    for segment in found:
        if segment.is_named:
            return segment
    raise make(NotFound.code, f"no segment '{name}'", {"name": name})


def list_names(*, connection=None):
    """Returns the names of the segments that this user may see, in the order of their creation.

    Raises NoDaemon, Disconnected."""
    return [segment.name for segment in stats(connection=connection).segments if segment.is_named]


def exists(name, *, connection=None):
    """Returns whether there is a segment called name that this user may see.

    Raises NoDaemon, Disconnected."""
    return any(segment[3] for segment in _core.stats(name, connection)[-1])


list = list_names  # as shmview.list(); the functions of this module need the type
