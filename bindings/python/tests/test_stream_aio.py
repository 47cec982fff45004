# SPDX-License-Identifier: Apache-2.0
"""Streams in asyncio: 'async for frame in stream' in several tasks, loops and threads, a death, a fork, and a
restart of the daemon."""

import asyncio
import os
import signal
import subprocess
import sys
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


@pytest.fixture
def stream(daemon):
    with shmview.create_stream("s", n=("i8", 4), slots=16, lossless=True) as stream:
        yield stream


@pytest.fixture
def reader(stream):
    with shmview.open_stream("s") as reader:
        reader.join()
        yield reader


def write(stream, number):
    with stream.loan(PATIENCE) as frame:
        frame["n"][0] = number


async def all_of(reader):
    return [int(frame["n"][0]) async for frame in reader]


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


def test_an_interrupted_close_is_finished_by_the_next_one(stream):
    reader, interrupts = shmview.open_stream("s"), []

    class Watch(_aio.Watch):
        def close(self):
            if not interrupts:
                interrupts.append(1)
                raise KeyboardInterrupt
            super().close()

    async def main():
        reader.join()
        reader._watch = Watch(reader)
        task = asyncio.ensure_future(all_of(reader))
        await asyncio.sleep(0)
        with pytest.raises(KeyboardInterrupt):
            reader.close()
        assert reader.closed and not task.done()
        reader.close()
        with pytest.raises(ValueError, match="closed"):
            await asyncio.wait_for(task, PATIENCE)
    run(main())


def test_leave_ends_a_task_that_waits(stream, reader):
    async def main():
        task = asyncio.ensure_future(all_of(reader))
        await asyncio.sleep(0)  # the task waits
        reader.leave()
        with pytest.raises(shmview.Invalid, match="has left stream 's' during the call"):
            await task
        for i in range(40):  # more than there are slots
            with stream.loan(0) as frame:
                frame["n"][0] = i

    run(main())


def test_async_for(stream, reader):
    async def main():
        task = asyncio.ensure_future(all_of(reader))
        for i in range(20):
            write(stream, i)
            await asyncio.sleep(0.001 if i % 4 == 0 else 0)
        stream.end()
        return await task
    assert run(main()) == list(range(20))
    assert run(all_of(reader)) == []


def test_a_reader_that_peeks_waits(stream):
    async def main():
        with shmview.open_stream("s", "peek") as peek:
            task = asyncio.ensure_future(all_of(peek))
            await asyncio.sleep(0)
            for i in range(2):
                write(stream, i)
            stream.end()
            assert await task == [0, 1]
    run(main())


def test_frames_that_wait_already(stream, reader):
    for i in range(10):
        write(stream, i)
    stream.end()
    assert run(all_of(reader)) == list(range(10))


def test_several_tasks_share_the_frames(stream, reader):
    async def main():
        tasks = [asyncio.ensure_future(all_of(reader)) for _ in range(3)]
        for i in range(60):
            write(stream, i)
            if i % 3 == 0:
                await asyncio.sleep(0.001)
        stream.end()
        return sorted(sum(await asyncio.gather(*tasks), []))
    assert run(main()) == list(range(60))


def test_loops_of_threads(stream):
    seen = {}

    def loop(i):
        with shmview.open_stream("s") as reader:
            reader.join()
            seen[i] = asyncio.run(all_of(reader))
    threads = [threading.Thread(target=loop, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    await_(lambda: len(stream.status().readers) == 3)
    for i in range(100):
        write(stream, i)
    stream.end()
    for thread in threads:
        thread.join()
    assert seen == {i: list(range(100)) for i in range(3)}


def test_other_processes_write(reader, stream):
    stream.close()
    source = ("import shmview, time\ns = shmview.open_stream('s', 'write')\nfor i in range(20):\n"
              "    with s.loan() as frame: frame['n'][0] = i\n    time.sleep(0.002)\ns.end()")
    process = subprocess.Popen([sys.executable, "-c", source])
    assert run(all_of(reader)) == list(range(20))
    assert process.wait() == 0


def test_a_death_ends_the_wait(reader, stream):
    stream.close()
    source = "import shmview, time\ns = shmview.open_stream('s', 'write')\ns.loan().publish()\ntime.sleep(100)"
    process = subprocess.Popen([sys.executable, "-c", source])

    async def main():
        n = 0
        with pytest.raises(shmview.WriterDied) as e:
            async for frame in reader:
                n += 1
                asyncio.get_running_loop().call_later(0.03, process.send_signal, signal.SIGKILL)
        assert n == 1 and e.value.pid == process.pid
    run(main())
    process.wait()


def test_closed_meanwhile(stream, reader):
    async def main():
        task = asyncio.ensure_future(all_of(reader))
        await asyncio.sleep(0.01)
        reader.close()
        with pytest.raises(ValueError, match="the stream is closed"):
            await task
    run(main())


def test_a_refused_close_ends_no_wait(stream, reader):
    async def main():
        write(stream, 1)
        with await reader.__anext__():
            task = asyncio.ensure_future(all_of(reader))
            await asyncio.sleep(0)
            with pytest.raises(shmview.Busy):
                reader.close()
        write(stream, 2)
        stream.end()
        assert await task == [2]
    run(main())


def test_cancelled(stream, reader):
    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reader.__anext__(), 0.01)
        write(stream, 3)
        async for frame in reader:
            assert frame["n"][0] == 3
            break
    run(main())


def test_forked(stream, reader):
    async def once(number):
        task = asyncio.ensure_future(reader.__anext__())
        await asyncio.sleep(0.01)
        write(stream, number)
        with await asyncio.wait_for(task, 60) as frame:
            assert frame["n"][0] == number
    asyncio.run(once(1))
    stream.close()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            own = shmview.open_stream("s", "write")

            async def child():
                task = asyncio.ensure_future(reader.__anext__())
                await asyncio.sleep(0.01)
                write(own, 2)
                assert (await asyncio.wait_for(task, 60))["n"][0] == 2
            asyncio.run(child())
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def test_the_daemon_is_started_again(daemon, stream, reader):
    async def main():
        task = asyncio.ensure_future(reader.__anext__())
        await asyncio.sleep(0.01)
        daemon.process.terminate()
        assert daemon.process.wait() == 0
        await asyncio.sleep(0.15)
        assert not task.done()
        daemon.start()
        await asyncio.sleep(0.2)
        write(stream, 1)
        assert (await asyncio.wait_for(task, 60))["n"][0] == 1
    asyncio.run(main())


def test_daemon_removes_all_segments(daemon, stream, reader):
    async def main():
        task = asyncio.ensure_future(reader.__anext__())
        await asyncio.sleep(0)
        daemon.stop()
        with pytest.raises(shmview.Lost):
            await asyncio.wait_for(task, 60)
    asyncio.run(main())
    daemon.start()
