# SPDX-License-Identifier: Apache-2.0
"""SharedMemory, ShareableList and SharedMemoryManager behave as those of the standard library,
but leave nothing when processes are killed."""

import errno
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from multiprocessing import forkserver, resource_tracker

import pytest
from conftest import await_, has_ended

import shmview
from shmview import ShareableList, SharedMemory, SharedMemoryManager

pytestmark = pytest.mark.usefixtures("daemon")


@pytest.fixture(scope="module", autouse=True)
def keepers(daemon):
    """Starts the processes that multiprocessing keeps for its children. A fork server keeps the
    environment of its start, so each daemon needs another one."""
    resource_tracker.ensure_running()
    forkserver._forkserver._stop()
    forkserver.ensure_running()
    yield
    forkserver._forkserver._stop()


def exists(name):
    try:
        SharedMemory(name).close()
    except FileNotFoundError:
        return False
    return True


def test_one_block_two_handles():
    a = SharedMemory("block", create=True, size=100)
    b = SharedMemory("/block")
    assert (a.name, a.size, b.name, b.size, len(b.buf)) == ("block", 100, "block", 100, 100)
    assert repr(a) == "SharedMemory('block', size=100)"
    b.buf[:3] = b"abc"
    assert bytes(a.buf[:4]) == b"abc\0"
    c = pickle.loads(pickle.dumps(a))
    assert c.buf[1] == ord("b")
    for each in a, b, c:
        each.close()
        each.close()
        assert each.buf is None and each.size == 100
    assert exists("block")  # it exists although no process has it open
    a.unlink()
    with pytest.raises(FileNotFoundError):
        b.unlink()


def test_errors():
    a = SharedMemory("block", create=True, size=10)
    for error, arguments in [
            (FileExistsError, dict(name="block", create=True, size=5)),
            (FileNotFoundError, dict(name="none")), (ValueError, {}), (ValueError, dict(create=True)),
            (ValueError, dict(create=True, size=-1)), (ValueError, dict(name="a/b", create=True, size=1)),
            (ValueError, dict(name="a\0b")), (TypeError, dict(name=5)),
            (TypeError, dict(create=True, size="x"))]:
        with pytest.raises(error):
            SharedMemory(**arguments)
    a.close()
    a.unlink()


def test_views_out():
    a = SharedMemory(create=True, size=10)
    view = a.buf[2:]
    with pytest.raises(BufferError):
        a.close()
    view[0] = 5  # it still exists
    assert a.buf[2] == 5
    view.release()
    a.close()
    a.unlink()


def test_numpy_keeps_it():
    numpy = pytest.importorskip("numpy")
    a = SharedMemory(create=True, size=80)
    name = a.name
    array = numpy.ndarray(10, "d", buffer=a.buf)
    array[:] = range(10)
    del a
    assert array.sum() == 45
    b = SharedMemory(name)
    again = numpy.ndarray(10, "d", buffer=b.buf)  # it does not count as a view
    b.close()
    b.unlink()
    assert b.buf is None and array.sum() == again.sum() == 45


def test_a_subclass():
    class Mine(SharedMemory):
        def double(self):
            return self.size * 2

    a = Mine(create=True, size=8, track=True)
    assert a.double() == 16 and repr(a).startswith("Mine(")
    a.close()
    a.unlink()


# Code that programs use against the standard library's resource tracker. The tracker is a process,
# which prints its errors.
WORKAROUNDS = {
    "unregister": """
shm = SharedMemory(name)
resource_tracker.unregister(shm._name, "shared_memory")
unregister("/" + shm._name, "shared_memory")
resource_tracker.register(shm._name, "shared_memory")
""",
    "the backport of track=False": """
class Untracked(SharedMemory):
    __lock = threading.Lock()
    def __init__(self, name=None, create=False, size=0, *, track=True):
        self._track = track
        if track:
            return super().__init__(name=name, create=create, size=size)
        with self.__lock:
            register, resource_tracker.register = resource_tracker.register, self.__nothing
            super().__init__(name=name, create=create, size=size)
            resource_tracker.register = register
    @staticmethod
    def __nothing(*_):
        pass
    def unlink(self):
        if shared_memory._USE_POSIX and self._name:
            shared_memory._posixshmem.shm_unlink(self._name)
            if self._track:
                resource_tracker.unregister(self._name, "shared_memory")
made = Untracked(create=True, size=10, track=False)
assert made._track is False
Untracked(made.name, track=False).unlink()
tracked = Untracked(create=True, size=10)
assert tracked._track is True
tracked.unlink()
shm = Untracked(name, track=False)
""",
    "__del__": """
class Quiet(SharedMemory):
    _mode = 0o666
    def __del__(self):
        try:
            super().__del__()
        except BufferError:
            pass
shm = Quiet(name)
""",
}


