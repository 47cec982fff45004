# SPDX-License-Identifier: Apache-2.0
"""Changes in asyncio: `await seg.changed()` in several loops and threads, after a fork, without
a lock, and across a restart of the daemon."""

import asyncio
import os
import threading

import pytest

import shmview
from conftest import PATIENCE, await_
from shmview import _aio

pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture(autouse=True)
def loops():
    """Closes the loop that the policy keeps, because a loop has descriptors."""
    yield
    asyncio.set_event_loop(None)


def test_changed(run):
    seg, other = shmview.create("seg", 100, one={"A": "i"}), shmview.attach("seg")

    async def main():
        waiting = [asyncio.ensure_future(seg.changed()) for _ in range(3)]
        await asyncio.sleep(0)
        assert await seg.changed(seen=5) == 0  # the counter is not 5 already
        other.notify()
        assert await asyncio.gather(*waiting) == [1, 1, 1]
        seen = seg.change
        for n in range(2, 20):
            other.notify()
            seen = await seg.changed(seen)
        assert seen == 19
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0.01)
        with other.locked():
            other.switch("one")
        await task
        assert seg.phase == "one"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(seg.changed(), 0.01)
        run("import shmview; shmview.attach('seg').notify()")
        task = seg.changed(20)
        assert await task == 21
    asyncio.run(main())
    asyncio.run(main_again(seg, other))


async def main_again(seg, other):
    """Runs another loop on the same segment."""
    seen = seg.change
    other.notify()
    assert await seg.changed(seen) == seen + 1


def test_loops_of_threads():
    seg, other = shmview.create("seg", 100), shmview.attach("seg")
    n, rounds = 4, 25
    seen = [0] * n

    def run(i):
        async def main():
            while seen[i] < rounds:
                seen[i] = await seg.changed(seen[i])
        asyncio.run(main())
    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for k in range(rounds):
        other.notify()
        await_(lambda: min(seen) > k)
    for thread in threads:
        thread.join()
    assert seen == [rounds] * n


def test_two_loops_begin_at_once(monkeypatch):
    """A second loop begins while the first one makes the Watch."""
    seg, ends, threads, made = shmview.create("seg", 100), [], [], []

    async def main():
        try:
            await asyncio.wait_for(seg.changed(), PATIENCE)
        except Exception as error:
            ends.append(repr(error))

    def start():
        threads.append(threading.Thread(target=lambda: asyncio.run(main())))
        threads[-1].start()

    class Watch(_aio.Watch):
        def __init__(self, segment):
            super().__init__(segment)
            made.append(self)
            if len(made) == 1:
                start()
                waits.wait(0.3)  # in vain, unless there are two

        def add(self, *arguments):
            super().add(*arguments)
            waits.set()

    waits = threading.Event()
    monkeypatch.setattr(_aio, "Watch", Watch)
    start()
    await_(lambda: len(threads) == 2 and sum(len(watch._waiters) for watch in made) == 2)
    seg.close()
    for thread in threads:
        thread.join()
    assert ends == ["ValueError('the segment is closed')"] * 2


def test_no_lock():
    seg = shmview.create("seg", 100, lock=False)

    async def main():
        with pytest.raises(shmview.NoLock):
            await seg.changed()
    asyncio.run(main())


def test_forked():
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    async def once():
        seen = seg.change
        other.notify()
        assert await asyncio.wait_for(seg.changed(seen), 60) == seen + 1
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0.01)
        other.notify()
        await asyncio.wait_for(task, 60)
    asyncio.run(once())
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            asyncio.run(once())
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def test_daemon_started_anew(daemon):
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0.01)
        daemon.process.terminate()
        assert daemon.process.wait() == 0
        await asyncio.sleep(0.15)
        assert not task.done()
        daemon.start()
        await asyncio.sleep(0.2)
        other.notify()
        assert await asyncio.wait_for(task, 60) == 1
    asyncio.run(main())


def start_anew(daemon):
    daemon.process.terminate()
    assert daemon.process.wait() == 0
    daemon.start()


def test_daemon_started_anew_while_a_loop_is_busy(daemon):
    """Another loop gets the descriptor of the new daemon, which replaces the old one."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")
    seen, polls, go = [], threading.Event(), threading.Event()

    async def wait():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        polls.set()
        go.wait()
        seen.append(await asyncio.wait_for(task, PATIENCE))

    async def renew():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(seg.changed(), 0.01)
    thread = threading.Thread(target=lambda: asyncio.run(wait()))
    thread.start()
    polls.wait()
    start_anew(daemon)
    asyncio.run(renew())
    go.set()
    other.notify()
    thread.join()
    assert seen == [1]


def test_daemon_started_anew_before_another_task_waits(daemon):
    """The loop is busy until a second task has got the descriptor of the new daemon."""
    seg, other = shmview.create("seg", 100), shmview.attach("seg")

    async def main():
        first = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        start_anew(daemon)
        second = seg.changed()
        second.send(None)  # runs it until it waits, before the loop looks at its descriptors
        other.notify()
        assert await asyncio.wait_for(first, PATIENCE) == 1
        second.close()
    asyncio.run(main())


def test_daemon_removes_all_segments(daemon):
    seg = shmview.create("seg", 100)

    async def main():
        task = asyncio.ensure_future(seg.changed())
        await asyncio.sleep(0)
        daemon.stop()
        with pytest.raises(shmview.Lost):
            await asyncio.wait_for(task, 60)
        with pytest.raises(shmview.Lost):
            await seg.changed()
    asyncio.run(main())
    seg.buf[0] = 1
    assert seg.buf[0] == 1
    daemon.start()
    seg.close()
    with shmview.create("seg", 100) as seg, seg.locked():
        seg.buf[0] = 1
