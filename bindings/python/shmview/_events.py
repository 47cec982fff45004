# SPDX-License-Identifier: Apache-2.0
"""events(): what happens to segments, as an iterator and as an asynchronous iterator."""

import os
import threading
from typing import NamedTuple, Optional

from . import _core
from ._errors import Busy, Disconnected, TimedOut, make

RETRY_SECONDS = 0.1  # between attempts of an event loop to reach a daemon that is gone


class SegmentEvent(NamedTuple):
    """One event. A text, a user or a slot that the kind of the event does not have is None, and such a
    number is 0. The kinds in brackets have the member."""
    serial: int  #: grows from event to event, also from one daemon to the next
    time: float  #: as time.time()
    #: 'created', 'attached', 'detached' (in order), 'died' (without that: the client ended), 'owner_died'
    #: (after died, if the client held the lock exclusively), 'removed' (the name is gone),
    #: 'access_changed', 'phase' (another layout is current), 'quota_refused' (a client was refused),
    #: 'recovered' (the daemon started again), 'subscribed' (events are reported from now on), or
    #: 'lost' (this subscription has missed events, because it read too slowly)
    kind: str
    segment: Optional[str]  #: its name
    id: int  #: of the segment; no other segment of the instance gets it
    uid: Optional[int]  #: the user who caused the event, or whose attachment it was
    pid: int  #: likewise
    command: Optional[str]  #: the program of that client, as it calls itself
    attachment: int  #: its id
    access: Optional[str]  #: 'peek', 'read' or 'write'
    slot: Optional[int]  #: of the attachment in the lock
    held: Optional[str]  #: [died, owner_died] 'exclusive' or 'shared', if the client held the lock
    size: int  #: [created] bytes
    generation: int  #: [phase] of the phase that is current now
    layout: Optional[str]  #: [phase] the layout that is current now
    switches: int  #: [phase] how many there were since the daemon looked last
    deaths: int  #: [recovered] clients that died while no daemon ran
    segments: int  #: [recovered] that exist; only administrators get the numbers of recovered
    attachments: int  #: [recovered] that exist; [removed] that still keep the memory
    lost: int  #: [lost] how many events were missed; [recovered] segments that were lost
    error: int  #: [quota_refused] the code of the Error
    reason: Optional[str]  #: [quota_refused] a sentence with the figures
    #: [attached, detached, died, owner_died; created of a stream that the configuration declares] 'lossless'
    #: or 'latest', if the segment is a stream
    stream: Optional[str]
    stream_slots: int  #: how many slots the stream has
    stream_role: Optional[str]  #: [died, owner_died] what the client did: 'writer', 'reader' or 'both'
    held_frames: int  #: [died, owner_died] how many frames it held as a reader; they are free now

    def __repr__(self):
        """Shows the members that the kind of the event has."""
        has = (name for name, value in zip(self._fields, self) if value or value == 0 and name in ("uid", "slot"))
        return f"SegmentEvent({', '.join(f'{name}={getattr(self, name)!r}' for name in has)})"


