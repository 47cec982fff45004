# SPDX-License-Identifier: Apache-2.0
"""Drop-ins for multiprocessing.synchronize: Condition, Semaphore, BoundedSemaphore, Event and
Barrier. A killed process blocks none of the others:

- Semaphore: the permits that it held are free again, and the process that gets one of them also gets
  an OwnerDiedWarning.
- Condition: a notification that it received and did not use goes to another waiter. Its lock reports
  the death like every lock.
- Event: nothing is lost.
- Barrier: it breaks (BrokenBarrierError) until reset(), if the process belonged to it.

Create the objects before the children, and pass them as arguments, or let fork inherit them. They
need no daemon and have no names."""

import os
import threading
import time
from multiprocessing import context, synchronize as _standard, util

from . import _heap, _sync
from ._shared import Lock, OwnerDiedWarning, RLock  # noqa: F401

__all__ = ["Lock", "RLock", "Semaphore", "BoundedSemaphore", "Condition", "Event", "Barrier"]

SEM_VALUE_MAX = 2**31 - 1
HEADER, PARTY = 256, 16  # bytes, see sync/monitor.h
HOLDERS = 128  # processes that may hold permits of a semaphore at once and be noticed when killed
WAITERS = 252  # threads that may wait for a condition at once


def _rebuild(cls, block):
    return cls(_block=block)


class _InBlock:
    """Pickles an object of a type of shmview._sync as its memory, for a child that is started."""

    __slots__ = ()

    def __reduce__(self):
        context.assert_spawning(self)
        return _rebuild, (type(self), self._block)


# --- Semaphores ---------------------------------------------------------------

class Semaphore(_InBlock, _sync.Semaphore, _standard.Semaphore):
    """Semaphore(value=1)

    A counter of free permits, like multiprocessing.Semaphore. acquire() takes a permit and waits
    while there is none, release() gives one back. Any process may give back a permit.

    If a process ends that holds permits, the next one that waits for a permit gets them back, and
    OwnerDiedWarning is issued. A process holds the permits that it took and that neither it nor,
    for it, a process that held none has given back. The value does not rise above its first one in
    this way; so nothing comes back to a Semaphore(0), which counts events. ctx is ignored.

    Raises ValueError for a negative value; OSError with ENOSPC if /dev/shm has too little space."""

    _limit = staticmethod(lambda value: SEM_VALUE_MAX)

    def __new__(cls, value=1, *, ctx=None, _block=None):
        if _block is not None:
            return super().__new__(cls, _block)
        if not 0 <= value <= SEM_VALUE_MAX:
            raise ValueError(f"a semaphore has 0 to {SEM_VALUE_MAX} permits, not {value}")
        block = _heap.allocate(HEADER + PARTY * HOLDERS)
        return super().__new__(cls, block, (value, cls._limit(value), value))

    def __init__(self, value=1, *, ctx=None, _block=None):
        pass

    def __repr__(self):
        return f"<{type(self).__name__}(value={self.get_value()})>"

    @property
    def _semlock(self):
        return self


class BoundedSemaphore(Semaphore, _standard.BoundedSemaphore):
    """BoundedSemaphore(value=1)

    Like Semaphore, but release() raises ValueError if the value would rise above its first one."""

    _limit = staticmethod(lambda value: value)


# --- Condition ----------------------------------------------------------------

