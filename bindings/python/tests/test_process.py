# SPDX-License-Identifier: Apache-2.0
"""Children that are forked and spawned, and the end of interpreters: what a child may use, and
what is left when a process ends."""

import multiprocessing
import os
import pickle
import subprocess
import sys
import textwrap
import threading

import pytest

import shmview
from conftest import await_

pytestmark = pytest.mark.usefixtures("daemon")


def add(seg, view, n):
    for _ in range(n):
        with seg.locked():
            view[0] += 1


@pytest.mark.parametrize("method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_children(method):
    context = multiprocessing.get_context(method)
    seg = shmview.create("seg", 80)
    view = seg.cast("q", 10)
    children = [context.Process(target=add, args=(seg, view, 200)) for _ in range(3)]
    for child in children:
        child.start()
    add(seg, view, 200)
    for child in children:
        child.join()
        assert child.exitcode == 0
        child.close()
    assert view[0] == 800
    if method == "forkserver":
        from multiprocessing import forkserver, resource_tracker
        forkserver._forkserver._stop()
        resource_tracker._resource_tracker._stop()
    elif method == "spawn":
        from multiprocessing import resource_tracker
        resource_tracker._resource_tracker._stop()


def in_child(act):
    """Returns the result of act() in a forked child."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(write, pickle.dumps(act()))
            status = 0
        finally:
            os._exit(status)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return pickle.loads(said)


def test_forked_while_a_thread_waits():
    seg = shmview.create("seg", 100)
    other = shmview.attach("seg")
    other.lock()
    waiter = threading.Thread(target=lambda: seg.lock() or seg.unlock())
    waiter.start()
    await_(lambda: "waits" in [party.role for party in other.lock_status().parties], what="the thread")
    pid = os.fork()
    if pid == 0:
        try:
            seg.close()  # the thread that is in a call does not exist in the child
        except shmview.Error:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    other.unlock()
    waiter.join()


def test_forked_while_it_is_held():
    seg = shmview.create("seg", 80)
    view = seg.cast("q", 10)
    with seg.locked():
        def act():
            held = seg.trylock()  # the parent holds it, not the child
            try:
                seg.unlock()
            except shmview.NotOwner:
                view[1] = 5
                new = shmview.create("new", 10)
                return held, new.name, [party.role for party in seg.lock_status().parties]
        assert in_child(act) == (False, "new", ["holds"])
        assert view[1] == 5

    def more():
        with seg.locked():
            view[2] = 6
            copy = pickle.loads(pickle.dumps(view))
            return copy[2]
    assert in_child(more) == 6


END = {
    "globals": "seg = shmview.create('seg', 100); v = seg.cast('i'); m = memoryview(v); a = numpy.asarray(v)",
    "reversed": "x = shmview.create('seg', 100); a = numpy.asarray(x.cast('i')); v = memoryview(x); t = numpy.from_dlpack(x.cast('d', 4))",
    "cycle": "class C: pass\nc = C(); c.seg = shmview.create('seg', 100); c.v = c.seg.cast('i'); c.m = memoryview(c.v); c.c = c",
    "sys": "sys.seg = shmview.create('seg', 100); sys.v = sys.seg.buf; sys.m = memoryview(sys.v); sys.a = numpy.asarray(sys.v)",
    "atexit": "import atexit; seg = shmview.create('seg', 100); atexit.register(seg.lock); atexit.register(seg.buf.tolist)",
    "locked": "seg = shmview.create('seg', 100); seg.lock()",
    "closed": "seg = shmview.create('seg', 100); c = seg.connection; seg.close(); c.close()",
    "capsule": "seg = shmview.create('seg', 100); c = seg.cast('d', 4).__dlpack__(max_version=(1, 0)); del seg",
    "thread": "import threading; seg = shmview.create('seg', 100); other = shmview.attach('seg'); seg.lock()\n"
              "threading.Thread(target=other.lock, daemon=True).start(); time.sleep(0.1)",
    "finalizer": "class F:\n  def __del__(self): self.v[0] = 1; self.seg.lock(); self.seg.unlock()\n"
                 "f = F(); f.seg = shmview.create('seg', 100); f.v = f.seg.buf",
    "deleted": "seg = shmview.create('seg', 100); v = seg.buf; del sys.modules['shmview'], sys.modules['shmview._core']; del shmview",
    "error": "from shmview import _types; seg = shmview.create('seg', 100); _types.__dict__.clear(); 1 // 1",
    "fork": "seg = shmview.create('seg', 100); v = seg.buf; pid = os.fork()\nif pid: os.waitpid(pid, 0)",
    "aio": "import asyncio\nasync def main():\n  global t\n  seg = shmview.create('seg', 100)\n"
           "  t = asyncio.ensure_future(seg.changed()); await asyncio.sleep(0.01)\nasyncio.run(main())",
}


@pytest.mark.parametrize("how", END)
def test_the_end_of_an_interpreter(how, run):
    for _ in range(2):
        run("import os, sys, time, numpy, shmview\n" + END[how])


def test_segments_end_with_killed_processes():
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent("""
        import shmview, time
        segs = [shmview.create(f"seg{i}", 10000) for i in range(10)]
        print("made", flush=True)
        time.sleep(1000)
    """)], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"made\n"
    child.kill()
    child.wait()
    child.stdout.close()  # that nothing is left is asserted for every test


def test_two_interpreters(run):
    """Each has a module of its own, and ends by itself."""
    run("import shmview\n"
        "try:\n"
        "    import _interpreters as s\n"
        "except ImportError:  # before Python 3.13\n"
        "    import _xxsubinterpreters as s\n"
        "seg = shmview.create('seg', 100)\n"
        "i = s.create()\n"
        "s.run_string(i, 'import shmview; seg = shmview.attach(\"seg\"); v = seg.buf; v[0] = 7')\n"
        "s.destroy(i)\n"
        "assert seg.buf[0] == 7")