class Events:
    """A subscription: an iterator of SegmentEvent, and an asynchronous one. events() makes it.

    One thread or task at a time may wait for an event. A forked child may only close its copy."""

    def __init__(self, monitor):
        self._monitor = monitor
        self._wait = None  # of the task that waits: (loop, its thread, descriptor or -1, future)
        self._pid = os.getpid()

    def next(self, timeout=None):
        """Waits for the next event, and returns it. timeout: the seconds to wait at most; None: as long
        as necessary. Without a daemon it waits for the next one. The wait releases the GIL, and signal
        handlers run.

        Raises TimedOut; Disconnected if no daemon is there at the end of the timeout (the next call
        tries again); Busy while another thread or a task waits; ValueError if the events are closed,
        also during the wait; Quota, Denied, ProtocolError."""
        self._refuse_two()
        found = self._monitor.next(timeout)
        if found is None:
            raise make(TimedOut.code, f"no event in {timeout} s", {})
        return SegmentEvent(*found)

    def _drop_wait_of_parent(self):
        """Forgets a task of the parent after a fork. Its loop shares its epoll with that of the parent, which would
        poll the descriptor no longer."""
        if self._pid != os.getpid():
            self._wait = None

    def _refuse_two(self):
        self._drop_wait_of_parent()
        if self._wait:
            raise make(Busy.code, "a task waits for an event of these", {})

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.next()
        except ValueError:
            if self.closed:
                raise StopIteration from None
            raise

    def __aiter__(self):
        return self

    async def __anext__(self):
        while True:
            self._refuse_two()
            lives = True
            try:
                found = self._monitor.next(0)
            except Disconnected:
                found, lives = None, False
            except ValueError:
                if self.closed:
                    raise StopAsyncIteration from None
                raise
            if found is not None:
                return SegmentEvent(*found)
            await self._wait_in_loop(self._monitor.fileno() if lives else -1)

    async def _wait_in_loop(self, fd):
        """Waits until the descriptor is readable; or, without one, until it is time to try again."""
        import asyncio  # takes longer to import than all of this package
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if fd < 0:
            timer = loop.call_later(RETRY_SECONDS, _finish, future)
        else:
            loop.add_reader(fd, _finish, future)
        self._wait = wait = loop, threading.get_ident(), fd, future
        try:
            await future
        finally:
            self._drop_wait_of_parent()
            if fd < 0:
                timer.cancel()
            elif self._wait is wait:  # close() has removed it otherwise
                loop.remove_reader(fd)
            if self._wait is wait:
                self._wait = None

    def close(self):
        """Ends the subscription. A thread or task that waits for an event ends its iteration; next()
        raises ValueError there. Closing it again has no effect."""
        self._drop_wait_of_parent()
        if not self._wait or self._monitor.closed:
            self._monitor.close()
            return
        loop, thread, fd, future = self._wait
        if thread != threading.get_ident():
            # The loop must stop polling the descriptor before it is closed, and only its thread may
            # do that.
            try:
                loop.call_soon_threadsafe(self.close)
                return
            except RuntimeError:  # the loop is closed: it polls no longer, and nobody waits
                pass
        else:
            if fd >= 0:
                loop.remove_reader(fd)
            _finish(future)
        self._wait = None
        self._monitor.close()

    @property
    def closed(self):
        """Whether close() was called."""
        return self._monitor.closed

    def fileno(self):
        """Returns the descriptor to poll in an event loop of another kind. When it is readable, call
        next(0) until it raises TimedOut. It is another one after each 'subscribed' event, and -1 while
        there is no daemon; then call next(0) from a timer. Raises Busy while another thread waits."""
        return self._monitor.fileno()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error):
        self.close()

    def __repr__(self):
        return f"<shmview.Events{', closed' if self.closed else ''}>"


def _finish(future):
    if not future.done():
        future.set_result(None)


def events(*names, kinds=None, after=None, connection=None):
    """Subscribes to events, and returns an iterator of them.

        for event in shmview.events("demo", kinds=["attached", "died"]):
            print(event.kind, event.segment, event.pid)

    names: of the only segments that are wanted, at most 64; they need not exist yet. Without names:
    all segments that this user may see. Events that belong to no segment are reported in any case.
    kinds: the kinds that are wanted, see SegmentEvent. None: all. The first event is always 'subscribed';
    nothing is missed after it.
    after: the serial number of an event. The later events are reported too, as far as the daemon
    remembers them. 0: all that it remembers.
    connection: a Connection. None: the default connection of the process.

    The iterator waits for events without end: close() ends it, also from another thread or a signal
    handler. 'async for' waits in an event loop. Locks and changes cause no events, because they need
    no daemon, and phases are polled ten times a second: see Segment.wait() and changed(). A
    subscription that reads too slowly gets a 'lost' event with the number of those that it has missed.

    Raises Quota (too many subscriptions), Invalid, NoDaemon, Disconnected."""
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"events() takes names that are str, one by one, not {type(name).__name__}")
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds or ())
    return Events(_core.events(names, kinds, after, connection))
