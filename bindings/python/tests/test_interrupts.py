# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends every wait with KeyboardInterrupt, and the interrupted call holds nothing
afterwards. A handler that does not raise ends no wait."""

import os
import signal
import subprocess
import threading
import time

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")

# The thread `sender` sends SIGINT until the handler has raised, or the program sets `done`.
PROLOGUE = """
import asyncio, os, shmview, signal, sys, threading, time
done = threading.Event()
def interrupt():
    while not done.wait(0.1):
        os.kill(os.getpid(), signal.SIGINT)
def handler(*_):
    if not done.is_set():
        done.set()
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
sender = threading.Thread(target=interrupt)
"""

PROGRAM = PROLOGUE + """
seg = shmview.create(None, 100, one={"A": "i"})
lock, rlock, array, value = shmview.Lock(), shmview.RLock(), shmview.Array("i", 3), shmview.Value("i")
held, leave = threading.Event(), threading.Event()
def hold():
    with seg.locked(), lock, rlock, array, value:
        held.set()
        leave.wait()
holder = threading.Thread(target=hold)
holder.start()
held.wait()
async def changed():
    await seg.changed()
waits = {
    "Lock": lock.acquire, "RLock": rlock.acquire, "with Array": array.__enter__, "Array[0]": lambda: array[0],
    "Array[:]": lambda: array.__setitem__(slice(None), [1, 2, 3]), "Value": lambda: value.value,
    "timeout": lambda: lock.acquire(timeout=1000), "segment": seg.lock, "with segment": seg.locked().__enter__,
    "shared": seg.shared().__enter__, "recover": seg.recover().__enter__, "change": seg.wait,
    "phase": lambda: seg.wait("one"), "attach": lambda: shmview.attach("nobody", timeout=1000),
    "asyncio": lambda: asyncio.run(changed()),
}
ended = False
try:
    sender.start()
    waits[sys.argv[1]]()
    ended = True
except KeyboardInterrupt:
    pass
done.set()
sender.join()
leave.set()
holder.join()
assert not ended
assert not (lock.locked() or rlock.locked() or array.get_lock().locked() or value.get_lock().locked())
assert not seg.lock_status().parties
seg.close()
print("interrupted")
"""

WAITS = ["Lock", "RLock", "with Array", "Array[0]", "Array[:]", "Value", "timeout", "segment", "with segment", "shared",
         "recover", "change", "phase", "attach", "asyncio"]


@pytest.mark.parametrize("wait", WAITS)
def test_interrupt(run, wait):
    assert run(PROGRAM, wait) == "interrupted\n"


STOPPED = PROLOGUE + """
daemon = int(sys.argv[2])
seg = shmview.create("stopped", 100, one={"A": "i"})
late = shmview.attach("stopped")
seg.define(two={"B": "f"})
connection = seg.connection
def behind_another_thread():
    thread = threading.Thread(target=lambda: shmview.attach("stopped").close())
    thread.start()
    time.sleep(0.05)
    try:
        connection.ping()
    finally:
        os.kill(daemon, signal.SIGCONT)
        thread.join()
calls = {
    "attach": lambda: shmview.attach("stopped"), "create": lambda: shmview.create("other", 100),
    "remove": seg.remove, "ping": connection.ping, "view": lambda: late.view("B", "two"),
    "layouts": lambda: seg.layouts, "define": lambda: seg.define(three={"C": "d"}),
    "entrust": lambda: seg.entrust(1), "connect": shmview.Connection, "changed": seg._change_fd,
    "attach until": lambda: shmview.attach("nobody", timeout=1000), "another thread's": behind_another_thread,
}
ended = False
with seg.locked():
    os.kill(daemon, signal.SIGSTOP)
    try:
        sender.start()
        calls[sys.argv[1]]()
        ended = True
    except KeyboardInterrupt:
        pass
    done.set()
    os.kill(daemon, signal.SIGCONT)
    sender.join()
    assert not ended
    connection.ping()
    assert [p.pid for p in seg.lock_status().parties] == [os.getpid()]
    if sys.argv[1] == "create":  # the segment that the daemon created was given back
        shmview.create("other", 100).close()
late.close()
seg.close()
print("interrupted")
"""

CALLS = ["attach", "create", "remove", "ping", "view", "layouts", "define", "entrust", "connect", "changed",
         "attach until", "another thread's"]


@pytest.mark.parametrize("call", CALLS)
def test_interrupt_while_the_daemon_is_stopped(run, daemon, call):
    try:
        assert run(STOPPED, call, str(daemon.process.pid)) == "interrupted\n"
    finally:
        daemon.process.send_signal(signal.SIGCONT)


HANDLED = """
import os, shmview, signal, sys, threading
daemon = int(sys.argv[1])
seg, heard, seen = shmview.create("handled", 100), [], []
def handler(*_):
    heard.append(seg.change)
    seg.notify()  # does not call the daemon
    try:
        shmview.attach("handled")
    except shmview.Deadlock as e:
        seen.append(str(e))
    if len(seen) == 3:
        os.kill(daemon, signal.SIGCONT)