class Condition(_standard.Condition):
    """Condition(lock=None)

    A condition with its lock, like multiprocessing.Condition. lock: a Lock or RLock of shmview or of
    multiprocessing; None stands for an own RLock of shmview. At most 252 threads may wait for it at
    once; another one gets RuntimeError. ctx is ignored."""

    def __init__(self, lock=None, *, ctx=None):
        self._lock = RLock() if lock is None else lock
        self._waiters = _sync.Waiters(_heap.allocate(64 + PARTY * WAITERS), ())
        self._make_methods()

    def __getstate__(self):
        context.assert_spawning(self)
        return self._lock, self._waiters._block

    def __setstate__(self, state):
        self._lock, block = state
        self._waiters = _sync.Waiters(block)
        self._make_methods()

    def __repr__(self):
        return f"<Condition({self._lock})>"

    def _require(self, call):
        if not self._lock._semlock._is_mine():
            raise AssertionError(f"must acquire() condition before using {call}()")

    def wait(self, timeout=None):
        """Releases the lock, waits for notify(), and takes the lock again. Returns whether it was
        notified, False after timeout seconds. Raises AssertionError without the lock."""
        self._require("wait")
        return self._waiters.wait(self._lock, self._lock._semlock._count(), timeout)

    def notify(self, n=1):
        """Wakes the n threads that have waited longest. Raises AssertionError without the lock."""
        self._require("notify")
        self._waiters.notify(n)

    def notify_all(self):
        """Wakes all threads that wait."""
        self.notify(WAITERS)

    def wait_for(self, predicate, timeout=None):
        """Waits until predicate() is true, for at most timeout seconds, and returns its last
        value."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            result = predicate()
            if result or (deadline is not None and time.monotonic() >= deadline):
                return result
            self.wait(None if deadline is None else deadline - time.monotonic())


# --- Event --------------------------------------------------------------------

class Event(_InBlock, _sync.Event, _standard.Event):
    """Event()

    A flag to wait for, like multiprocessing.Event. wait() also returns True if the flag was set and
    cleared again during the wait. ctx is ignored."""

    def __new__(cls, *, ctx=None, _block=None):
        if _block is not None:
            return super().__new__(cls, _block)
        return super().__new__(cls, _heap.allocate(64), ())

    def __init__(self, *, ctx=None, _block=None):
        pass

    def __repr__(self):
        return f"<Event at {id(self):#x} {'set' if self.is_set() else 'unset'}>"


# --- Barrier ------------------------------------------------------------------

class Barrier(_standard.Barrier):
    """Barrier(parties, action=None, timeout=None)

    A barrier for a number of threads or processes, like multiprocessing.Barrier.

    A process belongs to the barrier from its first wait(), or from the moment in which a child that
    was spawned receives the barrier, until it ends in order or drops the barrier. If it is killed
    before, the barrier breaks: wait() raises threading.BrokenBarrierError in all others until
    reset(). A forked child that is killed before its first wait() belongs to the barrier if the
    barrier is among the arguments of its Process. ctx is ignored."""

    def __init__(self, parties, action=None, timeout=None, *, ctx=None):
        if parties < 1:
            raise ValueError("parties must be > 0")
        block = _heap.allocate(HEADER + PARTY * max(16, 2 * parties))
        self.__setstate__((_sync.Barrier(block, (parties,)), action, timeout))

    def __getstate__(self):
        context.assert_spawning(self)
        return self._memory._block, self._action, self._timeout

    def __setstate__(self, state):
        memory, self._action, self._timeout = state
        self._memory, self._given_to, self._process = memory, None, None
        if not isinstance(memory, _sync.Barrier):
            self._memory, self._given_to = _sync.Barrier(memory), os.getpid()
            self._belong()
        util.register_after_fork(self, Barrier._after_fork)

    def _after_fork(self):
        """Runs in a child before its target, but in some versions not in a spawned one."""
        from multiprocessing import process
        child = process.current_process()
        arguments = [*getattr(child, "_args", ()), *getattr(child, "_kwargs", {}).values()]
        if self._given_to == os.getpid() or any(each is self for each in arguments):
            self._process = None  # what ran at its end has been removed, see _belong()
            self._belong()

    def _belong(self):
        """Makes this process belong to the barrier."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._memory.join()
            util.Finalize(self, Barrier._leave, (self._memory, self._process), exitpriority=10)

    @staticmethod
    def _leave(memory, process):
        if process == os.getpid():
            memory.leave()

    def wait(self, timeout=None):
        """Waits until all parties have called wait(), and returns the number of those that came
        before this one. The last one calls the action first.

        Raises BrokenBarrierError if the barrier is or becomes broken, also by its death or that of
        another party. After timeout seconds it breaks the barrier; if another process is stopped
        inside a call of the barrier, when that process goes on."""
        self._belong()
        arrived = self._memory.arrive(self._timeout if timeout is None else timeout)
        if arrived is None:
            raise threading.BrokenBarrierError
        index, generation = arrived
        if index + 1 == self.parties:
            try:
                if self._action:
                    self._action()
            except BaseException:
                self.abort()
                raise
            if not self._memory.open(generation):
                raise threading.BrokenBarrierError
        return index

    def reset(self):
        """Makes the barrier empty and whole. Threads that wait get BrokenBarrierError."""
        self._memory.reset()

    def abort(self):
        """Breaks the barrier."""
        self._memory.abort()

    parties = property(lambda self: self._memory.state()[0], doc="How many must wait.")
    n_waiting = property(lambda self: self._memory.state()[1], doc="How many wait now.")
    broken = property(lambda self: self._memory.state()[2], doc="Whether the barrier is broken.")

    def __repr__(self):
        return f"<Barrier at {id(self):#x}: {'broken' if self.broken else self.n_waiting}/{self.parties}>"
