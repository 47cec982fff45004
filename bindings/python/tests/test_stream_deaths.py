# SPDX-License-Identifier: Apache-2.0
"""Streams when a process dies, is stopped, forks or is interrupted, and when the daemon is started again."""

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


def create(**options):
    return shmview.create_stream("s", n=("i8", 4), **options)


def write(stream, number):
    with stream.loan(PATIENCE) as frame:
        frame["n"][0] = number


def child(source):
    """Starts a program with a stream "s", which prints "ready", and then waits."""
    source = f"import os, shmview, sys, time\n{source}\nprint('ready', flush=True)\ntime.sleep(100)\n"
    process = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def kill(process):
    process.kill()
    process.wait()
    process.stdout.close()


WRITER = """
s = shmview.open_stream("s", "write")
for i in 1, 2:
    with s.loan() as frame:
        frame["n"][0] = i
unfinished = s.loan()
unfinished["n"][0] = 3
"""


@pytest.mark.parametrize("many_writers", [False, True])
def test_a_writer_dies(many_writers):
    create(many_writers=many_writers, lifetime="manual").close()
    with shmview.open_stream("s") as reader:
        reader.join()
        process = child(WRITER)
        timer = threading.Timer(0.05, process.kill)
        seen = []
        with pytest.raises(shmview.WriterDied) as e:
            for frame in reader:
                seen.append(int(frame["n"][0]))
                if seen == [1, 2]:  # of many writers, a death comes before frames that are not taken
                    timer.start()
        assert seen == [1, 2]
        died = e.value
        assert died.pid == process.pid and died.name == "s" and died.command.startswith("python")
        assert str(died) == f"process {died.pid} ({died.command}), a writer of stream 's', died"
        assert abs(time.monotonic() - died.when) < 60 and died.died_at.tzinfo
        assert (reader.death.pid, reader.death.when) == (died.pid, died.when)
        timer.join()
        kill(process)
        with pytest.raises(shmview.TimedOut):  # reported once
            reader.take(0.01)
        with shmview.open_stream("s", "write") as writer:
            write(writer, 4)
            with reader.take(PATIENCE) as frame:
                assert frame["n"][0] == 4 and frame.missed == 0
            loans = [writer.loan(PATIENCE) for _ in range(7)]  # no slot is lost
            del loans
            writer.remove()
        del e, died, frame


def test_a_writer_waits_for_the_death_of_the_one_before():
    """It may have been killed a moment ago, so a call that may wait does so before it raises Busy."""
    with create() as stream, shmview.open_stream("s", "write") as second:
        write(stream, 1)
        began = time.monotonic()
        with pytest.raises(shmview.Busy, match="has a writer"):
            second.loan()
        assert time.monotonic() - began > 0.1


def test_a_reader_dies_with_frames():
    with create(slots=3, lossless=True) as stream:
        process = child("s = shmview.open_stream('s')\ns.join()\nprint('ready', flush=True)\n"
                        "frames = [s.take(), s.take()]")
        for i in range(3):
            write(stream, i)
        assert process.stdout.readline() == b"ready\n"
        with pytest.raises(shmview.TimedOut, match=f"pid {process.pid} "):
            stream.loan(0.01)
        timer = threading.Timer(0.05, process.kill)
        timer.start()
        for i in range(10):
            write(stream, i)
        timer.join()
        kill(process)
        assert stream.status().readers == ()


def test_a_stopped_reader():
    with create(slots=3, lossless=True) as stream:
        process = child("s = shmview.open_stream('s')\ns.join()")
        process.send_signal(signal.SIGSTOP)
        for i in range(3):
            write(stream, i)
        with pytest.raises(shmview.TimedOut, match=f"pid {process.pid} .*has not taken 3 frames"):
            stream.loan(0.02)
        kill(process)


