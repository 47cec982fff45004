# SPDX-License-Identifier: Apache-2.0
"""events(): an iterator and an asynchronous iterator of what happens to segments."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import shmview
from conftest import PATIENCE, await_

pytestmark = pytest.mark.usefixtures("daemon")


def kinds_of(events, n):
    return [events.next(PATIENCE).kind for _ in range(n)]


def first(events):
    """Checks and takes the first event."""
    assert events.next(PATIENCE).kind == "subscribed"
    return events


def test_the_life_of_a_segment():
    with first(shmview.events()) as events:
        before = time.time()
        seg = shmview.create("life", 5000, lifetime="manual", one={"A": "i4"})
        other = shmview.attach("life", access="read")
        seg.set_access(mode=0o640)
        with seg.locked():
            seg.switch("one")
        other.close()
        found = {}
        while "detached" not in found or "phase" not in found:
            event = events.next(PATIENCE)
            found.setdefault(event.kind, event)
        created, phase, detached = found["created"], found["phase"], found["detached"]
        assert (created.segment, created.size, created.uid, created.pid) == ("life", 5000, os.getuid(), os.getpid())
        assert before - 1 < created.time < time.time() + 1 and created.id == shmview.stats("life").id
        assert (created.layout, created.reason, created.error) == (None, None, 0)
        assert "kind='created'" in repr(created) and "size=5000" in repr(created) and "uid=" in repr(created)
        assert "reason" not in repr(created)  # which it does not have
        assert (phase.layout, phase.generation, phase.switches) == ("one", seg.generation, 1)
        assert (detached.access, detached.held) == ("read", None) and detached.slot is not None
        assert found["access_changed"].segment == "life"
        seg.remove()
        assert events.next(PATIENCE).kind == "removed"
        seg.close()
    assert events.closed and repr(events) == "<shmview.Events, closed>"


def test_streams():
    with first(shmview.events("cam", kinds=["attached", "died"])) as events:
        with shmview.create_stream("cam", image=("u1", (4,)), slots=3, lossless=True) as stream:
            created = events.next(PATIENCE)
            assert (created.stream, created.stream_slots, created.stream_role) == (None, 0, None)
            code = "import os, shmview; s = shmview.open_stream('cam'); s.join(); print(flush=True); f = s.take(); " \
                   "os.kill(os.getpid(), 9)"
            reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            reader.stdout.readline()
            with stream.loan():
                pass
            reader.communicate()
            attached, died = events.next(PATIENCE), events.next(PATIENCE)
            assert (attached.stream, attached.stream_slots, attached.stream_role) == ("lossless", 3, None)
            assert (died.kind, died.pid, died.stream, died.stream_role) == ("died", reader.pid, "lossless", "reader")
            assert died.held_frames == 1 and "held_frames=1" in repr(died)


def test_names_and_kinds():
    events = first(shmview.events("a", "b", kinds=["created", "removed"]))
    segments = [shmview.create(name, 10) for name in ("a", "c", "b")]
    assert [events.next(PATIENCE).segment for _ in range(2)] == ["a", "b"]
    segments[0].remove()
    event = events.next(PATIENCE)
    assert (event.kind, event.segment) == ("removed", "a")
    later = first(shmview.events(kinds="created", after=event.serial))
    shmview.create("d", 10).close()
    assert later.next(PATIENCE).segment == "d"
    remembered = first(shmview.events("c", kinds=["created"], after=0))
    assert remembered.next(PATIENCE).segment == "c"
    for each in (events, later, remembered, *segments):
        each.close()


def test_a_death(run):
    seg = shmview.create("seg", 10)
    with first(shmview.events("seg", kinds=["died", "owner_died"])) as events:
        run("import os, shmview\nseg = shmview.attach('seg')\nseg.lock()\nos._exit(0)")
        died, owner_died = events.next(PATIENCE), events.next(PATIENCE)
    assert (died.kind, owner_died.kind, owner_died.held) == ("died", "owner_died", "exclusive")
    assert died.pid == owner_died.pid != os.getpid()
    seg.close()


def test_a_refusal_by_a_quota():
    subscriptions = []
    with pytest.raises(shmview.Quota):
        while True:
            subscriptions.append(shmview.events())
            assert len(subscriptions) <= 64
    with pytest.raises(shmview.Invalid):
        shmview.events(*(f"n{i}" for i in range(65)))
    for each in subscriptions:
        each.close()


def test_lost_events(seg):
    with first(shmview.events(kinds=["access_changed"])) as events:
        n = 6000
        for _ in range(n):
            seg.set_access(mode=0o640)
        n_got, lost = 0, None
        while n_got + (lost.lost if lost else 0) < n:
            event = events.next(PATIENCE)
            if event.kind == "lost":
                assert lost is None and event.lost > 0
                lost = event
            else:
                n_got += 1
        assert lost and n_got >= 2048


def test_iteration_ends_with_close():
    events = shmview.events(kinds=["created"])
    seen = []

    def follow():
        for event in events:
            seen.append(event.kind)
    thread = threading.Thread(target=follow)
    thread.start()
    await_(lambda: seen == ["subscribed"])
    shmview.create("one", 10).close()
    await_(lambda: len(seen) == 2)
    await_(lambda: is_busy(events))
    with pytest.raises(shmview.Busy, match="another thread waits"):
        events.next()
    events.close()
    events.close()
    thread.join(PATIENCE)
    assert not thread.is_alive() and seen == ["subscribed", "created"]
    assert list(events) == []
    with pytest.raises(ValueError, match="closed"):
        events.next()
    with pytest.raises(ValueError, match="closed"):
        events.fileno()


def test_timeouts():
    with first(shmview.events(kinds=["created"])) as events:
        for timeout in (0, 0.01):
            with pytest.raises(shmview.TimedOut):
                events.next(timeout)
        with pytest.raises(TimeoutError):
            events.next(timeout=0)
        with pytest.raises(ValueError):
            events.next(-1)
        assert events.fileno() >= 0


def test_a_signal_ends_the_wait():
    def stop(*_):
        raise KeyboardInterrupt
    old = signal.signal(signal.SIGALRM, stop)
    events = first(shmview.events(kinds=["created"]))
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            events.next()
        shmview.create("after", 10).close()
        assert events.next(PATIENCE).segment == "after"
        signal.signal(signal.SIGALRM, lambda *_: events.close())  # ends the iteration instead
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert list(events) == []
    finally:
        signal.signal(signal.SIGALRM, old)
        events.close()


def test_other_threads_run_during_a_wait():
    with first(shmview.events(kinds=["created"])) as events:
        thread = threading.Thread(target=lambda: shmview.create("made", 10).close())
        threading.Timer(0.05, thread.start).start()
        assert events.next(PATIENCE).segment == "made"
        thread.join()


def test_a_child_may_only_close_its_copy():
    events = first(shmview.events(kinds=["created"]))
    pid = os.fork()
    if pid == 0:
        try:
            events.next(0)
        except ValueError as e:
            events.close()
            os._exit(0 if "parent" in str(e) and events.closed else 1)
        os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    shmview.create("still", 10).close()
    assert events.next(PATIENCE).segment == "still"
    events.close()


def test_iterations_in_a_child():
    """They raise there and do not end, because an end would look like a close()."""
    with first(shmview.events(kinds=["created"])) as events:
        async def follow():
            async for _ in events:
                os._exit(3)
        pid = os.fork()
        if pid == 0:
            status = 2
            try:
                for iterate in lambda: list(events), lambda: asyncio.run(follow()):
                    with pytest.raises(ValueError, match="parent"):
                        iterate()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0


def test_a_child_of_a_waiting_thread():
    """The monitor that a thread of the parent uses is left alone in the child."""
    events = first(shmview.events(kinds=["created"]))
    thread = threading.Thread(target=lambda: list(events))
    thread.start()
    await_(lambda: is_busy(events))
    pid = os.fork()
    if pid == 0:
        events.close()
        os._exit(0 if events.closed else 1)
    assert os.waitpid(pid, 0)[1] == 0
    events.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_child_of_a_waiting_task():
    """The child shares the epoll of the parent's loop, which must go on polling the subscription."""
    async def main():
        with shmview.events(kinds=["created"]) as events:
            await events.__anext__()
            task = asyncio.ensure_future(events.__anext__())
            await asyncio.sleep(0.02)
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    with pytest.raises(ValueError, match="belong to the parent"):
                        events.next(0)
                    events.close()
                    status = 0 if events.closed else 2
                finally:
                    os._exit(status)
            assert os.waitpid(pid, 0)[1] == 0
            shmview.create("child", 10).close()
            assert (await asyncio.wait_for(task, PATIENCE)).segment == "child"
    asyncio.run(main())


