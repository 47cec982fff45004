# SPDX-License-Identifier: Apache-2.0
"""The tuples that calls of the extension module return."""

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