signal.signal(signal.SIGUSR1, handler)
done = threading.Event()
def interrupt():
    while not done.wait(0.05):
        os.kill(os.getpid(), signal.SIGUSR1)
sender = threading.Thread(target=interrupt)
os.kill(daemon, signal.SIGSTOP)
sender.start()
other = shmview.attach("handled")  # once, although the handler runs
done.set()
sender.join()
assert heard == list(range(len(heard))) and len(seen) >= 3, (heard, seen)
other.close()
seg.close()
print("handled")
"""


def test_a_handler_that_does_not_raise_ends_nothing(run, daemon):
    try:
        assert run(HANDLED, str(daemon.process.pid)) == "handled\n"
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_a_view_is_opened_without_the_gil(daemon):
    """Also when the handle must first ask the daemon for the name of the phase."""
    seg = shmview.create("gil", 100)
    late = shmview.attach("gil")
    seg.define(two={"B": "f"})
    with seg.locked():
        seg.switch("two")
    views = []
    thread = threading.Thread(target=lambda: views.append(late.view("B")))
    waker = subprocess.Popen(["sh", "-c", f"sleep 30; kill -CONT {daemon.process.pid}"], start_new_session=True)
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        thread.start()
        began = time.monotonic()
        time.sleep(0.2)
        assert time.monotonic() - began < 20
        assert not views
    finally:
        daemon.process.send_signal(signal.SIGCONT)
        thread.join()
        os.killpg(waker.pid, signal.SIGKILL)
        waker.wait()
    assert len(views) == 1
    views.clear()
    late.close()
    seg.close()


# The call ends in the child, which counted its calls again in the handler.
FORKING = """
import os, shmview, signal, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork() in a process with threads
seg, other, pid = shmview.create(None, 100), None, None
def handler(*_):
    global pid
    pid = os.fork()
    if pid == 0:
        seg.lock_status()
def work():
    with other.locked():
        held.set()
        while not any(party.role == "waits" for party in other.lock_status().parties):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGUSR1)
        while pid is None:
            time.sleep(0.001)
signal.signal(signal.SIGUSR1, handler)
other, held = shmview.attach(seg.name), threading.Event()
thread = threading.Thread(target=work)
thread.start()
held.wait()
try:
    seg.lock()
    seg.unlock()
except shmview.Interrupted:
    assert pid == 0
finally:
    seg.close()
    if pid == 0:
        os._exit(0)
thread.join()
assert os.waitpid(pid, 0)[1] == 0
"""


def test_a_handler_forks_during_a_wait(run, daemon):
    assert run(FORKING) == ""


# The child that the handler forks counts the call of its only thread, and then those of other threads.
COUNTED = """
import os, shmview, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork() in a process with threads
name, pid = sys.argv[1], None
seg = shmview.create(None, 100)
stream = shmview.create_stream(None, number="i8")
loan = stream.loan()  # so that its close() is refused also before the call
waits = {"lock": (seg.lock, [seg]), "take": (stream.take, [stream]),
         "any": (lambda: shmview.wait_any([("change", seg, 0), stream]), [seg, stream])}
wait, used = waits[name]
def in_calls(obj):
    try:
        obj.close()
    except shmview.Busy as e:
        return "in calls of" in str(e)
def is_waiting():
    return any(p.role == "waits" and p.pid == os.getpid() for p in seg.lock_status().parties)
def handler(*_):
    global pid
    pid = os.fork()
    if pid:
        return
    if not all(map(in_calls, used)):
        os._exit(1)
    if name == "lock":
        threading.Thread(target=seg.lock, daemon=True).start()
        while not is_waiting():
            time.sleep(0.001)
def work():
    with shmview.attach(seg.name) as other, other.locked():
        locked.set()
        while not (is_waiting() if name == "lock" else in_calls(stream)):
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGUSR1)
        while pid is None:
            time.sleep(0.001)
        status.append(os.waitpid(pid, 0)[1])
        loan["number"][...] = 1
        loan.publish()
        seg.notify()
signal.signal(signal.SIGUSR1, handler)
locked, status = threading.Event(), []
thread = threading.Thread(target=work)
thread.start()
locked.wait()
try:
    wait()
except shmview.Interrupted:
    pass
if pid == 0:
    os._exit(2 if [bool(in_calls(obj)) for obj in used] != [name == "lock"] * len(used) else 0)
thread.join()
print(status, flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("wait", ["lock", "take", "any"])
def test_a_child_counts_the_call_in_which_a_handler_forked(run, daemon, wait):
    assert run(COUNTED, wait) == "[0]\n"
