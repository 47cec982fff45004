# SPDX-License-Identifier: Apache-2.0
"""The lock among threads and processes: exclusion, owners that die inside, signals during waits,
and attachments that the daemon has ended."""

import contextlib
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

import shmview
from conftest import DIE_INSIDE, await_

pytestmark = pytest.mark.usefixtures("daemon")

HOLD = """
import shmview, sys
seg = shmview.attach("seg")
seg.lock()
seg.buf[0] = 1
print("inside", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def holder(source=HOLD):
    """Starts a process that is inside."""
    child = subprocess.Popen([sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"inside\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()


def kill(child):
    child.kill()
    child.wait()


def test_threads():
    seg = shmview.create("seg", 8)
    counter = seg.cast("q")

    def work():
        for _ in range(500):
            with seg.locked():
                counter[0] += 1
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter[0] == 2000


def test_owner_died():
    seg = shmview.create("seg", 100, one={"A": "i"}, phase="one")
    with holder() as child:
        assert not seg.trylock() and not seg.trylock(shared=True)
        with pytest.raises(shmview.TimedOut):
            seg.lock(timeout=0.01)
        kill(child)
        for take in (seg.locked().__enter__, seg.lock, seg.shared().__enter__, lambda: seg.lock(shared=True)):
            with pytest.raises(shmview.OwnerDied) as e:
                take()
            assert not seg.lock_status().held  # a call that raises holds nothing
        with pytest.raises(shmview.OwnerDied):
            seg.trylock()
        died = e.value
        assert (died.name, died.pid, died.phase, died.generation) == ("seg", child.pid, "one", 1)
        assert died.command.startswith("python3") and 0 < died.when <= time.monotonic()
        assert abs(died.died_at.timestamp() - time.time()) < 60
        assert f"process {child.pid} ({died.command}) died while it held the lock of 'seg'; see" in str(died)
        assert pickle.loads(pickle.dumps(died)).pid == child.pid
        assert seg.lock_status().dirty
    with pytest.raises(ZeroDivisionError):
        with seg.recover() as died:
            assert died.pid == child.pid and seg.lock_status().held
            1 // 0  # not repaired: the next owner gets the report again
    with seg.recover() as died:
        assert died.pid == child.pid
    with seg.recover() as died:
        assert died is None
    with pytest.raises(ZeroDivisionError):
        with seg.recover() as died:
            1 // 0
    with seg.locked():
        assert seg.buf[0] == 1
    seg.lock()
    seg.unlock(repaired=False)  # nobody dies
    with pytest.raises(shmview.OwnerDied, match=r"^a thread of this process \(python3.*\) died while it held the lock "
                                                "of 'seg', or gave it back unrepaired; see Segment.recover") as e:
        seg.lock()
    assert (e.value.pid, e.value.when, e.value.died_at) == (os.getpid(), 0, None)
    with seg.recover():
        pass


# A guard that is kept, and whose inner block ends before the outer one.
NESTED = """
import os, shmview, sys, time
seg = shmview.create("nested", 100)
inner_fails, outer_fails = sys.argv[1:]
""" + DIE_INSIDE + """
die_inside(seg)
guard = seg.recover()
try:
    with guard as died:
        assert died
        try:
            with guard as again:
                assert again is None
                1 // (inner_fails == "no")
        except ZeroDivisionError:
            pass
        1 // (outer_fails == "no")
except ZeroDivisionError:
    pass
with guard as died:
    print(died is not None)
try:
    with guard:
        1 // 0  # nobody has died since
except ZeroDivisionError:
    pass
with seg.locked():
    pass
