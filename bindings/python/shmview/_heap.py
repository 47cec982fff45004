# SPDX-License-Identifier: Apache-2.0
"""Allocates blocks of memory that the processes of a family share.

A block is a part of an arena. The kernel frees an arena when the last process that maps it has ended.
A process cannot know whether one of its children still uses a block. Therefore a block is used again
only if no child can have it: no process was forked since its allocation, and it was not pickled for
a spawned one. _generation counts forks, and -1 marks a pickled block."""

import mmap
import os
import threading
from collections import deque

from . import _sync

ALIGNMENT = 64
FIRST = 64 * 1024  # bytes of the first arena; each further one has twice as many
LARGEST = 1024 * 1024  # bytes of an arena at most
ALONE = 16 * 1024  # a block of more bytes gets an arena of its own

_generation = 0  # grows with each fork


class Block:
    """size zeroed bytes of an arena, until the last reference to the Block ends."""

    __slots__ = ("arena", "start", "size", "_generation", "__weakref__")

    def __init__(self, arena, start, size, generation=-1):
        self.arena, self.start, self.size = arena, start, size
        self._generation = generation

    def create_memoryview(self):
        """Returns a memoryview of the bytes. Locks and sharedctypes call it by this name, which
        multiprocessing.heap.BufferWrapper has too."""
        return memoryview(self.arena)[self.start:self.start + self.size]

    def __reduce__(self):
        self._generation = -1
        return Block, (self.arena, self.start, self.size)

    def __del__(self):
        if self._generation == _generation and _freed is not None:
            _freed.append((self.arena, self.start, self.size, self._generation))


_freed = deque()  # a finalizer may run anywhere, so it takes no lock
_free = {}  # size: [(arena, start, generation)]
_lock = threading.Lock()
_arena, _used, _next = None, 0, FIRST


def _collect():
    while _freed:
        try:
            arena, start, size, generation = _freed.popleft()
        except IndexError:
            return
        if generation == _generation:
            _free.setdefault(size, []).append((arena, start, generation))


def _reuse(size):
    places = _free.get(size)
    while places:
        arena, start, generation = places.pop()
        if generation == _generation:
            memoryview(arena)[start:start + size] = bytes(size)
            return Block(arena, start, size, generation)
    return None


def allocate(n):
    """Returns a Block of n bytes, rounded up. Raises OSError if /dev/shm has too little space."""
    global _arena, _used, _next
    size = max(n + -n % ALIGNMENT, ALIGNMENT)
    if size > ALONE:
        return Block(_sync.Arena(size + -size % mmap.PAGESIZE), 0, size)
    with _lock:
        _collect()
        block = _reuse(size)
        if block is not None:
            return block
        if _arena is None or _used + size > _arena.size:
            _arena, _used = _sync.Arena(_next), 0
            _next = min(_next * 2, LARGEST)
        start, _used = _used, _used + size
        return Block(_arena, start, size, _generation)


def _forked():
    """Retires every free and every living block, because a child may use any of them."""
    global _generation
    _generation += 1
    _free.clear()
    _freed.clear()


def _forked_child():
    """Starts with a new arena in a child, because the parent continues to use the old one."""
    global _arena, _used, _next, _lock
    _lock = threading.Lock()
    _forked()
    _arena, _used, _next = None, 0, FIRST


os.register_at_fork(after_in_parent=_forked, after_in_child=_forked_child)
