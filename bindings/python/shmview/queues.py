# SPDX-License-Identifier: Apache-2.0
"""Drop-ins for multiprocessing.queues: Queue, JoinableQueue and SimpleQueue. The items are in shared
memory, and no process holds a lock or a half-written pipe that another one needs. If a process is
killed, at most the item that it was writing or reading is lost, and the items that it had put and
that were still in its own buffer because the memory was full.

Create the queues before the children, and pass them as arguments, or let fork inherit them. They
need no daemon and have no names."""

import collections
import os
import threading
import weakref
from multiprocessing import context, queues as _standard, util
from multiprocessing.reduction import ForkingPickler
from queue import Empty, Full

from . import _heap, _shared, _sync  # noqa: F401  _shared sets up _sync

__all__ = ["Queue", "SimpleQueue", "JoinableQueue"]

HEADER = 256 + 2048  # bytes before the ring, see sync/monitor.h and sync/ring.h
RING = 256 * 1024
SEM_VALUE_MAX = 2**31 - 1


def _new(maxsize=0, joinable=False):
    if maxsize > SEM_VALUE_MAX:
        raise ValueError(f"a queue has at most {SEM_VALUE_MAX} items")
    words = (0, 0, 0, 0, 0, max(maxsize, 0), joinable)
    return _sync.Queue(_heap.allocate(HEADER + RING), words)


def _notifier(change):
    """Returns a function that ends the thread of a queue that is gone."""
    def notify(_):
        with change:
            change.is_over = True
            change.notify_all()
    return notify


class Queue(_standard.Queue):
    """Queue(maxsize=0)

    A queue between processes, like multiprocessing.Queue. Items are pickled by put(); an item that
    cannot be pickled is reported on stderr and dropped, as in the standard library. put() writes
    into shared memory. While that is full (256 KiB), items wait in a buffer of the process, which a
    thread empties; join_thread() waits for it, and so does the end of the process, unless
    cancel_join_thread() was called.

    maxsize: how many items the queue may have. A killed process takes no places of it away.
    ctx is ignored. Raises OSError with ENOSPC if /dev/shm has too little space."""

    _joinable = False

    def __init__(self, maxsize=0, *, ctx=None):
        self._start(_new(maxsize, self._joinable))

    def _start(self, memory):
        self._memory = memory
        self._maxsize = memory.maxsize() or SEM_VALUE_MAX
        self._reset()
        util.register_after_fork(self, Queue._reset)

    def _reset(self):
        self._change = threading.Condition()  # a finalizer may take its lock
        self._change.is_over = False          # whether the queue is closed or gone
        self._buffer = collections.deque()  # pickled items, of which the first is being written
        self._thread = self._jointhread = None
        self._joincancelled = self._closed = self._was_used = False
        self._opid = os.getpid()

    def __getstate__(self):
        context.assert_spawning(self)
        return self._memory._block

    def __setstate__(self, block):
        self._start(_sync.Queue(block))

    def _require_open(self):
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")

    def put(self, obj, block=True, timeout=None):
        """Puts an item into the queue. If block is true, waits for at most timeout seconds (None: as
        long as necessary) until it has fewer than maxsize items. Raises queue.Full after that;
        ValueError after close()."""
        self._require_open()
        try:
            data = ForkingPickler.dumps(obj)
        except Exception as e:
            self._on_queue_feeder_error(e, obj)
            return
        self._was_used = True
        how = self._memory.put(data, block, timeout, not self._buffer)
        if how == 0:
            raise Full
        if how == 2:
            with self._change:
                self._buffer.append(data)
                if self._thread is None:
                    self._start_thread()
                self._change.notify()

    def get(self, block=True, timeout=None):
        """Removes an item from the queue and returns it. If block is true, waits for at most timeout
        seconds (None: as long as necessary). Raises queue.Empty after that; ValueError after
        close()."""
        self._require_open()
        data = self._memory.get(block, timeout)
        if data is None:
            raise Empty
        return ForkingPickler.loads(data)

    def qsize(self):
        """Returns the number of items that were put and not got."""
        return self._memory.qsize()

    def empty(self):
        """Returns whether get() would have to wait. Raises OSError after close() if put() was called in
        this process."""
        if self._closed and self._was_used:
            raise OSError(f"Queue {self!r} is closed")
        return self._memory.empty()

    def full(self):
        """Returns whether put() would have to wait."""
        return self._memory.full()

    def close(self):
        """Ends the use of the queue by this process. Items in its buffer are still written."""
        with self._change:
            self._closed = self._change.is_over = True
            self._change.notify()

    def join_thread(self):
        """Waits until the buffer of this process is empty. Raises AssertionError before close()."""
        super().join_thread()
        if self._thread is not None and not self._joincancelled:
            self._thread.join()

    # --- The thread that empties the buffer ------------------------------------

    def _start_thread(self):
        self._thread = threading.Thread(
            target=Queue._feed, name="QueueFeederThread", daemon=True,
            args=(weakref.ref(self, _notifier(self._change)), self._memory, self._buffer,
                  self._change))
        self._thread.start()
        if not self._joincancelled:
            self._jointhread = util.Finalize(self._thread, Queue._finalize_join,
                                             [weakref.ref(self._thread), self._buffer, self._change],
                                             exitpriority=-5)

    @staticmethod
    def _finalize_join(thread, buffer, change):
        with change:
            change.wait_for(lambda: not buffer)

    @staticmethod
    def _feed(queue, memory, buffer, change):
        """Writes the items of the buffer, until the queue is closed or gone and the buffer empty. The
        thread keeps the weak reference to the queue, but does not use it: a strong one could be the
        last, and its end would notify this thread before it waits."""
        while True:
            with change:
                while not buffer:
                    if change.is_over:
                        return
                    change.wait()
            memory.write(buffer[0], True)
            with change:
                buffer.popleft()
                change.notify_all()


class JoinableQueue(Queue, _standard.JoinableQueue):
    """JoinableQueue(maxsize=0)

    A Queue with task_done() and join(). If a process is killed between get() and task_done(), its
    items count as done, and join() issues OwnerDiedWarning in the process that waits."""

    _joinable = True

    def task_done(self):
        """Declares one item to be done, usually one that was got. Raises ValueError if as many are done as
        were put."""
        self._memory.task_done()

    def join(self):
        """Waits until every item that was put is done."""
        self._memory.join()


class SimpleQueue(_standard.SimpleQueue):
    """SimpleQueue()

    A queue without a buffer and without maxsize, like multiprocessing.SimpleQueue: put() waits while
    the shared memory (256 KiB) is full."""

    def __init__(self, *, ctx=None):
        self._memory = _new()

    def __getstate__(self):
        context.assert_spawning(self)
        return self._memory._block

    def __setstate__(self, block):
        self._memory = _sync.Queue(block)

    def _open(self):
        if self._memory is None:
            raise OSError("the queue is closed")
        return self._memory

    def close(self):
        """Ends the use of the queue by this process."""
        self._memory = None

    def empty(self):
        """Returns whether get() would have to wait."""
        return self._open().empty()

    def get(self):
        """Removes an item from the queue and returns it. Waits as long as necessary."""
        return ForkingPickler.loads(self._open().get(True, None))

    def put(self, obj):
        """Puts an item into the queue. Waits while the memory is full."""
        self._open().write(ForkingPickler.dumps(obj), False)
