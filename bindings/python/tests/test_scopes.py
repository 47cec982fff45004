# SPDX-License-Identifier: Apache-2.0
"""What a with statement does: 'with segment:' closes it, and 'with segment.locked():' holds its lock.
test_scopes_aio.py tests 'async with'."""

import os
import sys
import threading
import time

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")

# --- with segment: -----------------------------------------------------------


def test_a_block_closes_the_segment_and_takes_no_lock():
    with shmview.create("one", 10) as seg:
        assert not seg.closed and not seg.lock_status().held
        with shmview.attach("one") as other:
            other.buf[0] = 7
            assert seg.buf[0] == 7
        assert other.closed and not seg.closed
    assert seg.closed and not shmview.exists("one")
    with pytest.raises(ValueError, match="closed"):
        seg.__enter__()
    with shmview.create("two", 10) as seg:
        seg.close()


def test_views_that_outlive_the_block_keep_their_memory():
    with shmview.create("one", 16, view={"A": ("u1", 16)}) as seg:
        view, array = seg["A"], memoryview(seg["A"])
        view[:] = range(16)
        assert view.segment is seg
    assert seg.closed and shmview.exists("one")
    assert view.tolist() == list(range(16)) and list(array) == list(range(16))
    assert view[2:4].cast("H").shape == (1,) and view.offset == 0 and "one" in repr(view)
    for call in (seg.lock, seg.locked().__enter__, lambda: seg.buf, lambda: seg["A"], lambda: memoryview(seg)):
        with pytest.raises(ValueError, match="closed"):
            call()
    seg.close()
    assert view[3] == 3
    view.release()
    assert shmview.exists("one")
    array.release()
    assert not shmview.exists("one") and "closed" in repr(seg)


def test_the_bytes_of_a_segment_outlive_the_block():
    with shmview.create("one", 16) as seg:
        seg.buf[5] = 7
        whole = memoryview(seg)
    assert whole[5] == 7 and shmview.exists("one")
    del whole
    assert not shmview.exists("one")


def test_a_tensor_that_outlives_the_block_keeps_its_memory():
    with shmview.create("one", 16, view={"A": ("u1", 16)}) as seg:
        seg.lock()
        capsule = seg["A"].__dlpack__()
        seg.unlock()
        with pytest.raises(shmview.Busy, match="1 buffers"):
            seg.close()
    assert seg.closed and shmview.exists("one")
    del seg
    assert shmview.exists("one")
    del capsule
    assert not shmview.exists("one")
    with shmview.wrap(bytearray(8)).segment as seg:
        capsule = seg.buf.__dlpack__()
    assert seg.closed


@pytest.mark.parametrize("shared", [False, True])
def test_a_lock_that_is_held_at_the_end_is_an_error_with_a_tensor(shared):
    with pytest.raises(shmview.Busy, match="holds the lock"):
        with shmview.create("one", 16) as seg:
            capsule = seg.buf.__dlpack__()
            seg.lock(shared=shared)
    assert not seg.closed and capsule
    seg.unlock()
    with seg:
        pass
    assert seg.closed


def test_a_lock_of_another_process_keeps_no_tensor_from_outliving_the_block():
    (read, write), (end, hang_up) = os.pipe(), os.pipe()
    with shmview.create("one", 16) as seg:
        capsule = seg.buf.__dlpack__()
        child = os.fork()
        if child == 0:
            seg.lock()
            os.close(hang_up)
            os.write(write, b"x")
            os.read(end, 1)
            os._exit(0)
        os.read(read, 1)
    assert seg.closed and capsule and [p.holds for p in shmview.stats("one").parties if p.holds] == ["exclusive"]
    for descriptor in (hang_up, end, read, write):
        os.close(descriptor)
    os.waitpid(child, 0)


@pytest.mark.parametrize("shared", [False, True])
def test_a_lock_of_another_segment_object_keeps_no_tensor_from_outliving_the_block(shared):
    with shmview.create("one", 16) as seg:
        capsule, other = seg.buf.__dlpack__(), shmview.attach("one")
        other.lock(shared=shared)
    assert seg.closed and capsule
    other.unlock()
    other.close()