@pytest.mark.parametrize("workaround", WORKAROUNDS)
def test_workarounds_are_harmless(run, workaround):
    shm = shmview.SharedMemory(create=True, size=100)
    assert run("""
import sys, threading
from multiprocessing import resource_tracker
from multiprocessing.resource_tracker import unregister
from multiprocessing.shared_memory import SharedMemory as Standard
from shmview import SharedMemory, shared_memory
name = sys.argv[1]
standard = Standard(create=True, size=10)  # the tracker runs, because other code needs it
%s
assert shm.name == name and type(shm.name) is str
shm.buf[0] = 7
standard.unlink()
print("done")
""" % WORKAROUNDS[workaround], shm.name) == "done\n"
    assert shm.buf[0] == 7
    shmview.SharedMemory(shm.name).close()
    shm.close()
    shm.unlink()


def test_more_than_there_is():
    room = os.statvfs("/dev/shm")
    with pytest.raises(OSError) as e:
        SharedMemory(create=True, size=room.f_blocks * room.f_frsize * 2)
    assert e.value.errno == errno.ENOSPC and isinstance(e.value, MemoryError)


def write(name):
    block = SharedMemory(name)
    block.buf[0] += 1


def test_who_attaches_destroys_nothing(context, run):
    a = SharedMemory(create=True, size=10)
    child = context.Process(target=write, args=(a.name,))
    child.start()
    child.join()
    assert child.exitcode == 0
    said = run("import sys, shmview; s = shmview.SharedMemory(sys.argv[1]); s.buf[0] += 1", a.name)
    assert said == "" and exists(a.name) and a.buf[0] == 2
    a.close()
    a.unlink()


CREATOR = """
import sys, shmview
a = shmview.SharedMemory(create=True, size=10, track=sys.argv[1] == "track")
a.buf[0] = 7
print(a.name, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("end", ["kill", "exit"])
@pytest.mark.parametrize("track", [True, False])
def test_the_creators_end(end, track):
    creator = subprocess.Popen([sys.executable, "-c", CREATOR, "track" if track else "no"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    name = creator.stdout.readline().decode().strip()
    mine = SharedMemory(name)
    if end == "kill":
        creator.kill()
    assert creator.communicate()[1] == b""  # no message is printed
    if track:
        await_(lambda: not exists(name), what="the end of the block")
    else:
        assert exists(name)
        mine.unlink()
    assert mine.buf[0] == 7
    mine.close()


def make(depth=0, method=None):
    if depth:
        with multiprocessing.get_context(method).Pool(1) as pool:
            return pool.apply(make, (depth - 1, method))
    block = SharedMemory(create=True, size=10)
    block.buf[0] = 7
    return block.name


def make_deeper(pipe, method):
    pipe.send(make(1, method))


def test_a_childs_block_outlives_it(context, daemon):
    with context.Pool(1) as pool:
        names = [pool.apply(make), pool.apply(make)]
    here, there = context.Pipe()
    child = context.Process(target=make_deeper, args=(there, context.get_start_method()))
    child.start()
    names.append(here.recv())
    child.join()
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(60) == 0
    daemon.start()
    for name in names:
        block = SharedMemory(name)
        assert block.buf[0] == 7
        block.close()
        block.unlink()


FAMILY = """
import multiprocessing, os, signal, shmview, sys
def work():
    return shmview.SharedMemory(create=True, size=10).name
if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        name = pool.apply(work)
    shmview.SharedMemory(name).close()
    print(name, flush=True)
    if sys.argv[1] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("end", ["kill", "exit"])
def test_it_goes_with_the_first_of_the_family(run, end):
    name = run(FAMILY, end, status=-signal.SIGKILL if end == "kill" else 0).strip()
    await_(lambda: not exists(name), what="the end of the block")


GROUP = """
import multiprocessing, os, signal, shmview, time
def work(pipe):
    a = shmview.SharedMemory(create=True, size=10)
    pipe.send(a.name)
    time.sleep(1000)
here, there = multiprocessing.Pipe()
os.setpgid(0, 0)
multiprocessing.get_context("fork").Process(target=work, args=(there,)).start()
b = shmview.SharedMemory(create=True, size=10)
print(b.name, here.recv(), flush=True)
os.killpg(0, signal.SIGKILL)
"""


def test_a_killed_process_group_leaves_nothing(run):
    first, second = run(GROUP, status=-signal.SIGKILL).split()
    await_(lambda: not exists(first) and not exists(second), what="the end of both")


# --- ShareableList ------------------------------------------------------------

ELEMENTS = ["", "a", "abc\0\0", "\0", "é" * 5, "x" * 8, "日本語", b"", b"\0", b"abc\0", b"\xff" * 8, 0, -1,
            2**63 - 1, -2**63, 0.0, -1.5, float("inf"), True, False, None]


