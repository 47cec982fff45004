# SPDX-License-Identifier: Apache-2.0
"""Streams: frames in order, the latest ones, history, what a frame carries, stages, and what is refused."""

import os
import pickle
import subprocess
import sys
import threading
import time

import pytest

import shmview
from conftest import PATIENCE, await_

pytestmark = pytest.mark.usefixtures("daemon")


def create(name="s", **options):
    return shmview.create_stream(name, numbers=("i8", 10), gain="f4", **options)


def opened(name="s", access="read"):
    stream = shmview.open_stream(name, access)
    stream.join()
    return stream


def write(stream, number):
    with stream.loan(0) as frame:
        frame["numbers"].fill(number)
    return frame.sequence


def number_of(frame):
    numbers = set(frame["numbers"].tolist())
    assert len(numbers) == 1
    return numbers.pop()


def read(stream):
    with stream.take(0) as frame:
        return number_of(frame)


def test_frames_come_in_order():
    with create(slots=4, lossless=True) as stream, opened() as reader:
        for i in range(1, 20):
            assert write(stream, i) == i
            with reader.take(timeout=PATIENCE) as frame:
                assert (frame.sequence, frame.missed, number_of(frame)) == (i, 0, i)
            with pytest.raises(shmview.TimedOut, match="no frame of stream 's'"):
                reader.take(0)


def test_backings():
    with create("sealed", backing="sealed") as stream, create("default"):
        assert [shmview.stats(name).backing for name in ("sealed", "default")] == ["sealed", "file"]
        with opened("sealed") as reader:
            write(stream, 7)
            assert read(reader) == 7
    with pytest.raises(ValueError, match="backing: 'file' or 'sealed', not 'wood'"):
        create(backing="wood")


def test_facts():
    with create("t", slots=10, history=2, stages=3, many_writers=True) as stream:
        later = shmview.open_stream("t:2", "peek")
        assert later.info == shmview.StreamInfo(False, 10, 2, 3, 2, True, later.info.frame_bytes)
        assert later.info.frame_bytes >= 84 and stream.info.stage == 0
        assert stream.views == ("numbers", "gain") and stream.death is None
        assert (stream.name, later.name) == ("t", "t:2") and (stream.access, later.access) == ("write", "peek")
        assert stream.connection is shmview.connect() and not stream.closed
        assert repr(later) == "<shmview.Stream 't:2', latest, 10 slots, peek>"
        later.close()
        assert later.closed and later.name == "t:2" and repr(later).endswith(", closed>")
    assert stream.closed
    with shmview.create_stream(image=("u1", (4, 4)), lossless=True) as unnamed:
        assert unnamed.name.startswith(f"py-{os.getpid()}-") and unnamed.info.lossless


def test_forms_of_views():
    numpy = pytest.importorskip("numpy")
    dtype = numpy.dtype([("x", "<f8"), ("y", "<i4", (3,))], align=True)
    with shmview.create_stream("d", dtype) as stream, stream.loan() as frame:
        assert frame["x"].offset == 0 and frame["y"].offset == 8 and frame["y"].shape == (3,)
    with shmview.create_stream("d", {"a": "f8"}, b=("u1", 3), c=("i2", (2, 2))) as stream, stream.loan() as frame:
        assert stream.views == ("a", "b", "c")
        assert [frame[name].offset % 64 for name in "abc"] == [0, 0, 0] and frame["b"].offset == 64
        frame.discard()
    with shmview.create_stream("d", {"a": ("u1", 4, 48), "b": ("u1", 2, 3)}) as stream, stream.loan() as frame:
        assert frame["a"].offset - frame["b"].offset == 45
        frame.discard()
    back = {"format": "i4", "shape": 3, "strides": -4}
    with shmview.create_stream("d", a=back, b=("u1", 3)) as stream, stream.loan() as frame:
        frame["a"][:] = [1, 2, 3]
        frame["b"][:] = [7, 8, 9]
        assert frame["a"].tolist() == [1, 2, 3]