"""


@pytest.mark.parametrize("inner", ["no", "yes"])
@pytest.mark.parametrize("outer", ["no", "yes"])
def test_a_nested_guard_keeps_the_report(run, inner, outer):
    assert run(NESTED, inner, outer) == f"{outer == 'yes'}\n"


def test_death_wakes_a_waiter():
    seg = shmview.create("seg", 100)
    found = []

    def wait():
        try:
            with seg.locked():
                found.append(None)
        except shmview.OwnerDied as died:
            found.append(died.pid)
    with holder() as child:
        thread = threading.Thread(target=wait)
        thread.start()
        await_(lambda: "waits" in [party.role for party in seg.lock_status().parties])
        kill(child)
        thread.join()
    assert found == [child.pid]


def test_thread_that_exits_inside():
    seg = shmview.create("seg", 100)
    thread = threading.Thread(target=seg.lock)
    thread.start()
    thread.join()
    with pytest.raises(shmview.OwnerDied) as e:
        seg.lock()
    assert e.value.pid == os.getpid()


def test_shared():
    seg = shmview.create("seg", 100)
    other = shmview.attach("seg", readonly=True)
    with seg.shared(), other.shared(), seg.shared():
        roles = sorted(party.role for party in seg.lock_status().parties)
        assert roles == ["holds shared", "holds shared"]
        assert other.trylock(shared=True)
        other.unlock()
        third = shmview.attach("seg")
        assert not third.trylock()
    assert third.trylock()
    third.unlock()


def test_exit_stack_and_methods():
    seg = shmview.create("seg", 100)
    guard = seg.locked()
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(guard) is seg
        stack.enter_context(guard)
        assert seg.lock_status().held
    assert not seg.lock_status().held
    enter, leave = guard.__enter__, guard.__exit__
    assert enter() is seg and enter.__self__ is guard and enter.__name__ == "__enter__" and "__enter__" in repr(enter)
    leave(None, None, None)
    assert "Guard" in repr(shmview.Guard.__enter__)
    for wrong in (lambda: shmview.Guard.__enter__(5), lambda: shmview.Guard.__enter__(), lambda: enter(x=1),
                  lambda: type(enter)(), lambda: shmview.Guard.__dict__["__enter__"].__get__(5), lambda: shmview.Guard()):
        with pytest.raises(TypeError):
            wrong()
    with shmview.create("two", 10).locked():  # only the statement refers to the segment
        two = shmview.attach("two")
        assert not two.trylock()


class Interrupted(Exception):
    pass


def interrupt(*_):
    raise Interrupted


@pytest.mark.parametrize("wait", ["lock", "with", "shared", "recover", "change", "phase", "attach"])
def test_signals_end_a_wait(wait, run):
    seg = shmview.create("seg", 100, one={"A": "i"})
    calls = {"lock": seg.lock, "with": seg.locked().__enter__, "shared": lambda: seg.lock(shared=True),
             "recover": seg.recover().__enter__, "change": seg.wait, "phase": lambda: seg.wait("one"),
             "attach": lambda: shmview.attach("nobody", timeout=None)}
    main = threading.get_ident()
    before = signal.signal(signal.SIGUSR1, interrupt)
    done = threading.Event()

    def send():  # repeatedly, because the first one may come before the wait
        while not done.wait(0.02):
            signal.pthread_kill(main, signal.SIGUSR1)
    sender = threading.Thread(target=send)
    try:
        with holder():
            try:
                sender.start()
                calls[wait]()
                raise AssertionError("the wait has ended by itself")
            except Interrupted:
                pass
            finally:
                while True:
                    try:
                        done.set()
                        sender.join()
                        break
                    except Interrupted:
                        pass
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not [party for party in seg.lock_status().parties if party.pid == os.getpid()]
    with seg.recover():
        pass


def test_signals_that_do_not_raise(run):
    seg = shmview.create("seg", 100)
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    main = threading.get_ident()

    def send():
        for n in range(1, 4):
            signal.pthread_kill(main, signal.SIGUSR1)
            await_(lambda: len(seen) >= n)
        other.unlock()

    def both():
        other.lock()
        started.set()
        send()
    started = threading.Event()
    other = shmview.attach("seg")
    thread = threading.Thread(target=both)
    thread.start()
    try:
        while not started.wait(0.01):
            pass
        with seg.locked():
            assert len(seen) == 3
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)


def test_the_gil_is_free():
    """A thread that waits lets others run: the thread that ends its wait is in the same process."""
    seg, other = shmview.create("seg", 100, one={"A": "i"}), shmview.attach("seg")
    other.lock()
    thread = threading.Thread(target=lambda: (seg.lock(), seg.unlock()))
    thread.start()
    await_(lambda: "waits" in [party.role for party in other.lock_status().parties])
    other.unlock()
    thread.join()
    thread = threading.Thread(target=lambda: seg.wait(change=0))
    thread.start()
    time.sleep(0)
    other.notify()
    thread.join()


def lose():
    """Marks every slot of the only segment as dead, as the daemon does when it ends an
    attachment."""
    with open("/proc/self/maps") as maps:
        path, = {line.split()[-1] for line in maps if "liveness" in line}
    with open(path, "r+b") as live:
        live.seek(36)
        high, = struct.unpack("I", live.read(4))
        live.seek(96)
        generations = struct.unpack(f"{high}I", live.read(4 * high))
        live.seek(96)
        live.write(struct.pack(f"{high}I", *(g | 1 << 31 for g in generations)))


def test_lost():
    seg = shmview.create("lost", 100)
    shmview.attach("lost").close()  # a second slot
    with pytest.raises(shmview.Lost, match="has ended this attachment of 'lost'") as e:
        with seg.locked():
            lose()
            with contextlib.suppress(RuntimeError):
                with shmview.attach("lost").locked():  # this gets the lock at once
                    pass
    assert isinstance(e.value, RuntimeError) and e.value.code == 48
    for take in seg.lock, seg.trylock, seg.locked().__enter__, seg.shared().__enter__, seg.recover().__enter__:
        with pytest.raises(shmview.Lost):
            take()
    with pytest.raises(shmview.NotOwner):
        seg.unlock()
    seg.close()


def test_a_thread_of_this_process_that_ended_is_named_as_such(seg):
    thread = threading.Thread(target=seg.lock)
    thread.start()
    thread.join()
    with pytest.raises(shmview.OwnerDied, match="^a thread of this process") as caught:
        seg.lock()
    assert caught.value.pid == os.getpid() and caught.value.died_at is None
    with seg.recover():
        pass
