# SPDX-License-Identifier: Apache-2.0
"""No call waits for the daemon, or for a thread that waits for it, with the GIL held.

A thread that waits for the daemon has the mutex of its connection, and asks for the GIL now and
then, to run signal handlers. A thread that had the GIL and waited for that mutex would never get
it, and the whole process would stand still."""

import signal

import pytest

pytestmark = pytest.mark.usefixtures("daemon")

# One thread has the mutex and waits for a stopped daemon; then another thread makes a call.
PROLOGUE = """
import os, shmview, signal, sys, threading, time
signal.alarm(20)  # ends the process, and needs no GIL
daemon = int(sys.argv[1])
def both(connection, call):
    os.kill(daemon, signal.SIGSTOP)
    results = []
    threads = [threading.Thread(target=connection.ping), threading.Thread(target=lambda: results.append(call()))]
    for thread in threads:
        thread.start()
        time.sleep(0.2)  # some steps of the wait
    os.kill(daemon, signal.SIGCONT)
    for thread in threads:
        thread.join()
    return results[0]
def outcome(call):
    try:
        return call()
    except Exception as e:
        return e
"""

# The lock is held and the daemon is stopped: a call that needed the daemon would end by the alarm.
VIEW = PROLOGUE + """
seg = shmview.create("gil", 100, one={"A": "i"})
with seg.locked():
    seg.switch("one")
late = shmview.attach("gil")  # does not know the other layout
views = late.view("A"), seg.view("A")
seg.define(two={"B": "f"})
with seg.locked():
    seg.switch("two")
def complaints():
    results = [outcome(lambda: view[0]) for view in views]
    assert all(type(e) is shmview.StaleViewError for e in results), results
    return [str(e).split("in ")[1] for e in results]
with late.shared():
    os.kill(daemon, signal.SIGSTOP)
    assert complaints() == ["phase 2 now", "phase 2 ('two') now"]
    os.kill(daemon, signal.SIGCONT)
assert late.phase == "two" and complaints() == ["phase 2 ('two') now"] * 2
for view in views:
    view.release()
late.close()
seg.close()
print("done")
"""

# The lock is taken while the daemon is stopped.
DEATH = PROLOGUE + """
seg = shmview.create("gil", 100, one={"A": "i"})
late = shmview.attach("gil")
seg.define(two={"B": "f"})
with seg.locked():
    seg.switch("two")
seg.lock()
seg.unlock(repaired=False)
os.kill(daemon, signal.SIGSTOP)
takes = [late.lock, lambda: late.lock(timeout=0.2), lambda: late.lock(shared=True), late.trylock, late.locked().__enter__,
         late.shared().__enter__]
for take in takes:
    died = outcome(take)
    assert type(died) is shmview.OwnerDied and (died.generation, died.phase) == (1, None), died
assert outcome(seg.lock).phase == "two"  # it has declared this layout itself
with late.recover() as died:
    assert (died.generation, died.phase) == (1, None)
os.kill(daemon, signal.SIGCONT)
assert late.phase == "two"
late.lock()
late.unlock(repaired=False)
assert outcome(late.lock).phase == "two"  # it has asked the daemon for the name
with late.recover():
    pass
late.close()
seg.close()
print("done")
"""

# Handles are freed, with the GIL held, while another thread has the mutex and the daemon is stopped.
FREED = PROLOGUE + """
held, closed, other = shmview.create("held", 100), shmview.create("closed", 100), shmview.Connection()
ping = threading.Thread(target=closed.connection.ping)
os.kill(daemon, signal.SIGSTOP)
ping.start()
time.sleep(0.1)
closed.close()
held = other = None
assert ping.is_alive()
os.kill(daemon, signal.SIGCONT)
ping.join()
print("done")
"""

FORK = PROLOGUE + """
seg = shmview.create("gil", 100)
with seg.locked():
    pass
calls = {
    "with": lambda: seg.locked().__enter__() and seg.locked().__exit__(None, None, None),
    "shared": lambda: seg.shared().__enter__() and seg.unlock(), "lock": lambda: seg.lock(timeout=20) or seg.unlock(),
    "trylock": lambda: seg.trylock() and seg.unlock(), "recover": lambda: seg.recover().__enter__() or seg.unlock(),
    "unlock": seg.unlock, "exit": lambda: seg.locked().__exit__(None, None, None),
    "not repaired": lambda: seg.unlock(repaired=False), "notify": seg.notify,
}
pid = os.fork()
if pid == 0:
    signal.alarm(20)
    is_mistake = sys.argv[2] in ("unlock", "exit", "not repaired")
    r = both(seg.connection, lambda: outcome(calls[sys.argv[2]]))
    assert type(r) is shmview.NotOwner if is_mistake else r is None, r
    with seg.locked():
        assert [p.pid for p in seg.lock_status().parties] == [os.getpid()]
    assert not seg.lock_status().parties
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
seg.close()
print("done")
"""

FIRST_CALLS = ["with", "shared", "lock", "trylock", "recover", "unlock", "exit", "not repaired", "notify"]


@pytest.fixture
def run_to_end(run, daemon):
    def run_to_end(program, *arguments):
        try:
            assert run(program, daemon.process.pid, *arguments) == "done\n"
        finally:
            daemon.process.send_signal(signal.SIGCONT)
    return run_to_end


def test_a_stale_view(run_to_end):
    run_to_end(VIEW)


def test_the_death_of_an_owner(run_to_end):
    run_to_end(DEATH)


def test_freed_handles(run_to_end):
    run_to_end(FREED)


@pytest.mark.parametrize("call", FIRST_CALLS)
def test_the_first_call_of_a_forked_child(run_to_end, call):
    run_to_end(FORK, call)


# --- Ctrl-C while the daemon does not answer ------------------------------------

ENDED = PROLOGUE + """
seg = shmview.create("gil", 100, one={"A": "i"})
late = shmview.attach("gil")
seg.define(two={"B": "f"})
with seg.locked():
    seg.switch("two")
def interrupt():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGINT)
sender = threading.Thread(target=interrupt)
pid = os.fork() if sys.argv[2] == "fork" else 0
if pid == 0:
    signal.alarm(20)
    os.kill(daemon, signal.SIGSTOP)
    try:
        sender.start()
        late.phase if sys.argv[2] == "phase" else late.lock()
    except KeyboardInterrupt:
        pass
    else:
        sys.exit("nothing ended the wait")
    os.kill(daemon, signal.SIGCONT)
    sender.join()
    with late.locked():  # which is as good as before
        assert [p.pid for p in late.lock_status().parties] == [os.getpid()]
    print("done")
sys.stdout.flush()
if sys.argv[2] == "fork":
    os._exit(0) if pid == 0 else os.waitpid(pid, 0)
late.close()
seg.close()
"""


@pytest.mark.parametrize("call", ["phase", "fork"])
def test_interrupt(run_to_end, call):
    run_to_end(ENDED, call)
