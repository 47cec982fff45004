# SPDX-License-Identifier: Apache-2.0
"""'async with segment.locked():' waits without blocking the event loop, and keeps its tasks apart."""

import asyncio
import errno
import threading

import pytest

import shmview
from conftest import PATIENCE

pytestmark = pytest.mark.usefixtures("daemon")


def test_tasks_exclude_each_other():
    seg = shmview.create(size=16)
    inside, order = [], []

    async def task(n):
        async with seg.locked() as got:
            assert got is seg and seg.lock_status().held
            inside.append(n)
            assert inside == [n]
            await asyncio.sleep(0)
            order.append(n)
            inside.remove(n)

    async def main():
        await asyncio.gather(*(task(n) for n in range(20)))
    asyncio.run(main())
    assert order == sorted(order) and len(order) == 20 and not seg.lock_status().held


def test_sharing_tasks_are_inside_together():
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)

    async def main():
        both, inside = asyncio.Event(), []

        async def share(n):
            async with seg.shared():
                inside.append(n)
                if len(inside) == 2:
                    both.set()
                await both.wait()
                assert other.trylock(shared=True) and not other.unlock() and not other.trylock()

        async def write():
            async with seg.locked():
                assert len(inside) == 2 and not other.trylock(shared=True)
        await asyncio.gather(share(1), share(2), write())
    asyncio.run(main())
    assert other.trylock()
    other.unlock()


@pytest.mark.parametrize("wanted", ["locked", "shared", "recover"])
def test_the_loop_runs_while_a_task_waits(wanted):
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)

    async def main():
        async def take():
            async with getattr(seg, wanted)():
                assert not other.trylock()
        other.lock()
        waiter = asyncio.ensure_future(take())
        while not any(p.role.startswith("waits") for p in other.lock_status().parties):
            await asyncio.sleep(0.001)
        other.unlock()
        await waiter
    asyncio.run(main())
    assert other.trylock()
    other.unlock()


def test_timeouts_and_cancelled_tasks_leave_nothing():
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)

    async def take(guard):
        async with guard:
            await asyncio.sleep(0)

    async def main():
        other.lock()
        for guard in seg.locked(timeout=0.01), seg.shared(timeout=0), seg.recover(timeout=0.01):
            with pytest.raises(shmview.TimedOut):
                await take(guard)
        waiter = asyncio.ensure_future(take(seg.locked()))
        behind = asyncio.ensure_future(take(seg.locked(timeout=0.01)))
        with pytest.raises(shmview.TimedOut):
            await behind
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        other.unlock()
        await take(seg.locked())
    asyncio.run(main())
    for thread in threading.enumerate():
        if thread.name == "shmview-async-lock":
            thread.join()
    assert other.trylock()
    other.unlock()
    seg.close()


def test_a_timeout_counts_while_the_task_in_front_wakes_up():
    """The lock in which tasks queue is free for a moment then, but the task in front gets it."""
    seg = shmview.create(size=16)

    async def late():
        async with seg.locked(timeout=0.05):
            pass

    async def main():
        go, late_begun = (asyncio.get_running_loop().create_future() for _ in range(2))

        async def first():
            async with seg.locked():
                await go
            late_begun.set_result(asyncio.ensure_future(late()))

        async def stay():
            async with seg.locked():
                task = await late_begun
                await asyncio.wait([task], timeout=PATIENCE)
                assert task.done()
        tasks = [asyncio.ensure_future(task()) for task in (first, stay, stay)]
        await asyncio.sleep(0.01)  # one is inside, one waits for it, and one waits for its turn to do so
        go.set_result(None)
        await asyncio.gather(*tasks)
        with pytest.raises(shmview.TimedOut) as e:
            await late_begun.result()
        assert e.value.errno == errno.ETIMEDOUT
        async with seg.locked(timeout=0):
            pass
    asyncio.run(main())


def is_free(segment):
    """Returns whether another thread can take the lock now."""
    if segment.trylock():
        segment.unlock()
        return True
    return False


@pytest.mark.parametrize("outer, inner", [("locked", "locked"), ("locked", "shared"), ("shared", "shared"),
                                          ("shared", "locked"), ("recover", "locked")])