def is_busy(events):
    """Returns whether a thread waits. fileno() takes no time in which that thread would get Busy itself."""
    try:
        events.fileno()
    except shmview.Busy:
        return True
    return False


def test_a_restart_of_the_daemon(daemon):
    seg = shmview.create("seg", 10)
    with first(shmview.events(kinds=["created", "subscribed"])) as events:
        daemon.process.kill()
        daemon.process.wait()
        with pytest.raises((shmview.Disconnected, shmview.TimedOut)):
            while True:
                events.next(0)
        daemon.start()
        assert events.next(PATIENCE).kind == "subscribed"
        shmview.create("later", 10).close()
        assert events.next(PATIENCE).segment == "later"
    seg.close()


def test_asyncio():
    async def follow(events, seen):
        async for event in events:
            seen.append(event.segment)
            if len(seen) == 3:
                return

    async def both():
        seen = []
        async with shmview.events(kinds=["created"]) as events:
            task = asyncio.ensure_future(follow(events, seen))
            await asyncio.sleep(0.05)
            with pytest.raises(shmview.Busy):
                events.next(0)
            for name in ("one", "two"):
                shmview.create(name, 10).close()
            await asyncio.wait_for(task, PATIENCE)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(events.__anext__(), 0.01)
            shmview.create("three", 10).close()
            event = await asyncio.wait_for(events.__anext__(), PATIENCE)
            seen.append(event.segment)
        return seen
    assert asyncio.run(both()) == [None, "one", "two", "three"]


