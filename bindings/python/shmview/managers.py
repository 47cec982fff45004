# SPDX-License-Identifier: Apache-2.0
"""SharedMemoryManager, a drop-in for that of multiprocessing.managers. Its server process creates
the blocks, so the daemon removes them when that process ends, also by a kill."""

import threading
from multiprocessing import ProcessError, parent_process
from multiprocessing.managers import BaseManager, Server, State, dispatch

from .shared_memory import ShareableList, SharedMemory

__all__ = ["SharedMemoryManager"]


class _Block(SharedMemory):
    """A block that ends with the process that creates it. A SharedMemory would be entrusted to the
    first process of the family, and outlive the server."""
    _outlives_child = False


class SharedMemoryServer(Server):
    """Runs in the manager's process, and owns the blocks, which end with it."""

    public = Server.public + ["create_segment", "list_segments", "release_segment"]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._blocks = {}

    def serve_forever(self):
        """Serves requests until shutdown(), or until the parent process ends."""
        parent = parent_process()
        if parent is not None:
            threading.Thread(target=self._follow, args=(parent,), daemon=True).start()
        super().serve_forever()

    def _follow(self, parent):
        parent.join()
        self.stop_event.set()

    def create_segment(self, c, size):
        """Creates a block, and returns its name."""
        block = _Block(create=True, size=size)
        self._blocks[block.name] = block
        block.close()
        return block.name

    def list_segments(self, c):
        """Returns the names of all blocks."""
        return list(self._blocks)

    def release_segment(self, c, name):
        """Removes one block."""
        self._end(self._blocks.pop(name))

    @staticmethod
    def _end(block):
        try:
            block.unlink()
        except FileNotFoundError:
            pass  # another process has unlinked it

    def shutdown(self, c):
        """Removes all blocks, and ends the process."""
        while self._blocks:
            self._end(self._blocks.popitem()[1])
        super().shutdown(c)


class SharedMemoryManager(BaseManager):
    """SharedMemoryManager(address=None, authkey=None, ctx=None)

    A process that owns blocks of shared memory:

        with SharedMemoryManager() as manager:
            block = manager.SharedMemory(size=128)
            numbers = manager.ShareableList(range(10))

    The blocks end with shutdown(), with the with block, with the last reference to the manager, when
    its process is killed, and when the process that started it ends."""

    _Server = SharedMemoryServer

    def get_server(self):
        """Returns a server, whose serve_forever() serves requests in this process."""
        if self._state.value != State.INITIAL:
            raise ProcessError("the manager was started, or shut down, already")
        return self._Server(self._registry, self._address, self._authkey, self._serializer)

    def _call(self, method, *args):
        if self._state.value != State.STARTED:
            raise ValueError("the manager is not running: start() it, or it was shut down")
        connection = self._Client(self._address, authkey=self._authkey)
        try:
            return dispatch(connection, None, method, args)
        finally:
            connection.close()

    def SharedMemory(self, size):
        """Returns a new SharedMemory of size bytes."""
        if not size > 0:
            raise ValueError("'size' must be a positive number different from zero")
        return SharedMemory(self._call("create_segment", size))

    def ShareableList(self, sequence):
        """Returns a new ShareableList with the elements of sequence."""
        made = ShareableList.__new__(ShareableList)
        made._write(sequence, self.SharedMemory)
        return made
