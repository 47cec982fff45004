# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C ends every wait, and nothing is held afterwards."""

import pytest

pytestmark = pytest.mark.usefixtures("daemon")

PROGRAM = """
import asyncio, os, shmview, signal, sys, threading
seg = shmview.create(None, 100, one={"A": "i"})
lock, rlock, array, value = shmview.Lock(), shmview.RLock(), shmview.Array("i", 3), shmview.Value("i")
held, leave, done = threading.Event(), threading.Event(), threading.Event()
def hold():
    with seg, lock, rlock, array, value:
        held.set()
        leave.wait()
holder = threading.Thread(target=hold)
holder.start()
held.wait()
def interrupt():
    while not done.wait(0.1):
        os.kill(os.getpid(), signal.SIGINT)
def handler(*_):
    if not done.is_set():
        done.set()
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
sender = threading.Thread(target=interrupt)
async def changed():
    await seg.changed()
waits = {
    "Lock": lock.acquire, "RLock": rlock.acquire, "with Array": array.__enter__, "Array[0]": lambda: array[0],
    "Array[:]": lambda: array.__setitem__(slice(None), [1, 2, 3]), "Value": lambda: value.value,
    "timeout": lambda: lock.acquire(timeout=1000), "segment": seg.lock, "with segment": seg.__enter__,
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
