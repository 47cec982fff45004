# SPDX-License-Identifier: Apache-2.0
"""create_stream() and open_stream(), and the tuples that describe a stream."""

import os
from typing import NamedTuple, Tuple

from . import _core
from ._errors import NotFound
from ._layouts import _parts, _views, resolve
from ._open import _await


class StreamInfo(NamedTuple):
    """Stream.info."""
    lossless: bool
    slots: int
    history: int
    stages: int
    stage: int  #: of this Stream
    many_writers: bool
    frame_bytes: int  #: from one frame to the next


class SlotStatus(NamedTuple):
    """One slot of a StreamStatus."""
    state: str  #: 'free', 'loaned', 'published' or 'held' (by a reader, or kept by its writer)
    holders: int  #: how many readers hold it
    pid: int  #: of the writer, while it is loaned or kept; 0: unknown
    command: str  #: likewise
    time: float  #: of its frame, on the clock of time.monotonic()
    sequences: Tuple[int, ...]  #: the number of its frame in each stage; 0: none


class ReaderStatus(NamedTuple):
    """One reader of a StreamStatus. The members are what the process itself wrote into its slot."""
    pid: int
    command: str
    slot: int  #: of the lock
    stage: int
    next: int  #: the number of the frame that it takes next
    lag: int  #: how many published frames it has not taken
    missed: int  #: how many it has missed since it joined
    holds: Tuple[int, ...]  #: the numbers of the slots that it holds


class StreamStatus(NamedTuple):
    """The result of Stream.status(). The members are read one after the other, so they may belong to
    slightly different times."""
    published: Tuple[int, ...]  #: the number of the last frame of each stage
    ended: Tuple[bool, ...]  #: whether each stage has ended
    writer_pid: int  #: of a stream with one writer; 0: none, or unknown
    writer_command: str
    deaths: int  #: of writers from which another one took over
    slots: Tuple[SlotStatus, ...]
    readers: Tuple[ReaderStatus, ...]


def make_status(published, ended, pid, command, deaths, slots, readers):
    return StreamStatus(published, tuple(map(bool, ended)), pid, command, deaths,
                        tuple(SlotStatus(*slot) for slot in slots),
                        tuple(ReaderStatus(*reader) for reader in readers))


def _is_placed(views):
    """Returns whether any view of a layout has an offset."""
    return any(_parts(name, view).get("offset") is not None for name, view in _views(views))


def create_stream(name=None, views=None, *, lossless=False, slots=8, history=0, stages=1, many_writers=False,
                  lifetime="attached", populate=False, mode=None, owner=None, group=None, entries=None,
                  connection=None, backing=None, **more):
    """Creates a stream, and returns it opened for writing. A stream is a segment with a pool of slots. A
    writer loans a free slot, fills it in place and publishes it as a frame; readers take the frames.

        stream = shmview.create_stream("camera", image=("uint8", (480, 640, 3)), slots=4)
        with stream.loan() as frame:
            frame["image"][:] = pixels

    name: 1 to 128 letters, digits, '.', '_' and '-', not beginning with a dot. None: an unused name.
    views, and further keywords: the views of a frame, as those of a layout, see Segment.define(). A view
    without an offset begins at the next multiple of 64; if one has an offset, all are placed as in a
    layout. The leading dimension may be shorter in a frame, see Frame.set_length().
    lossless: True: the writer waits for the slowest reader. False: it overwrites the oldest frame that
    nobody holds, and a late reader learns how many it has missed.
    slots: 2 to 512. Each stage keeps its history, and in a stream that is not lossless the newest frame; readers
    hold some. A writer that never waits for a slot needs one more than these together.
    history: how many frames a reader gets that were published before it joined.
    stages: 1 to 6. Readers of one stage can pass frames on to another one, see Frame.pass_on().
    many_writers: whether several processes may write it at once.
    lifetime, populate, mode, owner, group, entries, connection, backing: those of the segment, see create().

    Raises Exists, NoSpace, Limit, Quota, Invalid, Denied, Disconnected; and for views the errors of
    Segment.cast()."""
    both = list(_views(views)) if views is not None else []
    names = {each[0] for each in both}
    for each in more:
        if each in names:
            raise TypeError(f"view '{each}' is there twice")
    both += more.items()
    if not both:
        raise TypeError("create_stream() needs the views of a frame, as in image=('uint8', (480, 640, 3))")
    both = dict(both)
    placed = _is_placed(both)
    resolved, _ = resolve(both)
    if not placed:
        resolved = tuple(view[:2] + (0,) + view[3:] for view in resolved)
    if name is None:
        name = f"py-{os.getpid()}-{os.urandom(8).hex()}"
    access = None
    if (mode, owner, group, entries) != (None, None, None, None):
        from ._access import change
        access = change(mode, owner, group, entries)
    for what, number in ("slots", slots), ("history", history), ("stages", stages):
        if not 0 <= number < 1 << 32:
            raise ValueError(f"{what}: a number of 0 or more, not {number}")
    return _core.create_stream(name, resolved, lossless, slots, history, stages, many_writers, placed,
                               lifetime, populate, access, connection, backing)


def open_stream(name, access="read", *, timeout=0, connection=None):
    """Opens a stream, and returns the Stream.

    name: that of the stream; 'camera:1' stands for stage 1 of 'camera'.
    access: 'read' to take frames, 'write' to loan, publish and pass on as well, or 'peek' to follow a
    stream without disturbing anybody; frames may be overwritten then, see Frame.intact.
    timeout: the seconds to wait until the daemon reports that the stream was created. None: as long as
    necessary. The wait releases the GIL, and signal handlers run.
    connection: a Connection. None: the default connection of the process.

    Raises NotFound, Denied, Invalid (no stream, or no such stage), LayoutVersion, NoSlot, Limit, Quota,
    Disconnected."""
    def attempt():
        try:
            return _core.open_stream(name, access, connection)
        except NotFound:
            return None

    if timeout != 0:
        found = attempt() or _await(name.split(":")[0], timeout, connection, attempt)
        if found is not None:
            return found
    return _core.open_stream(name, access, connection)