@pytest.mark.parametrize("from_thread", [False, True])
def test_close_ends_an_async_iteration(from_thread):
    async def main():
        events = shmview.events(kinds=["created"])

        async def follow():
            return [event.kind async for event in events]
        task = asyncio.ensure_future(follow())
        await asyncio.sleep(0.02)
        if from_thread:
            await asyncio.get_running_loop().run_in_executor(None, events.close)
        else:
            events.close()
        seen = await asyncio.wait_for(task, PATIENCE)
        assert events.closed
        return seen
    assert asyncio.run(main()) == ["subscribed"]


def test_close_after_its_loop():
    """A loop that is closed with a task in it polls no longer, so another thread may close the subscription."""
    events = shmview.events(kinds=["created"])

    async def follow():
        return [event.kind async for event in events]
    loop = asyncio.new_event_loop()
    task = loop.create_task(follow())
    loop.run_until_complete(asyncio.sleep(0.02))
    loop.close()
    thread = threading.Thread(target=events.close)
    thread.start()
    thread.join(PATIENCE)
    assert events.closed
    with pytest.raises(ValueError, match="closed"):
        events.next(0)
    task._log_destroy_pending = False


def test_asyncio_while_the_daemon_is_gone(daemon):
    seg = shmview.create("seg", 10)

    async def main():
        with shmview.events(kinds=["created", "subscribed"]) as events:
            assert (await events.__anext__()).kind == "subscribed"
            daemon.process.kill()
            daemon.process.wait()
            task = asyncio.ensure_future(events.__anext__())
            await asyncio.sleep(0.15)
            assert not task.done()
            daemon.start()
            assert (await asyncio.wait_for(task, PATIENCE)).kind == "subscribed"
    asyncio.run(main())
    seg.close()


def test_ctrl_c_ends_a_program():
    program = subprocess.Popen([sys.executable, "-c", "import shmview\nfor e in shmview.events(): print(e.kind, flush=True)"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert program.stdout.readline() == b"subscribed\n"
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=PATIENCE)
    assert b"KeyboardInterrupt" in errors and program.returncode == -signal.SIGINT


def test_refusals():
    with pytest.raises(ValueError, match="no kind of events: 'born'; the kinds are created, attached"):
        shmview.events(kinds=["born"])
    for wrong in ({"kinds": [3]}, {"after": "x"}, {"connection": 3}):
        with pytest.raises(TypeError):
            shmview.events(**wrong)
    for wrong in 3, ["demo"]:
        with pytest.raises(TypeError, match="names that are str, one by one"):
            shmview.events(wrong)
    with pytest.raises(OverflowError):
        shmview.events(after=-1)
    with pytest.raises(TypeError):
        shmview._core.Monitor()


@pytest.mark.parametrize("make, open", [
    (lambda: shmview.create("late", 10), shmview.attach),
    (lambda: shmview.create_stream("late", image=("u1", 4)), shmview.open_stream),
], ids=["attach", "open_stream"])
def test_attach_without_a_subscription(make, open):
    """If the daemon has no room for one more subscription, attach() and open_stream() poll."""
    every = []
    with pytest.raises((shmview.Quota, shmview.Limit)):
        while True:
            every.append(shmview.events("other"))
    begun = time.monotonic()
    with pytest.raises(shmview.NotFound):
        open("never", timeout=0.1)
    assert time.monotonic() - begun >= 0.1
    for timeout in PATIENCE, None:
        made = []
        timer = threading.Timer(0.1, lambda: made.append(make()))
        timer.start()
        with open("late", timeout=timeout) as found:
            assert found.name == "late"
        timer.join()
        made.pop().close()
    for events in every:
        events.close()


def test_no_leak(no_leak):
    def one():
        with shmview.events() as events:
            return events.next(PATIENCE).kind
    no_leak(one)