def test_fork():
    stream = create(slots=8, lossless=True)
    reader = shmview.open_stream("s")
    reader.join()
    write(stream, 1)
    frame = reader.take(0)
    loaned = stream.loan(0)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            check_in_child(reader, frame, loaned)
            status = 0
        finally:
            os._exit(status)
    await_(lambda: len(stream.status().readers) == 2, what="the child")
    write(stream, 2)
    assert os.waitpid(pid, 0)[1] == 0
    assert frame.intact and frame["n"][0] == 1  # the child's copy released nothing
    frame.release()
    loaned.discard()
    assert reader.take(0)["n"][0] == 2
    reader.close()
    stream.close()


def check_in_child(reader, frame, loaned):
    assert not frame.intact
    for use in lambda: frame["n"], lambda: loaned["n"]:
        with pytest.raises(shmview.NotOwner, match="none of this process"):
            use()
    with pytest.raises(shmview.NotOwner):
        loaned.publish()
    frame.release()
    with reader.take(PATIENCE) as mine:  # joins anew
        assert mine["n"][0] == 2
    reader.close()


def test_fork_and_write():
    stream = create(many_writers=True)
    with shmview.open_stream("s") as reader:
        reader.join()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                write(stream, 5)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
        while True:  # the end of the child may be reported as a death
            try:
                with reader.take(PATIENCE) as frame:
                    assert frame["n"][0] == 5
                break
            except shmview.WriterDied as e:
                assert e.pid == pid
    stream.close()


def test_the_daemon_is_started_again(daemon):
    with create(slots=4, lossless=True) as stream, shmview.open_stream("s") as reader:
        reader.join()
        daemon.process.terminate()
        assert daemon.process.wait() == 0
        for i in range(10):
            write(stream, i)
            assert reader.take(0)["n"][0] == i
        daemon.start()
        write(stream, 11)
        assert reader.take(0)["n"][0] == 11


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
stream = shmview.create_stream("i", n=("i8", 4), slots=2, lossless=True)
reader = shmview.open_stream("i")
reader.join()
"""

INTERRUPTED = PROLOGUE + """
def loan():
    stream.loan().publish()
    stream.loan().publish()
    stream.loan()
async def iterate():
    async for frame in reader:
        pass
waits = {
    "take": reader.take, "latest": reader.latest, "next": lambda: next(reader), "for": lambda: list(reader),
    "loan": loan, "timeout": lambda: reader.take(timeout=1000), "wait_any": lambda: shmview.wait_any([reader]),
    "asyncio": lambda: asyncio.run(iterate()),
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
assert not ended
if sys.argv[1] != "loan":
    with stream.loan(0) as frame:
        frame["n"][0] = 5
    with reader.take(0) as frame:
        assert frame["n"][0] == 5
reader.close()
stream.close()
print("interrupted")
"""


@pytest.mark.parametrize("wait", ["take", "latest", "next", "for", "loan", "timeout", "wait_any", "asyncio"])
def test_interrupt(run, wait):
    assert run(INTERRUPTED, wait) == "interrupted\n"


KEPT = PROLOGUE + """
def handler(*_):
    with stream.loan(0) as frame:  # comes in the same moment in which the wait ends by an exception
        frame["n"][0] = 5
    if sys.argv[2] == "two":
        with stream.loan(0) as frame:
            frame["n"][0] = 6
    done.set()
    raise KeyboardInterrupt
signal.signal(signal.SIGINT, handler)
call = getattr(reader, sys.argv[1])
try:
    sender.start()
    call()
    raise SystemExit(1)
except KeyboardInterrupt:
    pass
done.set()
sender.join()
with call(0) as frame:
    print(frame["n"][0])
reader.close()
stream.close()
"""


@pytest.mark.parametrize("call, frames, first", [("take", "one", 5), ("take", "two", 5), ("latest", "one", 5),
                                                 ("latest", "two", 6)])
def test_no_frame_is_lost_by_an_interrupt(run, call, frames, first):
    assert run(KEPT, call, frames) == f"{first}\n"


def test_waits_release_the_gil():
    with create() as stream, shmview.open_stream("s") as reader:
        thread = threading.Thread(target=lambda: reader.take(PATIENCE).release())
        thread.start()
        await_(lambda: stream.status().readers, what="the reader")
        began = time.monotonic()
        time.sleep(0.05)
        assert time.monotonic() - began < PATIENCE / 2
        write(stream, 1)
        thread.join()
