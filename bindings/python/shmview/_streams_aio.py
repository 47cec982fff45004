# SPDX-License-Identifier: Apache-2.0
"""'async for' over a stream: waits for frames in asyncio, with the descriptor of the stream."""

import asyncio

from ._aio import RETRY_SECONDS, Watch, _call, _finish, watch_of
from ._errors import Disconnected, Invalid, NoLock

PEEK_SECONDS = 0.005  # between looks of a task whose reader peeks, which nothing wakes


class StreamWatch(Watch):
    """The waiters of one stream. A task looks for a frame itself, so whatever happens wakes all."""

    def _tell(self, stream):
        with self._lock:
            waiters = [(future, loop) for future, (loop, _) in self._waiters.items()]
        for future, loop in waiters:
            _call(loop, _finish, future, None)

    closing = "the stream is closed"


def _look(stream, n_left):
    """Returns a frame or None. A look after leave() would join again, and a lossless writer would wait
    for this reader."""
    if stream._n_left != n_left:
        raise Invalid(f"the reader has left stream '{stream.name}' during the call")
    return stream._poll()


async def take(stream):
    """Implements Stream.__anext__(). A look that finds nothing arms the descriptor, so the last look
    before the wait comes after it is polled."""
    n_left = stream._n_left
    frame = stream._poll()
    while frame is None:
        loop = asyncio.get_running_loop()
        watch = watch_of(stream, StreamWatch)
        future = loop.create_future()
        try:
            watch.add(stream, loop, future, None)
        except (Disconnected, NoLock) as e:  # streams go on without a daemon, but only a daemon rings
            watch.remove(loop, future)
            await asyncio.sleep(PEEK_SECONDS if isinstance(e, NoLock) else RETRY_SECONDS)
            frame = _look(stream, n_left)
            continue
        try:
            frame = _look(stream, n_left)
            if frame is None:
                await future
        finally:
            watch.remove(loop, future)
        if frame is None:
            frame = _look(stream, n_left)
    return frame