def test_the_latest_frames():
    with create(slots=4) as stream, opened() as reader:
        for i in range(1, 11):
            write(stream, i)
        with reader.take(0) as frame:
            assert frame.missed == frame.sequence - 1 > 0
        with reader.latest(0) as frame:
            assert frame.sequence == number_of(frame) == 10
        with pytest.raises(shmview.TimedOut):
            reader.latest(0)
        with pytest.raises(shmview.TimedOut):
            reader.latest(timeout=0.01)


def test_lossless_waits_for_the_slowest():
    with create(slots=3, lossless=True) as stream, opened() as reader:
        for i in range(3):
            write(stream, i)
        began = time.monotonic()
        with pytest.raises(shmview.TimedOut, match=rf"pid {os.getpid()} .*has not taken 3 frames"):
            stream.loan(0.02)
        assert time.monotonic() - began >= 0.02
        waiting = threading.Thread(target=lambda: stream.loan(PATIENCE).publish())
        waiting.start()
        time.sleep(0.02)
        assert read(reader) == 0
        waiting.join()
        reader.leave()
        for i in range(9):
            write(stream, i)
        reader.join()
        write(stream, 77)
        assert read(reader) == 77


def test_history():
    for lossless in False, True:
        with create(slots=6, history=3, lossless=lossless) as stream:
            for i in range(9):
                write(stream, i)
            with opened() as reader:
                assert [read(reader) for _ in range(3)] == [6, 7, 8]


def test_what_a_frame_carries():
    with create() as stream, opened() as reader:
        with stream.loan() as frame:
            assert (frame.sequence, frame.time, frame.user, frame.missed) == (0, 0, b"", 0)
            assert repr(frame) == "<shmview.Frame of 's', loaned>" and frame.stream is stream
            frame.user = bytearray(b"exposure 7")
            frame.time_ns = 1_500_000_000
            assert frame.time == 1.5
            frame.set_length("numbers", 3)
            frame["numbers"][:] = [1, 2, 3]
            frame["gain"][()] = 0.5
        assert frame.sequence == 1 and frame.released and repr(frame) == "<shmview.Frame 1 of 's', published>"
        frame = reader.take()
        assert (frame.time, frame.time_ns, frame.user) == (1.5, 1_500_000_000, b"exposure 7")
        assert frame["numbers"].tolist() == [1, 2, 3] and frame["gain"].item() == 0.5
        assert frame["numbers"].readonly and frame.intact and not frame.released
        assert repr(frame["numbers"]).startswith("<shmview.View of a frame of 's', format '")
        assert repr(frame["numbers"].segment) == "<shmview.Segment of a frame of 's'>"
        frame.release()
        frame.release()
        assert frame.sequence == 1 and frame.released and not frame.intact
        assert repr(frame) == "<shmview.Frame 1 of 's', released>"
        before = time.monotonic()
        with stream.loan() as frame:
            pass
        assert before <= frame.time <= time.monotonic() and reader.take()["numbers"].shape == (10,)
        with stream.loan() as frame:
            frame.time = 2.25
            frame.discard()
        assert repr(frame) == "<shmview.Frame 0 of 's', discarded>"


def test_discarded_frames_are_never_seen():
    with create(slots=2) as stream, opened() as reader:
        for _ in range(5):
            with pytest.raises(ZeroDivisionError), stream.loan(0):
                1 / 0
            stream.loan(0).discard()
            stream.loan(0)  # dropped
        frame = stream.loan(0)
        assert frame.publish() == 1
        frame.discard()  # it is over
        with pytest.raises(ValueError, match="published or discarded"):
            frame.publish()
        assert reader.take(0).sequence == 1