def test_the_segment_may_go_before_its_views():
    with shmview.create("one", 16) as seg:
        view = seg.buf
    del seg
    assert view.segment.closed and shmview.exists("one")
    del view
    assert not shmview.exists("one")


def test_a_lock_that_is_held_at_the_end_is_an_error():
    with pytest.raises(shmview.Busy, match="holds the lock"):
        with shmview.create("one", 16) as seg:
            seg.lock()
    assert not seg.closed
    seg.unlock()
    with pytest.raises(KeyError, match="mine"):
        with seg:
            seg.lock()
            raise KeyError("mine")  # which is not replaced
    seg.unlock()
    seg.close()


def test_a_lock_outlives_the_block_with_a_view():
    other = None
    with shmview.create("one", 16) as seg:
        other = shmview.attach("one")
        view = seg.buf
        seg.lock()
    assert not other.trylock()
    seg.unlock()
    assert other.trylock()
    other.unlock()
    assert view[0] == 0


def hold_until_closed(seg, how, failed):
    """Takes the lock again and again, and stays inside for most of the time."""
    guard = seg.locked()
    for _ in range(100):
        try:
            seg.lock() if how == "unlock" else guard.__enter__()
        except ValueError:
            failed += [] if seg.closed else ["no lock"]
            return
        for _ in range(50):
            pass
        try:
            seg.unlock() if how == "unlock" else guard.__exit__(None, None, None)
        except ValueError as error:
            failed.append(error)
            return


@pytest.mark.parametrize("how", ["unlock", "exit"])
def test_a_refused_close_leaves_the_lock_to_its_holder(how):
    """close() gives the GIL away before it knows that a thread holds the lock."""
    interval, failed = sys.getswitchinterval(), []
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(5):
            seg = shmview.create("one", 16)
            thread = threading.Thread(target=hold_until_closed, args=(seg, how, failed))
            thread.start()
            while not seg.closed and not failed:
                try:
                    seg.close()
                except shmview.Busy:
                    pass
            thread.join()
            assert not failed
    finally:
        sys.setswitchinterval(interval)


def test_a_block_waits_for_no_thread():
    with shmview.create("one", 16) as seg:
        other = shmview.attach("one")
        other.lock()
        started, results = threading.Event(), []

        def wait():
            started.set()
            try:
                seg.lock()
                seg.unlock()
                results.append(True)
            except Exception as e:
                results.append(e)
        thread = threading.Thread(target=wait)
        thread.start()
        started.wait()
        while not any(p.role == "waits" for p in other.lock_status().parties):
            time.sleep(0.001)
        view = seg.buf
        for keep in view, None:
            del view
            view = keep
            with pytest.raises(shmview.Busy, match="in calls"):
                seg.__exit__(None, None, None)
        other.unlock()
        thread.join()
        assert results == [True]

# --- with segment.locked(): --------------------------------------------------


def test_a_guard_has_a_timeout():
    seg = shmview.create("one", 16)
    other = shmview.attach("one")
    guards = [seg.locked(timeout=0.01), seg.locked(0), seg.shared(timeout=0.01), seg.recover(timeout=0.01)]
    assert [guard.timeout for guard in guards] == [0.01, 0, 0.01, 0.01] and seg.locked().timeout is None
    assert [repr(guard) for guard in guards[1:]] == [f"<shmview.Guard: {kind}() of 'one'>"
                                                     for kind in ("locked", "shared", "recover")]
    with other.locked():
        for guard in guards:
            with pytest.raises(shmview.TimedOut):
                guard.__enter__()
    for guard in guards:
        for _ in range(2):
            with guard:
                assert not other.trylock()
        assert guard.segment is seg
    for wrong in (lambda: seg.locked(1, 2), lambda: seg.shared(time=1), lambda: seg.recover("x")):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError):
        seg.locked(timeout=-1)
