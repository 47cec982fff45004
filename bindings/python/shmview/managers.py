# SPDX-License-Identifier: Apache-2.0
"""As the part of multiprocessing.managers that is about shared memory."""

import threading
from multiprocessing import ProcessError, parent_process
from multiprocessing.managers import BaseManager, Server, State, dispatch

from .shared_memory import ShareableList, SharedMemory

__all__ = ["SharedMemoryManager"]


class _Block(SharedMemory):
    """One that goes with the process that creates it, though that is somebody's child."""
    _outlives_child = False


class SharedMemoryServer(Server):
    """Creates the blocks and has them until it ends: they end with its process."""

    public = Server.public + ["create_segment", "list_segments", "release_segment"]

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._blocks = {}

    def serve_forever(self):
        """Answers until shutdown(), or until the parent process ends."""
        parent = parent_process()
        if parent is not None:
            threading.Thread(target=self._follow, args=(parent,), daemon=True).start()
        super().serve_forever()

    def _follow(self, parent):
        parent.join()
        self.stop_event.set()

    def create_segment(self, c, size):
        """Creates a block; returns its name."""
        block = _Block(create=True, size=size)
        self._blocks[block.name] = block
        block.close()
        return block.name

    def list_segments(self, c):
        """The names of the blocks that there are."""
        return list(self._blocks)

    def release_segment(self, c, name):
        """Ends one of them."""
        self._end(self._blocks.pop(name))

    @staticmethod
    def _end(block):
        try:
            block.unlink()
        except FileNotFoundError:
            pass  # somebody else was first

    def shutdown(self, c):
        """Ends all of them, and the process."""
        while self._blocks:
            self._end(self._blocks.popitem()[1])
        super().shutdown(c)


class SharedMemoryManager(BaseManager):
    """SharedMemoryManager(address=None, authkey=None, ctx=None)

    A process that has blocks of shared memory, to be used as

        with SharedMemoryManager() as manager:
            block = manager.SharedMemory(size=128)
            numbers = manager.ShareableList(range(10))

    They end with it: by shutdown(), at the end of the with block, when it is garbage, when its
    process is killed, and when the process that started it ends."""

    _Server = SharedMemoryServer

    def get_server(self):
        """A server object with serve_forever(), for this process."""
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
        """A new SharedMemory of size bytes."""
        if not size > 0:
            raise ValueError("'size' must be a positive number different from zero")
        return SharedMemory(self._call("create_segment", size))

    def ShareableList(self, sequence):
        """A new ShareableList with the elements of sequence."""
        made = ShareableList.__new__(ShareableList)
        made._write(sequence, self.SharedMemory)
        return made
