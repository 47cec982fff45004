# SPDX-License-Identifier: Apache-2.0
"""Each test module has a daemon of its own. After each test, no descriptor, mapping or segment
may be left."""

import ctypes
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import shmview

libc = ctypes.CDLL(None)
PATIENCE = 20  # seconds, for calls that take milliseconds, and that hang if they are broken


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left to make check-all")

# For programs of tests, which import os and time: leaves a lock whose owner has died.
DIE_INSIDE = """
def die_inside(seg):
    pid = os.fork()
    if pid == 0:
        seg.lock()
        os._exit(0)
    os.waitpid(pid, 0)
    while not seg.lock_status().owner_is_dead:
        time.sleep(0.01)
    return pid
"""


def await_(condition, seconds=60, what="it"):
    """Waits until condition() is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} has not come in {seconds} s"
        time.sleep(0.005)


def has_ended(pid):
    """Whether the process has ended. It may still be a zombie, because PID 1 of a container may wait for nobody."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def end_with_parent():
    """Runs in the daemon's process before exec: the kernel kills it when the thread that started
    it ends."""
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Daemon:
    """A shmviewd in a directory of its own."""

    def __init__(self, directory):
        self.socket = os.path.join(directory, "io.shmview")
        self.log = os.path.join(directory, "log")
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen([os.environ["SHMVIEWD"], "--socket", self.socket],
                                            stdout=log, stderr=log, preexec_fn=end_with_parent)

        def listens():
            assert self.process.poll() is None, self.said()
            return ", listening on " in self.said()[begin:]
        await_(listens, what="the daemon")
        self.instance = self.said()[begin:].split(", instance ")[1].split(",")[0]

    def said(self):
        with open(self.log) as log:
            return log.read()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0
        assert not self.objects(), "the daemon left objects"

    def objects(self):
        """Returns the objects of its segments in /dev/shm."""
        directory = f"/dev/shm/shmview.{self.instance}"
        names = os.listdir(directory) if os.path.exists(directory) else []
        return sorted(name for name in names if name not in ("+daemon", "+presence"))


@pytest.fixture(scope="module")
def daemon():
    """The daemon of this module's tests; $SHMVIEW_SOCKET names it."""
    with tempfile.TemporaryDirectory(prefix="shmview-py-") as directory:
        daemon = Daemon(directory)
        daemon.start()
        os.environ["SHMVIEW_SOCKET"] = daemon.socket
        try:
            yield daemon
        finally:
            forget_connections()
            daemon.stop()
            del os.environ["SHMVIEW_SOCKET"]


@pytest.fixture
def seg(daemon):
    return shmview.create("seg", 4096)


def forget_connections():
    """Drops all connections, because the next module has another daemon."""
    gc.collect()
    shmview._core._forget_connections()
    shmview._types._connections.clear()
    gc.collect()


def descriptors():
    """Returns the open descriptors, except the one that lists them. Sockets compare equal,
    because a new connection replaces a lost one."""
    return sorted((int(fd), os.readlink(f"/proc/self/fd/{fd}").split(":[")[0])
                  for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))


def mappings():
    shmview.trim()
    with open("/proc/self/maps") as maps:
        # a daemon that ends removes the presence object of the connection, which stays mapped until the next call
        return sorted(line.split(None, 5)[5].strip().replace(" (deleted)", "") for line in maps if "/shmview." in line)


@pytest.fixture(autouse=True)
def leaks(request):
    """Checks that after each test there are as many descriptors, mappings and objects as before."""
    if "daemon" not in request.fixturenames:
        yield
        return
    daemon = request.getfixturevalue("daemon")
    shmview.connect()  # the connection of the process, which stays
    gc.collect()
    before, objects = (descriptors(), mappings()), daemon.objects()
    yield
    if getattr(request.node, "has_failed", False):
        return  # the traceback refers to everything
    request.node.funcargs.clear()  # pytest keeps the values of fixtures
    gc.collect()
    after = descriptors(), mappings()
    assert after == before
    gc.freeze()  # what is left stays: modules, which take 0.1 s of each collection once torch is there
    # the daemon notices the end of a child by itself, and frees what the child had
    await_(lambda: daemon.objects() == objects, what="the end of every segment")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if (yield).get_result().failed:
        item.has_failed = True


def count(make, n):
    """Returns how many blocks n calls of make() leave."""
    gc.collect()
    before = sys.getallocatedblocks()
    for _ in range(n):
        make()
    gc.collect()
    return sys.getallocatedblocks() - before


@pytest.fixture
def no_leak():
    """Asserts that a call leaves no Python object. Caches of the interpreter grow only for a
    while, but a leak makes every round grow."""
    def check(make, n=40):
        if os.environ.get("PYTHONMALLOC") == "malloc":
            return make()  # its blocks are not counted
        grown = []
        while not grown or grown[-1] >= n // 4:
            assert len(grown) < 20, grown
            grown.append(count(make, n))
    return check


@pytest.fixture
def run():
    """Runs Python source in an unrelated process; returns what it prints."""
    def run(source, *arguments, status=0):
        done = subprocess.run([sys.executable, "-c", source, *map(str, arguments)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
        assert done.returncode == status, (done.returncode, done.stderr.decode())
        if status == 0:
            assert done.stderr == b"", done.stderr.decode()
        return done.stdout.decode()
    return run


# --- Of the drop-ins ---------------------------------------------------------

@pytest.fixture(params=["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.slow)])
def context(request):
    """Each way to start a child."""
    return multiprocessing.get_context(request.param)


def outcome(call, *args):
    """Returns the result of call, or the type of its exception."""
    try:
        return call(*args)
    except Exception as e:
        return type(e)


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_double), ("z", ctypes.c_int * 2)]


def arenas():
    """Returns how many arenas are mapped, and how many descriptors they have."""
    with open("/proc/self/maps") as maps:
        mapped = [line for line in maps if "/dev/shm/#" in line]
    return len(mapped), len([fd for fd in descriptors() if "/dev/shm/#" in fd[1]])


@pytest.fixture
def no_arena_left():
    """Checks that arenas without users are freed, except the one that serves the next
    allocation."""
    from shmview import _heap
    yield
    gc.collect()
    _heap._forked_child()
    assert arenas() == (0, 0)
