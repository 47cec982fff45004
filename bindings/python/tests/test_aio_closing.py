# SPDX-License-Identifier: Apache-2.0
"""The end of a segment for which tasks of asyncio wait: by several threads at once, refused, interrupted, or in a
forked child."""

import asyncio
import os
import threading

import pytest

import shmview
from conftest import PATIENCE
from shmview import _aio

pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture(autouse=True)
def loops():
    """Closes the loop that the policy keeps, because a loop has descriptors."""
    yield
    asyncio.set_event_loop(None)


def test_closed_meanwhile():
    seg = shmview.create("seg", 100)

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0.01)
        seg.close()
        with pytest.raises(ValueError, match="closed"):
            await task
    asyncio.run(main())


def test_an_interrupted_close_is_finished_by_the_next_one(monkeypatch):
    seg, interrupts = shmview.create("seg", 100), []

    def interrupt(name):
        if name not in interrupts:
            interrupts.append(name)
            raise KeyboardInterrupt

    class Watch(_aio.Watch):
        def close(self):
            interrupt("close")
            super().close()

    def call(*arguments):
        interrupt("call")
        function(*arguments)
    function = _aio._call

    async def main():
        seg._watch = Watch(seg)
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        monkeypatch.setattr(_aio, "_call", call)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                seg.close()
            assert seg.closed and not task.done()
        seg.close()
        with pytest.raises(ValueError, match="closed"):
            await asyncio.wait_for(task, PATIENCE)
        seg.close()
    asyncio.run(main())


class ClosedByAnotherThread:
    """A segment that another thread closes just after a task has got its descriptor."""

    def __init__(self, seg):
        self.seg, self.taken = seg, []

    def __getattr__(self, name):
        return getattr(self.seg, name)

    def _change_fd(self):
        fd = self.seg._change_fd()
        thread = threading.Thread(target=self.seg.close)
        thread.start()
        thread.join()
        self.taken.append(os.open("/dev/null", os.O_RDONLY))  # has the number of the descriptor
        assert self.taken == [fd]
        return fd


def test_a_wait_that_begins_while_the_segment_is_closed(daemon):
    async def main():
        seg = shmview.create("seg", 100)
        first = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        racing = ClosedByAnotherThread(seg)
        loop = asyncio.get_running_loop()
        watch, future = seg._watch, loop.create_future()
        try:
            with pytest.raises(ValueError, match="the segment is closed"):
                watch.add(racing, loop, future, 0)
            with pytest.raises(ValueError, match="the segment is closed"):
                await first
            assert not watch._waiters and not watch._loops
        finally:
            os.close(racing.taken[0])
    asyncio.run(main())


def test_a_refused_close_ends_no_wait():
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        with seg.buf, pytest.raises(shmview.Busy):
            seg.close()
        await asyncio.sleep(0)
        other.notify()
        assert await asyncio.wait_for(task, 60) == 1
    asyncio.run(main())


@pytest.mark.parametrize("kept", ["lock", "tensor"])
def test_a_close_that_is_refused_late_ends_no_wait(kept):
    """Only libshmview knows that a thread holds the lock, or that a tensor exists."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    def keep():
        if kept == "tensor":
            return seg.buf.__dlpack__()
        return seg.lock()

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        capsule = keep()
        watch = seg._watch
        for n in 1, 2:
            with pytest.raises(shmview.Busy):
                seg.close()
            other.notify()
            assert await asyncio.wait_for(task, 60) == n
            assert not watch._loops
            task = asyncio.ensure_future(seg.changed())  # begins after a close() that was refused
            await asyncio.sleep(0)
        if kept == "lock":
            seg.unlock()
        del capsule
        seg.close()
        with pytest.raises(ValueError, match="closed"):
            await task
    asyncio.run(main())


def test_closed_by_two_threads():
    """No loop polls the descriptor until the last thread in close() has been refused."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        watch = seg._watch
        thread = threading.Thread(target=watch.pause)
        thread.start()
        thread.join()
        with seg.locked(), pytest.raises(shmview.Busy):
            seg.close()
        second = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        assert not watch._loops
        watch._closers.clear()
        watch.resume(seg)
        other.notify()
        assert await asyncio.wait_for(asyncio.gather(task, second), 60) == [1, 1]
    asyncio.run(main())