def test_iteration():
    stream, reader = create(lossless=True), opened()
    for i in range(5):
        write(stream, i)
    stream.end()
    assert [number_of(frame) for frame in reader] == [0, 1, 2, 3, 4]
    assert list(reader) == []
    with pytest.raises(EOFError, match="stream 's' has ended") as e:
        reader.take()
    assert type(e.value) is shmview.StreamEnded and e.value.name == "s"
    del e
    write(stream, 5)  # begins it again
    assert next(reader)["numbers"][0] == 5
    stream.close()
    reader.close()


def test_stages():
    with create(slots=4, stages=2, lossless=True) as stream, opened(access="write") as second, opened("s:1") as third:
        for i in range(12):
            write(stream, i)
            with second.take() as frame:
                if i % 3 == 0:
                    assert frame.pass_on(1) == i // 3 + 1
                    with pytest.raises(shmview.Exists, match="in stage 1 already"):
                        frame.pass_on(1)
                    address = frame["numbers"].address
            if i % 3 == 0:
                with third.take() as frame:
                    assert number_of(frame) == i and frame.sequence == i // 3 + 1
                    with pytest.raises(shmview.ReadOnly):
                        frame.pass_on(0)
                    assert (frame["numbers"].address - address) % 64 == 0
        with pytest.raises(shmview.Invalid, match="stage 1 of stream 's' gets its frames"):
            shmview.open_stream("s:1", "write").loan()
        write(stream, 0)
        with second.take() as frame, pytest.raises(shmview.Invalid, match="to stage 7"):
            frame.pass_on(7)
        with pytest.raises(ValueError, match="released"):
            frame.pass_on(1)


def test_peeking():
    with create(slots=3) as stream, shmview.open_stream("s", "peek") as peek:
        with pytest.raises(shmview.TimedOut):
            peek.take(0.001)
        write(stream, 1)
        frame = peek.take(0)
        assert frame.intact and number_of(frame) == 1
        for i in range(9):
            write(stream, i)
        assert not frame.intact
        with pytest.raises(shmview.NoLock):
            peek.fileno()


def test_status():
    with create(slots=4, stages=2) as stream, opened() as reader:
        write(stream, 1)
        loaned, held = stream.loan(), reader.take()
        status = stream.status()
        assert status.published == (1, 0) and status.ended == (False, False) and status.deaths == 0
        assert status.writer_pid == os.getpid() and status.writer_command
        states = sorted(slot.state for slot in status.slots)
        assert len(states) == 4 and "loaned" in states and states.count("held") == 1
        slot = next(i for i, slot in enumerate(status.slots) if slot.state == "held")
        me, = status.readers
        assert (me.pid, me.stage, me.next, me.lag, me.missed, me.holds) == (os.getpid(), 0, 2, 0, 0, (slot,))
        assert status.slots[slot].sequences == (1, 0) and status.slots[slot].time == held.time
        loaned.discard()
        stream.end()
        assert stream.status().ended == (True, False)
        del held, loaned


def await_call_of(stream):
    """Waits until a thread is in a call. A held frame keeps the stream from being closed before."""
    await_(lambda: outcome_of(stream.close) == f"1 threads are in calls of '{stream.name}'")


