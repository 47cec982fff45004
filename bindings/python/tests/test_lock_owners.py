# SPDX-License-Identifier: Apache-2.0
"""Which owner of a Lock or RLock counts as alive: a zombie with threads, and a process whose id
another one has got."""

import ctypes
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings

import pytest
from conftest import PATIENCE

import shmview

libc = ctypes.CDLL(None, use_errno=True)


def leave_a_thread(lock, ready, leave):
    """Takes the lock, then ends the first thread while another one lives."""
    def live():
        while open(f"/proc/{os.getpid()}/stat").read().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.001)
        ready.send(None)
        leave.recv()
        os._exit(0)
    lock.acquire()
    threading.Thread(target=live).start()
    # a system call, because pthread_exit() would unwind through the interpreter
    libc.syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)


@pytest.mark.parametrize("kind", [shmview.Lock, shmview.RLock])
@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="the number of exit(2)")
def test_a_process_lives_while_it_has_a_thread(kind):
    context = multiprocessing.get_context("fork")
    lock = kind()
    ready, ready_end = context.Pipe(duplex=False)
    leave_end, leave = context.Pipe(duplex=False)
    child = context.Process(target=leave_a_thread, args=(lock, ready_end, leave_end))
    child.start()
    try:
        assert ready.poll(PATIENCE)
        if kind is shmview.RLock:  # the thread owned it, and has ended
            with pytest.warns(shmview.OwnerDiedWarning):
                assert lock.acquire(timeout=PATIENCE)
        else:
            assert not lock.acquire(timeout=0.2)
            leave.send(None)
            with pytest.warns(shmview.OwnerDiedWarning):
                assert lock.acquire(timeout=PATIENCE)
            assert lock.owner_died == child.pid
    finally:
        child.kill()
        child.join()


def take_as(wanted, act):
    """Runs act() in a child whose process id is wanted. Must run in a pid namespace of its own."""
    with open("/proc/sys/kernel/ns_last_pid", "w") as f:
        f.write(str(wanted - 1))
    pid = os.fork()
    if pid == 0:
        act()
        os._exit(0)
    assert pid == wanted
    return os.waitpid(pid, 0)[1]


def reuse_an_id():
    """The body of the next test, which runs inside the namespace."""
    for kind in shmview.Lock, shmview.RLock:
        lock, wanted = kind(), 300

        def die_inside():
            lock.acquire()
            os._exit(0)

        def come_again():
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                assert lock.acquire(timeout=PATIENCE), kind
            assert [w.category for w in told] == [shmview.OwnerDiedWarning], kind
            assert lock.owner_died == wanted
            lock.release()
            assert lock.acquire(False)
        assert take_as(wanted, die_inside) == 0
        time.sleep(0.03)  # births differ if they are more than a tick of 10 ms apart
        assert take_as(wanted, come_again) == 0


def test_an_id_that_comes_again_is_another_owner():
    unshare = [shutil.which("unshare") or "unshare", "--user", "--map-root-user", "--pid", "--fork",
               "--mount-proc"]
    try:
        tried = subprocess.run([*unshare, "true"], stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        pytest.skip("unshare(1) is not installed")
    if tried.returncode:
        pytest.skip("no pid namespaces for this user here")
    subprocess.run([*unshare, sys.executable, __file__], timeout=2 * PATIENCE, check=True)


if __name__ == "__main__":
    reuse_an_id()