def test_closed_while_a_loop_finds_it_readable():
    """Another thread closes the segment when the loop has called _on_readable(), and a pipe gets the number."""
    async def main():
        seg, errors = shmview.create("seg", 100), []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: errors.append(context))
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        watch, (fd,) = seg._watch, [fd for fd, _ in seg._watch._loops.values()]
        thread = threading.Thread(target=seg.close)
        thread.start()
        thread.join()
        end, other_end = os.pipe()
        assert end == fd
        os.set_blocking(end, False)
        os.write(other_end, b"foreign")
        try:
            for call in (lambda: watch._on_readable(seg, loop, fd), lambda: watch._again(seg, loop),
                         lambda: watch._tell(seg)):
                loop.call_soon(call)
            with pytest.raises(ValueError, match="the segment is closed"):
                await task
            assert os.read(end, 10) == b"foreign"
            assert not errors and not watch._loops
        finally:
            os.close(end)
            os.close(other_end)
    asyncio.run(main())


def test_a_thread_closes_after_another_one_has_ended_the_polling(monkeypatch):
    """The first thread that closes is slow to remove the reader; the second one must wait for it."""
    seg, closed_early = shmview.create("seg", 100), []

    async def main():
        loop = asyncio.get_running_loop()
        remove, threads = loop.remove_reader, []

        def remove_reader(fd):
            if not threads:
                threads.append(threading.Thread(target=seg.close))
                threads[0].start()
                threads[0].join(0.3)  # in vain, unless it does not wait
                closed_early.append(seg.closed)
            return remove(fd)
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        monkeypatch.setattr(loop, "remove_reader", remove_reader)
        first = threading.Thread(target=seg.close)
        first.start()
        first.join()
        threads[0].join()
        with pytest.raises(ValueError, match="closed"):
            await task
        monkeypatch.undo()
    asyncio.run(main())
    assert seg.closed and closed_early == [False]


def test_a_thread_that_is_refused_while_another_one_pauses():
    """The segment has no handle while the first thread detaches it. The second one returns from pause() just then,
    because the first one gives the GIL away only to detach: no bytecode comes after its long multiplication."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")
    large, paused, go = 3 ** 300000, threading.Event(), threading.Lock()
    go.acquire()

    class Watch(_aio.Watch):
        def pause(self):
            super().pause()
            if threading.current_thread().name == "second":
                paused.set()
                go.acquire()
                return None
            go.release()
            return large * large

    async def main():
        seg._watch = Watch(seg)
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        refused = []

        def close():
            try:
                seg.close()
            except shmview.Busy:
                refused.append(threading.current_thread().name)
        second = threading.Thread(target=close, name="second")
        with seg.locked():
            second.start()
            paused.wait()
            close()
            second.join()
        assert len(refused) == 2
        other.notify()
        assert await asyncio.wait_for(task, 60) == 1
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(seg.changed(), 0.01)
    asyncio.run(main())


def test_closed_after_its_loop():
    """A task that waits in a loop which was closed disturbs nobody."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")
    loop = asyncio.new_event_loop()
    task = loop.create_task(seg.changed())
    loop.run_until_complete(asyncio.sleep(0.02))
    loop.close()

    async def main():
        seen = seg.change
        task = asyncio.ensure_future(seg.changed(seen))
        await asyncio.sleep(0.02)
        other.notify()
        assert await asyncio.wait_for(task, 60) == seen + 1
    asyncio.run(main())
    seg.close()
    assert seg.closed
    task._log_destroy_pending = False


def test_closed_in_a_child():
    """A forked child may close its handle; a task of the parent still waits for changes."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0.02)
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                seg.close()
                status = 0 if seg.closed and not task.done() else 2
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        other.notify()
        assert await asyncio.wait_for(task, 60) == 1
    asyncio.run(main())