def test_blocks_of_one_task_nest(outer, inner):
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)
    inside = []

    async def nest():
        async with getattr(seg, outer)():
            another = asyncio.ensure_future(enter())
            for timeout in None, 0:
                if (outer, inner) == ("shared", "locked"):
                    with pytest.raises(shmview.Deadlock):
                        await getattr(seg, inner)(timeout).__aenter__()
                    continue
                async with getattr(seg, inner)(timeout) as got:
                    assert got is seg
                    await asyncio.sleep(0)
                assert not is_free(other)
            await asyncio.sleep(0)
            assert not inside
        await another
        assert inside

    async def enter():
        async with seg.locked():
            inside.append(1)
    asyncio.run(asyncio.wait_for(nest(), PATIENCE))
    assert is_free(other)


def test_nested_blocks_while_others_wait():
    """A task that shares the lock nests although a writer waits, of this loop and of another thread."""
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)

    def write():
        with other.locked():
            pass
    thread = threading.Thread(target=write)

    async def share(begun, go):
        async with seg.shared():
            begun.set()
            await go.wait()
            async with seg.shared():
                assert seg.lock_status().held

    async def main():
        begun, go = asyncio.Event(), asyncio.Event()
        tasks = [asyncio.ensure_future(share(begun, go)) for _ in range(2)]
        await begun.wait()
        thread.start()
        while not any(p.role.startswith("waits") for p in other.lock_status().parties):
            await asyncio.sleep(0.001)

        async def exclude():
            async with seg.locked():
                assert all(task.done() for task in tasks)
        tasks_after = asyncio.ensure_future(exclude())
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(*tasks, tasks_after)
    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    thread.join()
    assert is_free(other)


def test_a_block_that_another_task_ends():
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)
    guards = [seg.locked(), seg.locked(), seg.shared()]

    async def end(n):
        await guards[n].__aexit__(None, None, None)

    async def main():
        for guard in guards:
            await guard.__aenter__()
        for n in 0, 2, 1:  # in any order, and the last in this task
            await (asyncio.ensure_future(end(n)) if n != 1 else end(n))
            assert is_free(other) == (n == 1)
        await asyncio.ensure_future(guards[0].__aenter__())  # the task that enters ends
        assert not is_free(other)
        with pytest.raises(shmview.TimedOut):
            await seg.locked(timeout=0).__aenter__()
        await end(0)
        assert is_free(other)
        with pytest.raises(shmview.NotOwner):
            await end(0)
        async with seg.locked(timeout=0):
            pass
    asyncio.run(main())


def test_tasks_share_a_guard():
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)
    guard = seg.shared()

    async def task():
        async with guard:
            await asyncio.sleep(0)
            async with guard:
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not is_free(other)

    async def main():
        await asyncio.gather(*(task() for _ in range(5)))
    asyncio.run(asyncio.wait_for(main(), PATIENCE))
    assert is_free(other)


def test_a_death_is_reported_to_a_task():
    seg = shmview.create(size=16)
    other = shmview.attach(seg.name)
    other.lock()

    async def main():
        async def take():
            async with seg.locked():
                raise AssertionError("OwnerDied was not raised")

        async def repair():
            async with seg.recover() as died:
                return died
        waiters = [asyncio.ensure_future(take()) for _ in range(2)]
        await asyncio.sleep(0.01)
        other.unlock(repaired=False)
        for waiter in waiters:
            with pytest.raises(shmview.OwnerDied):
                await waiter
        with pytest.raises(ValueError):
            async with seg.recover() as died:
                assert isinstance(died, shmview.OwnerDied)
                raise ValueError
        assert isinstance(await repair(), shmview.OwnerDied)
        assert await repair() is None
    asyncio.run(main())


def test_two_loops_in_two_threads():
    seg = shmview.create(size=8)
    view = seg.cast("q")

    async def count():
        for _ in range(50):
            async with seg.locked():
                seen = view[0]
                await asyncio.sleep(0)
                view[0] = seen + 1
    threads = [threading.Thread(target=asyncio.run, args=(count(),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert view[0] == 100