def test_waiting_for_any():
    left, right = create("left"), create("right")
    readers = [opened("left"), opened("right")]
    seg = shmview.create("seg", 100, one={"A": "i4"})
    with pytest.raises(shmview.TimedOut, match="none of 2 entries"):
        shmview.wait_any(readers, 0)
    write(right, 1)
    assert shmview.wait_any(readers, timeout=PATIENCE) is readers[1]
    assert shmview.wait_any(iter(readers)) is readers[1]  # it takes nothing
    frame = readers[1].take(0)
    for wake, entry in ((seg.notify, seg), (lambda: write(left, 1), readers[0])):
        waker = threading.Thread(target=lambda: (await_call_of(readers[1]), wake()))
        waker.start()
        assert shmview.wait_any([*readers, seg], PATIENCE) is entry
        waker.join()
    frame.release()
    change = ("change", seg, seg.change - 1)
    assert shmview.wait_any([readers[1], change]) is change
    phase = ("phase", seg, seg.generation)
    with pytest.raises(shmview.TimedOut):
        shmview.wait_any([phase], 0.01)
    with seg.locked():
        seg.switch("one")
    assert shmview.wait_any([phase], 0) == phase
    for wrong in [], [left] * 65, [("pause", seg, 1)], [("phase", seg, 1 << 32)], [("change", seg, (1 << 64) + 5)], \
            [("change", seg, -1)]:
        with pytest.raises(ValueError, match="wait_any"):
            shmview.wait_any(wrong)
    for wrong in [1], [("phase", 1, 1)], [("phase", seg, 1.5)], 5:
        with pytest.raises(TypeError):
            shmview.wait_any(wrong)
    for stream in (left, right, *readers):
        stream.close()
    with pytest.raises(ValueError, match="the stream is closed"):
        shmview.wait_any([left])
    seg.close()


def test_what_is_refused():
    with pytest.raises(TypeError, match=r"needs the views of a frame, as in image="):
        shmview.create_stream("t")
    with pytest.raises(TypeError, match="view 'a' is there twice"):
        shmview.create_stream("t", {"a": "i4"}, a="i4")
    for options, error, text in (({"slots": 1}, shmview.Invalid, "1 slots"), ({"slots": 513}, shmview.Invalid, "513 slots"),
                                 ({"history": 7}, shmview.Invalid, "history of 7"), ({"stages": 7}, shmview.Invalid, "7 stages"),
                                 ({"slots": -1}, ValueError, "slots: a number"), ({"lifetime": "x"}, ValueError, "lifetime"),
                                 ({"history": 1 << 40}, ValueError, "history: a number")):
        with pytest.raises(error, match=text):
            create("t", **options)
    with pytest.raises(shmview.FormatError, match="nonsense"):
        shmview.create_stream("t", a="nonsense")
    seg = shmview.create("seg", 4096)
    with pytest.raises(shmview.Invalid, match="'seg': the segment is no stream"):
        shmview.open_stream("seg")
    seg.close()
    with pytest.raises(FileNotFoundError) as e:
        shmview.open_stream("nobody")
    assert e.value.name == "nobody"
    with pytest.raises(shmview.NotFound):
        shmview.open_stream("nobody", timeout=0.01)
    with create() as stream:
        with pytest.raises(shmview.Exists):
            create()
        with pytest.raises(shmview.Invalid, match="which has 1"):
            shmview.open_stream("s:1")
        with pytest.raises(ValueError, match="access: 'peek', 'read' or 'write', not 'all'"):
            shmview.open_stream("s", "all")
        reader, second = opened(), opened(access="write")
        with pytest.raises(shmview.ReadOnly, match="not opened for writing"):
            reader.loan()
        with pytest.raises(shmview.ReadOnly):
            reader.end()
        write(stream, 1)
        with pytest.raises(shmview.Busy, match=f"stream 's' has a writer: pid {os.getpid()}"):
            second.loan()
        with pytest.raises(TypeError, match="takes only timeout="):
            reader.take(1, 2)
        with pytest.raises(TypeError, match="takes only timeout="):
            stream.loan(time=1)
        with pytest.raises(ValueError, match="a timeout is"):
            reader.take(-1)
        reader.close()
        second.close()
    for call in stream.loan, stream.take, stream.latest, stream.end, stream.join, stream.status, lambda: next(stream):
        with pytest.raises(ValueError, match="the stream is closed"):
            call()
    with pytest.raises(TypeError, match="made by the functions"):
        shmview.Stream()
    with pytest.raises(TypeError, match="made by the functions"):
        shmview.Frame()


