# SPDX-License-Identifier: Apache-2.0
"""A signal handler raises while a call of libshmview waits, and the call succeeds all the same.
Then the exception must be raised, and the result of the call must be given back. A library that
is loaded before libshmview makes this happen in the call that the test names. It can also keep a
thread in a call, until the test lets the call begin."""

import os
import shlex
import subprocess

import pytest
from conftest import DIE_INSIDE

pytestmark = pytest.mark.usefixtures("daemon")
BUILD = os.environ.get("SHMVIEW_BUILD_DIR")

LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
static __thread int (*is_over)(void *);
static __thread void *is_over_arg;
char chosen[64]; /* the call after which a signal comes, once */
int n_signals;
void shmview_on_wait(int (*f)(void *), void *arg)
{
    is_over = f;
    is_over_arg = arg;
    ((void (*)(int (*)(void *), void *))dlsym(RTLD_NEXT, "shmview_on_wait"))(f, arg);
}
/* asks twice: the first answer is not heeded, and the second wait begins with it */
static int pass(const char *name, int r)
{
    if (r < 0 || !is_over || strcmp(name, chosen))
        return r;
    chosen[0] = 0;
    n_signals++;
    raise(SIGINT);
    is_over(is_over_arg);
    return is_over(is_over_arg) ? r : -1;
}
char held[64];     /* the call that begins when hold is 0 again */
volatile int hold; /* 1: the next such call waits; 2: it waits */
static void wait_for(const char *name)
{
    if (hold != 1 || strcmp(name, held))
        return;
    for (hold = 2; hold; usleep(1000)) {
    }
}
typedef const void *p;
#define CALL(name, types, values) \\
    int name types \\
    { \\
        wait_for(#name); \\
        return pass(#name, ((int (*) types)dlsym(RTLD_NEXT, #name)) values); \\
    }
CALL(shmview_connect, (p a, unsigned b, p c), (a, b, c))
CALL(shmview_ping, (p a), (a))
CALL(shmview_attach, (p a, p b, int c, unsigned d, p e), (a, b, c, d, e))
CALL(shmview_attach_many, (p a, p b, size_t c, int d, unsigned e, p f), (a, b, c, d, e, f))
CALL(shmview_populate, (p a, uint64_t b, uint64_t c), (a, b, c))
CALL(shmview_create, (p a, p b, uint64_t c, p d, p e), (a, b, c, d, e))
CALL(shmview_remove, (p a, p b), (a, b))
CALL(shmview_detach, (p a), (a))
CALL(shmview_describe, (p a, p b, p c), (a, b, c))
CALL(shmview_define, (p a, p b, p c, size_t d), (a, b, c, d))
CALL(shmview_view_open, (p a, p b, p c, p d), (a, b, c, d))
CALL(shmview_phase_get, (p a, p b), (a, b))
CALL(shmview_switch, (p a, p b), (a, b))
CALL(shmview_notify, (p a), (a))
CALL(shmview_change_fd, (p a, p b), (a, b))
CALL(shmview_wait_change, (p a, uint32_t b, int64_t c, p d), (a, b, c, d))
CALL(shmview_lock_query, (p a, p b, p c, size_t d), (a, b, c, d))
CALL(shmview_lock_until, (p a, int64_t b), (a, b))
CALL(shmview_lock_shared_until, (p a, int64_t b), (a, b))
CALL(shmview_trylock, (p a), (a))
CALL(shmview_trylock_shared, (p a), (a))
CALL(shmview_unlock, (p a), (a))
CALL(shmview_monitor_open, (p a, p b, p c), (a, b, c))
CALL(shmview_monitor_next, (p a, int64_t b, p c), (a, b, c))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not BUILD:
        pytest.skip("no build")
    folder = tmp_path_factory.mktemp("swallowed")
    source, out = folder / "swallowed.c", folder / "swallowed.so"
    source.write_text(LIBRARY)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    subprocess.run([*shlex.split(os.environ.get("CC") or "cc"), "-shared", "-fPIC", "-O1", "-o", out, source,
                    "-Wl,--no-as-needed", f"-L{BUILD}/client", "-lshmview", f"-Wl,-rpath,{BUILD}/client", "-ldl"],
                   check=True, env=environment)
    return out


PROLOGUE = """
import ctypes, gc, os, shmview, signal, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
chosen, n_signals = (ctypes.c_char * 64).in_dll(library, "chosen"), ctypes.c_int.in_dll(library, "n_signals")
def interrupted(name, call, *args, **kwargs):
    chosen.value, before = b"shmview_" + name.encode(), n_signals.value
    try:
        result = call(*args, **kwargs)
    except KeyboardInterrupt as e:
        assert e.__context__ is None and e.__cause__ is None
    else:
        raise AssertionError((name, result))
    assert n_signals.value == before + 1, name
held, hold = (ctypes.c_char * 64).in_dll(library, "held"), ctypes.c_int.in_dll(library, "hold")
def start_held(name, call):
    held.value, hold.value = b"shmview_" + name.encode(), 1
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    while hold.value != 2:
        time.sleep(0.001)
    return thread
def descriptors():
    gc.collect()
    return sorted(os.listdir("/proc/self/fd"))
connection = shmview.Connection()
seg = shmview.create("swallowed", 100, one={"A": "i"}, connection=connection)
with seg.locked():
    seg.switch("one")
"""

EPILOGUE = """
seg.close()
connection.close()  # so it attaches nothing
print("done")
"""

HANDLES = PROLOGUE + """
before = descriptors()
interrupted("connect", shmview.Connection)
interrupted("attach", shmview.attach, "swallowed", connection=connection)
interrupted("attach_many", shmview.attach, ["swallowed"] * 3, connection=connection)
assert shmview.stats("swallowed", connection=connection).attachments == 1
interrupted("create", shmview.create, "other", 100, connection=connection)
shmview.create("other", 100, connection=connection).close()  # the first one was given back
interrupted("describe", lambda: seg.layouts)
interrupted("monitor_open", shmview.attach, "nobody", timeout=20, connection=connection)
interrupted("monitor_next", shmview.attach, "nobody", timeout=20, connection=connection)
gc.collect()
assert descriptors() == before
late = shmview.attach("swallowed", connection=connection)
interrupted("detach", late.close)
assert late.closed  # it is closed, and was closed once
late.close()
""" + EPILOGUE

CALLS = PROLOGUE + """
interrupted("ping", connection.ping)
interrupted("define", seg.define, two={"B": "f"})
interrupted("view_open", seg.view, "A")
interrupted("phase_get", seg.view, "A")
interrupted("phase_get", lambda: seg.phase)
interrupted("lock_query", seg.lock_status)
interrupted("change_fd", seg._change_fd)
interrupted("notify", seg.notify)
interrupted("wait_change", seg.wait, change=seg.change - 1)
with seg.locked():
    interrupted("switch", seg.switch, "two")
    assert seg.phase == "two"
interrupted("remove", shmview.remove, "swallowed", connection=connection)
""" + EPILOGUE

# The lock waits without the GIL, for a thread that has it.
LOCKS = PROLOGUE + """
def while_held(name, call, *args, **kwargs):
    held = threading.Event()
    def hold():
        with seg.locked():
            held.set()
            while not any(party.role.startswith("waits") for party in seg.lock_status().parties):
                time.sleep(0.001)
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    interrupted(name, call, *args, **kwargs)
    holder.join()
    assert not seg.lock_status().parties, call
    assert seg.trylock()
    seg.unlock()
while_held("lock_until", seg.lock)
while_held("lock_until", seg.lock, timeout=20)
while_held("lock_until", seg.locked().__enter__)
while_held("lock_until", seg.recover().__enter__)
while_held("lock_shared_until", seg.lock, shared=True)
while_held("lock_shared_until", seg.shared().__enter__)
""" + EPILOGUE

# The first call of a child attaches, and so it waits for the daemon.
CHILD = PROLOGUE + """
pid = os.fork()
if pid == 0:
    interrupted(sys.argv[2], seg.trylock, shared="shared" in sys.argv[2])
    assert not seg.lock_status().parties
    with seg.locked():
        pass
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
""" + EPILOGUE

# An owner has died inside: the interrupted call must leave that report to the next owner.
DEATH = PROLOGUE + DIE_INSIDE + """
pid = die_inside(seg)
try:
    seg.lock()
except shmview.OwnerDied as e:
    assert e.phase == "one"
status = seg.lock_status()
assert not status.parties and status.dirty
child = os.fork()
if child == 0:
    interrupted("lock_until", seg.trylock)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
try:
    seg.lock()
except shmview.OwnerDied as e:
    assert e.pid == pid
else:
    raise AssertionError("nobody has died")
with seg.recover() as died:
    assert died.pid == pid
""" + EPILOGUE

# A detach that will be refused lets wait_any() wait between two entries. No thread gives the GIL away unless it waits,
# so wait_any() has begun once the main thread goes on.
WAITS = PROLOGUE + """
sys.setswitchinterval(1000)
begun, ended = [], []
other = shmview.create("other", 100, connection=connection)
tensor = other.cast("B").__dlpack__(max_version=(1, 0))
def refused(call):
    try:
        call()
    except shmview.Busy:
        ended.append("refused")
def wait():
    begun.append(True)
    ended.append(shmview.wait_any([seg, ("change", other, other_change)], 20))
other_change = other.change
closer, waiter = start_held("detach", lambda: refused(other.close)), threading.Thread(target=wait, daemon=True)
waiter.start()
while not begun:
    time.sleep(0.001)
refused(seg.close)
hold.value = 0
assert "refused" in ended and not seg.closed
closer.join()
while len(ended) < 3:
    seg.notify()
    time.sleep(0.001)
waiter.join()
assert ended[1] == "refused" and ended[2] is seg, ended
del tensor
other.close()
""" + EPILOGUE

# A thread is in a call on the connection, and does not exist in the child.
FORKED = PROLOGUE + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of os.fork() in a process with threads
seg.close()
caller = start_held("ping", connection.ping)
pid = os.fork()
if pid == 0:
    connection.ping()
    connection.close()
    os._exit(0)
status = os.waitpid(pid, 0)[1]
try:
    connection.close()
except shmview.Busy:
    pass
finally:
    hold.value = 0
    caller.join()
assert status == 0 and not connection.closed
""" + EPILOGUE

# A thread is in a call of the memory of a frame.
FRAME = PROLOGUE + """
writer = shmview.create_stream("frames", n="i4", slots=2, connection=connection)
reader = shmview.open_stream("frames", connection=connection)
reader.join()
with writer.loan() as frame:
    frame["n"][()] = 5
frame = reader.take()
caller = start_held("populate", frame["n"].segment.populate)
try:
    frame.release()
except shmview.Busy:
    pass
finally:
    hold.value = 0
    caller.join()
assert not frame.released and frame["n"][()] == 5
frame.release()
reader.close()
writer.close()
""" + EPILOGUE

PROGRAMS = {
    "handles": [HANDLES], "calls": [CALLS], "locks": [LOCKS], "child": [CHILD, "lock_until"],
    "child shares": [CHILD, "lock_shared_until"], "death": [DEATH],
    "waits": [WAITS], "forked": [FORKED], "frame": [FRAME],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_call_that_succeeds(run, library, monkeypatch, name):
    program, *arguments = PROGRAMS[name]
    monkeypatch.setenv("LD_PRELOAD", " ".join(filter(None, [os.environ.get("LD_PRELOAD"), str(library)])))
    assert run(program, library, *arguments) == "done\n"
