# SPDX-License-Identifier: Apache-2.0
"""'async with seg.locked():', and the same for seg.shared() and seg.recover().

The lock of a segment belongs to a thread, and is recursive for it. All tasks of an event loop run in
one thread, so the lock alone would not keep them apart. Therefore a Turn excludes the tasks of one
loop from each other, and one task takes the lock for the thread of the loop.

If the lock is not free, a helper thread waits for it, because the loop must not block. The lock
cannot be handed to another thread. So the helper holds it until the loop's thread waits for it as
well, and then gives it back. The wait of the loop's thread is then as short as the unlock, unless
another process gets the lock first; then all of it is repeated."""

import asyncio
import threading
import time
import weakref

from ._errors import TimedOut, make

SLICE_SECONDS = 0.1       # after which a helper looks whether its task still waits
TAKE_OVER_SECONDS = 0.005  # the longest time that the event loop blocks


class _Lock(asyncio.Lock):
    """Counts the tasks in acquire(). A free lock belongs to the first of them, which only has to wake up."""

    n_acquiring = 0

    async def acquire(self):
        self.n_acquiring += 1
        try:
            return await super().acquire()
        finally:
            self.n_acquiring -= 1


class Turn:
    """Keeps the tasks of one event loop apart that hold the lock of one segment. Sharing tasks hold
    it together: the first takes the room and the lock, and the last gives them back. The blocks of a
    task that are inside another one of it take and give back the lock as those of a thread do."""

    def __init__(self):
        self.door = _Lock()  # held while a task gets in, so that tasks enter in order
        self.room = _Lock()  # held while any task is inside
        self.is_shared = False  # how the room is held
        self.blocks = []  # that are inside: (id of the guard, task)

    def remove(self, guard):
        """Removes the block of a guard, and returns its task. Tasks may share a guard, and a block may
        end in another task than the one that has entered it."""
        wanted, task = id(guard), _this_task()
        best = max(enumerate(self.blocks), default=None,
                   key=lambda item: (item[1][0] == wanted, item[1][1] == task, item[0]))
        return self.blocks.pop(best[0])[1] if best else None

    def has(self, task):
        return any(other == task for _, other in self.blocks)


def _this_task():
    task = asyncio.current_task()
    return weakref.ref(task) if task else object()  # outside of tasks each block is a task of its own


_turns = weakref.WeakKeyDictionary()  # segment: {loop: Turn}, both weak


def _turn(segment):
    loop = asyncio.get_running_loop()
    its = _turns.setdefault(segment, weakref.WeakKeyDictionary())
    turn = its.get(loop)
    if turn is None:
        turn = its[loop] = Turn()
    return turn


async def _enter(guard):
    turn, task = _turn(guard.segment), _this_task()
    if turn.has(task):
        got = guard._enter(0)  # this thread has the lock
    else:
        got = await _enter_first(turn, guard)
    turn.blocks.append((id(guard), task))
    return got


async def _enter_first(turn, guard):
    deadline = None if guard.timeout is None else time.monotonic() + guard.timeout
    async with _Until(turn.door, deadline):
        if guard._shared and turn.is_shared and turn.blocks:
            return guard.segment
        await _acquire(turn.room, deadline)
        try:
            got = await _take(guard, deadline)
        except BaseException:
            turn.room.release()
            raise
        turn.is_shared = guard._shared
        return got


async def _leave(guard, error):
    turn = _turn(guard.segment)
    task = turn.remove(guard)
    if task is None or turn.has(task):
        guard.__exit__(*error)
    elif not turn.blocks:
        try:
            guard.__exit__(*error)
        finally:
            turn.room.release()


class _Until:
    """'async with lock:' until a deadline."""

    def __init__(self, lock, deadline):
        self.lock, self.deadline = lock, deadline

    async def __aenter__(self):
        await _acquire(self.lock, self.deadline)

    async def __aexit__(self, *error):
        self.lock.release()


async def _acquire(lock, deadline):
    if deadline is None or not (lock.locked() or lock.n_acquiring):
        await lock.acquire()  # at once, if there is a deadline: wait_for(..., 0) would not even try
        return
    try:
        await asyncio.wait_for(lock.acquire(), max(0, deadline - time.monotonic()))
    except asyncio.TimeoutError:
        raise make(TimedOut.code, "another task of this event loop holds the lock", {}) from None


async def _take(guard, deadline):
    """Takes the lock for this thread, and returns what the block gets."""
    helper, pause = None, 0
    while True:
        try:
            return guard._enter(pause)
        except TimedOut:
            if deadline is not None and time.monotonic() >= deadline:
                raise
        finally:
            if helper:
                helper.join()  # it ends now, and must not hold the lock when the block ends
        helper, pause = _Helper(guard, deadline), TAKE_OVER_SECONDS
        try:
            await helper.ready
        finally:
            helper.go_on.set()


class _Helper(threading.Thread):
    """Waits until the lock is free. It is no daemon thread, because such a thread could end at the
    exit of the interpreter while it holds the lock, which others would take for a death."""

    def __init__(self, guard, deadline):
        super().__init__(name="shmview-async-lock")
        self.segment, self.shared, self.deadline = guard.segment, guard._shared, deadline
        self.loop = asyncio.get_running_loop()
        self.ready = self.loop.create_future()  # done when the task may try again
        self.go_on = threading.Event()          # set when the task is about to wait, or has given up
        self.start()

    def run(self):
        try:
            if self._wait():
                self._report()
                self.go_on.wait()
                self.segment.unlock()
        except Exception:
            pass  # the task meets the same error when it tries again
        self._report()

    def _wait(self):
        """Returns whether this thread holds the lock. False: the task waits no longer."""
        while not self.go_on.is_set() and not self.loop.is_closed():
            left = SLICE_SECONDS
            if self.deadline is not None:
                left = min(left, self.deadline - time.monotonic())
            try:
                self.segment.lock(max(0, left), shared=self.shared)
                return True
            except TimedOut:
                if left < SLICE_SECONDS:
                    return False
        return False

    def _report(self):
        try:
            self.loop.call_soon_threadsafe(_finish, self.ready)
        except RuntimeError:  # the loop is closed, so no task waits
            self.go_on.set()


def _finish(future):
    if not future.done():
        future.set_result(None)


def enter(guard, _):
    return _enter(guard)


def leave(guard, error):
    return _leave(guard, error)