def test_what_a_frame_refuses():
    with create() as stream, opened() as reader:
        frame = stream.loan()
        with pytest.raises(shmview.NoLayout, match=r"stream 's' has no view 'x', but \('numbers', 'gain'\)") as e:
            frame["x"]
        assert e.value.view == "x"
        with pytest.raises(TypeError, match="is the view called image"):
            frame[0]
        with pytest.raises(shmview.Bounds, match="11 elements of view 'numbers', which has 10"):
            frame.set_length("numbers", 11)
        with pytest.raises(shmview.Bounds):
            frame.set_length("gain", 1)
        with pytest.raises(ValueError, match="a length is"):
            frame.set_length("numbers", -1)
        with pytest.raises(ValueError, match="65 bytes for a frame's user, the limit is 64"):
            frame.user = bytes(65)
        with pytest.raises(TypeError):
            frame.user = "text"
        with pytest.raises(TypeError, match="cannot be deleted"):
            del frame.user
        with pytest.raises(ValueError, match="a time is"):
            frame.time = float("nan")
        with pytest.raises(TypeError):
            frame.time_ns = 1.5
        with pytest.raises(shmview.NotOwner, match="not taken"):
            frame.pass_on(1)
        frame.publish()
        frame = reader.take()
        for change in (lambda: setattr(frame, "user", b""), lambda: setattr(frame, "time", 1), frame.publish, frame.discard,
                       lambda: frame.set_length("numbers", 1)):
            with pytest.raises(shmview.NotOwner, match="only a loaned one can be changed"):
                change()
        with pytest.raises(shmview.ReadOnly):
            frame["numbers"][0] = 1
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(frame)
        with pytest.raises(shmview.Invalid, match="pickle a copy, or the stream"):
            pickle.dumps(frame["numbers"])
        frame.release()
        for use in lambda: frame["gain"], lambda: frame.user, frame.__enter__:
            with pytest.raises(ValueError, match="the frame was released"):
                use()


def test_pickle(run):
    with create() as stream, opened() as reader:
        again = pickle.loads(pickle.dumps(reader))
        assert again is not reader and (again.name, again.access) == ("s", "read")
        again.join()
        write(stream, 3)
        assert read(again) == 3
        again.close()


def test_waiting_for_creation():
    found = []

    def wait():
        found.append(shmview.open_stream("late:0", timeout=PATIENCE))
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.02)
    with create("late"):
        thread.join()
        assert found[0].name == "late"
        found.pop().close()


def test_removing():
    stream = create(lifetime="manual")
    stream.close()
    with opened(access="write") as stream:
        stream.remove()
        assert not shmview.exists("s")
        write(stream, 1)


PROGRAM = """
import os, shmview, sys, time
reader = shmview.open_stream("s", timeout=60)
total = n = 0
for frame in reader:
    total += frame["numbers"].summary().sum
    n += 1
print(n, total)
"""


def test_another_process():
    with create(slots=8, lossless=True) as stream:
        child = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE)
        await_(lambda: stream.status().readers, what="the reader")
        for i in range(1000):
            with stream.loan(PATIENCE) as frame:
                frame["numbers"].fill(i)
        stream.end()
        assert child.communicate(timeout=60)[0].split() == [b"1000", b"4995000.0"] and child.returncode == 0


def test_threads_share_the_frames():
    with create(slots=16, lossless=True) as stream, opened() as reader:
        seen = []

        def take():
            for frame in reader:
                seen.append(number_of(frame))
                del frame  # before the wait for the next one
        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for i in range(500):
            with stream.loan(PATIENCE) as frame:
                frame["numbers"].fill(i)
        stream.end()
        for thread in threads:
            thread.join()
        assert sorted(seen) == list(range(500))


def test_closing_during_a_call():
    with create() as stream, opened() as reader:
        write(stream, 0)
        frame = reader.take(0)
        thread = threading.Thread(target=lambda: reader.take(PATIENCE).release())
        thread.start()
        await_call_of(reader)
        write(stream, 1)
        thread.join()
        frame.release()


def outcome_of(call):
    try:
        call()
    except shmview.Busy as e:
        return str(e)