def test_elements_come_back_whole():
    a = ShareableList(ELEMENTS)
    b = ShareableList(name=a.shm.name)
    assert list(a) == list(b) == ELEMENTS
    assert [type(x) for x in b] == [type(x) for x in ELEMENTS]
    for i, x in enumerate(reversed(ELEMENTS)):
        room = a._slot(i)[2]
        size = len(x.encode()) if isinstance(x, str) else len(x) if isinstance(x, bytes) else 8
        if size <= room:
            a[i] = x
            assert b[i] == x and type(b[i]) is type(x)
        else:
            with pytest.raises(ValueError, match="exceeds available storage"):
                a[i] = x
    with pytest.raises(Exception):
        a[0] = 2**63
    with pytest.raises(TypeError):
        a[0] = []
    with pytest.raises(TypeError):
        ShareableList([{}])
    c = pickle.loads(pickle.dumps(b))
    assert list(c) == list(a) and c.count(True) == list(a).count(True) and c.index(a[3]) <= 3
    for each in a, b, c:
        each.shm.close()
    a.shm.unlink()


def test_what_is_no_list():
    for content in b"", b"shmview\1" + b"\xff" * 8, bytes(100):
        block = SharedMemory("list", create=True, size=100)
        block.buf[:len(content)] = content
        with pytest.raises(ValueError):
            ShareableList(name="list")
        block.close()
        block.unlink()
    a = ShareableList(["abc", 5])
    a.shm.buf[16:24] = b"\xff" * 8  # where the first one begins
    with pytest.raises(ValueError):
        a[0]
    assert a[1] == 5
    for kind in b"zzzzzzzz", bytes(8), b"sb" + bytes(6):
        a.shm.buf[72:80] = kind  # of what kind the second one is
        with pytest.raises(ValueError, match="of no known kind"):
            a[1]
    a.shm.close()
    a.shm.unlink()


# --- SharedMemoryManager ------------------------------------------------------

def test_manager():
    manager = SharedMemoryManager()
    with pytest.raises(ValueError):
        manager.SharedMemory(10)
    with manager:
        block, numbers = manager.SharedMemory(10), manager.ShareableList([1, "two", 3.0])
        assert block.size == 10 and list(numbers) == [1, "two", 3.0]
        assert exists(block.name) and exists(numbers.shm.name)
        with pytest.raises(ValueError):
            manager.SharedMemory(0)
        with pytest.raises(FileNotFoundError):
            SharedMemory("none")
    assert not exists(block.name) and not exists(numbers.shm.name)
    assert list(numbers) == [1, "two", 3.0]  # the memory exists as long as we have it
    with pytest.raises(ValueError):
        manager.SharedMemory(10)
    block.close()
    numbers.shm.close()


SERVER = """
import shmview
server = shmview.SharedMemoryManager(authkey=b"key").get_server()
print(server.address, flush=True)
server.serve_forever()
"""


def test_a_server_of_its_own():
    """get_server() is for a program that serves by itself, and connect() for its clients, as with BaseManager."""
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    manager = SharedMemoryManager(server.stdout.readline().strip(), b"key")
    manager.connect()
    with pytest.raises(multiprocessing.ProcessError):
        manager.get_server()
    block, released, unlinked = (manager.SharedMemory(10) for _ in range(3))
    assert manager._call("list_segments") == [block.name, released.name, unlinked.name]
    manager._call("release_segment", released.name)
    assert manager._call("list_segments") == [block.name, unlinked.name] and not exists(released.name)
    unlinked.unlink()  # the server finds it gone
    manager._call("shutdown")
    assert server.communicate(timeout=60)[0] == "" and server.returncode == 0
    assert not exists(block.name)
    for each in block, released, unlinked:
        each.close()


def test_a_killed_manager_leaves_nothing():
    manager = SharedMemoryManager()
    manager.start()
    block = manager.SharedMemory(10)
    os.kill(manager._process.pid, signal.SIGKILL)
    await_(lambda: not exists(block.name), what="the end of the block")
    manager.shutdown()
    block.close()


MANAGER = """
import os, signal, shmview
manager = shmview.SharedMemoryManager()
manager.start()
print(manager.SharedMemory(10).name, manager._process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_manager_goes_with_its_parent(run):
    name, pid = run(MANAGER, status=-signal.SIGKILL).split()
    await_(lambda: not exists(name), what="the end of the block")
    await_(lambda: has_ended(pid), what="the end of the manager")


def test_nothing_is_said_at_the_end(run):
    assert run("""
import shmview
a = shmview.SharedMemory(create=True, size=10)
view = a.buf[3:]
b = shmview.ShareableList(range(3))
m = shmview.SharedMemoryManager()
m.start()
c = m.SharedMemory(10)
print("done")
""") == "done\n"


def test_names_of_the_package():
    assert {"Array", "SharedMemory", "SharedMemoryManager", "RLock"} <= set(dir(shmview))
    from shmview import shared_memory, sharedctypes
    assert shared_memory.SharedMemory is shmview.SharedMemory
    assert sharedctypes.Array is shmview.Array
    with pytest.raises(AttributeError):
        shmview.nothing
