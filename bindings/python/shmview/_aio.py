# SPDX-License-Identifier: Apache-2.0
"""Segment.changed(): waits for changes of a segment in asyncio.

libshmview has one descriptor for each handle, which becomes readable after a change. Several event
loops, in several threads, may poll it. The loop that finds it readable empties it, so that the other
loops may not see it. Therefore that loop wakes the waiters of all loops."""

import asyncio
import os
import threading

from ._errors import Error

RETRY_SECONDS = 0.1

_making = threading.Lock()


def _forked_child():
    global _making
    _making = threading.Lock()  # a thread of the parent may have held the other one


os.register_at_fork(after_in_child=_forked_child)


class Watch:
    """The waiters of one segment, in its attribute _watch. Any thread may call the methods; _lock
    guards the members."""

    closing = "the segment is closed"

    def __init__(self, segment):
        # A Watch has no reference to its segment, because the segment has one to it, and the cycle
        # would keep the segment attached. Each waiter keeps the segment while it waits.
        self._lock = threading.RLock()  # a signal handler may close the segment while its thread has it
        self._waiters = {}  # future: (loop, seen)
        self._loops = {}    # loop: (descriptor that it polls, inode of its file)
        self._closers = set()  # threads that try to close the segment, during which no loop polls
        self._closed = False
        self._pid = os.getpid()

    def add(self, segment, loop, future, seen):
        fd = segment._change_fd()
        with self._lock:
            if self._closed:
                raise ValueError(self.closing)
            self._waiters[future] = loop, seen
            if not self._closers:
                self._poll(segment, loop, fd)

    def _poll(self, segment, loop, fd):
        """Lets a loop poll the descriptor. The caller has _lock, because pause() in another thread ends
        the polling before the descriptor is closed.

        After the daemon was started again, _change_fd() gives the old number to another file, and
        epoll drops the number silently. So each loop that polls the old file begins again."""
        file = fd, os.fstat(fd).st_ino
        for other, polled in self._loops.items():
            if other is not loop and polled != file:
                _call(other, self._again, segment, other)
        polled = self._loops.get(loop)
        if polled == file:
            return
        if polled:
            loop.remove_reader(polled[0])
        loop.add_reader(fd, self._on_readable, segment, loop, fd)
        self._loops[loop] = file

    def remove(self, loop, future):
        with self._lock:
            self._waiters.pop(future, None)
            if any(other is loop for other, _ in self._waiters.values()):
                return
            polled = self._loops.pop(loop, None)
        if polled:
            loop.remove_reader(polled[0])

    def _on_readable(self, segment, loop, fd):
        try:
            while True:
                with self._lock:
                    if self._loops.get(loop, (-1,))[0] != fd:
                        return  # a thread has called pause(), and may have closed the descriptor
                    got = os.read(fd, 4096)
                if not got:
                    self._reopen(segment, loop, fd)
                    break
        except BlockingIOError:
            pass
        except OSError:
            self._reopen(segment, loop, fd)
        self._tell(segment)

    def _reopen(self, segment, loop, fd):
        """Replaces a descriptor that has ended, because the daemon has ended or was started again.
        Tries again until there is a daemon."""
        loop.remove_reader(fd)
        with self._lock:
            if self._loops.pop(loop, None) is None:
                return
        loop.call_later(0, self._again, segment, loop)

    def _again(self, segment, loop):
        with self._lock:
            mine = [future for future, (other, _) in self._waiters.items() if other is loop]
        if not mine:
            return
        try:
            fd = segment._change_fd()
        except OSError:
            loop.call_later(RETRY_SECONDS, self._again, segment, loop)
        except (Error, ValueError) as error:  # Lost, or closed: nothing would end the waits
            for future in mine:
                _finish(future, error)
        else:
            with self._lock:
                if self._closers:
                    return  # resume() tries again
                self._poll(segment, loop, fd)
        self._tell(segment)

    def _tell(self, segment):
        try:
            change = segment.change
        except ValueError:  # closed or being frozen: each task that waits finds out itself
            change = None
        with self._lock:
            ready = [(future, loop) for future, (loop, seen) in self._waiters.items()
                     if seen != change]
        for future, loop in ready:
            _call(loop, _finish, future, None)

    def pause(self):
        """Ends the polling. Segment.close() calls it first, because the next file of the process may get
        the number of the descriptor. Then it calls close(); or resume(), if it is refused."""
        if self._pid != os.getpid():
            return  # inherited by fork: the loops and waiters are those of the parent
        with self._lock:
            self._closers.add(threading.get_ident())
            loops, self._loops = self._loops, {}
            for loop, (fd, _) in loops.items():  # within the lock: another thread must not close before it
                if not loop.is_closed():
                    loop.remove_reader(fd)

    def resume(self, segment):
        """Polls again after pause(), also after one that was interrupted."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closers.discard(threading.get_ident())
            loops = set() if self._closers else {loop for loop, _ in self._waiters.values()}
        for loop in loops:
            _call(loop, self._again, segment, loop)

    def close(self):
        """Ends all waits with ValueError, after pause(). If it is interrupted, the next call ends the rest."""
        if self._pid != os.getpid():
            return
        with self._lock:
            self._closed = True
            waiters = list(self._waiters.items())
        for future, (loop, _) in waiters:
            _call(loop, _finish, future, ValueError(self.closing))
        with self._lock:
            self._waiters.clear()


def _call(loop, function, *arguments):
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        pass  # the loop is closed, so no task waits in it


def _finish(future, error):
    if future.done():
        return
    if error:
        future.set_exception(error)
    else:
        future.set_result(None)


def watch_of(segment, kind):
    """Returns the Watch of this process. Loops of several threads may ask for the first one at once, and a Watch
    that the segment does not know would never be closed."""
    with _making:
        watch = segment._watch
        if watch is None or watch._pid != os.getpid():
            watch = segment._watch = kind(segment)
        return watch


async def _changed(segment, seen):
    loop = asyncio.get_running_loop()
    while segment.change == seen:
        watch = watch_of(segment, Watch)
        future = loop.create_future()
        watch.add(segment, loop, future, seen)
        try:
            if segment.change == seen:
                await future
        finally:
            watch.remove(loop, future)
    return segment.change


def changed(segment, seen=None):
    """Implements Segment.changed(). Reads the counter when it is called, and not when the result is
    awaited, so that no change between the two is missed."""
    return _changed(segment, segment.change if seen is None else seen)
