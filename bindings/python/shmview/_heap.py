# SPDX-License-Identifier: Apache-2.0
"""Blocks of memory that a family of processes has in common.

A block is part of an arena, which the kernel frees with the last process that has it mapped. What
a child may know of is never used again for something else: only a block that no child can have
seen, none having been forked or spawned since, goes to the next who asks."""

import mmap
import os
import threading
from collections import deque

from . import _sync

ALIGNMENT = 64
FIRST = 64 * 1024  # bytes of the first arena; each is twice the last, up to
LARGEST = 1024 * 1024
ALONE = 16 * 1024  # a block of more has an arena of its own

_generation = 0  # grows with each fork


class Block:
    """size bytes of an arena, zeroed. Lives as long as somebody refers to it."""

    __slots__ = ("arena", "start", "size", "_generation", "__weakref__")

    def __init__(self, arena, start, size, generation=-1):
        self.arena, self.start, self.size = arena, start, size
        self._generation = generation

    def create_memoryview(self):
        """The bytes."""
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
    """A Block of n bytes or a little more. Raises OSError."""
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
    """A child may have seen every block there is."""
    global _generation
    _generation += 1
    _free.clear()
    _freed.clear()


def _forked_child():
    """What is left of the parent's arena is the parent's."""
    global _arena, _used, _next, _lock
    _lock = threading.Lock()
    _forked()
    _arena, _used, _next = None, 0, FIRST


os.register_at_fork(after_in_parent=_forked, after_in_child=_forked_child)
