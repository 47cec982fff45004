# SPDX-License-Identifier: Apache-2.0
"""Segment.freeze(): arrays become read-only, and what could still write is refused."""

import os
import signal
import sys
import threading
import time

import pytest

import shmview
from conftest import await_

pytestmark = pytest.mark.usefixtures("daemon")


def make(name="w", **more):
    seg = shmview.create(name, 80, backing="sealed", **more)
    seg.buf[:3] = b"abc"
    return seg


def test_nobody_writes():
    seg = make()
    assert seg.frozen is False and shmview.stats("w").frozen is None
    seg.freeze()
    assert seg.frozen is True and seg.access == "read" and shmview.stats("w").frozen == "all"
    assert bytes(seg.buf[:4]) == b"abc\0"
    assert seg.buf.readonly and memoryview(seg).readonly
    with pytest.raises(shmview.ReadOnly):
        seg.buf[0] = 1
    with pytest.raises(shmview.ReadOnly, match="'w' is frozen"):
        shmview.attach("w")
    with shmview.attach("w", access="peek") as other:
        assert other.frozen
    with seg.locked():
        assert seg.cast("B")[0] == ord("a")
    seg.freeze()  # it is so already
    view = seg.buf
    seg.freeze()
    assert view[0] == ord("a")


def test_freezing_again_disturbs_no_view():
    seg, failed, over = make(), [], threading.Event()
    seg.freeze()

    def use():
        try:
            while not over.is_set():
                assert seg.buf[0] == ord("a")
        except Exception as error:
            failed.append(error)
    interval, thread = sys.getswitchinterval(), threading.Thread(target=use)
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        end = time.monotonic() + 0.5
        while time.monotonic() < end and not failed:
            for _ in range(20):
                seg.freeze()
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not failed


def test_numpy():
    numpy = pytest.importorskip("numpy")
    seg = make(l={"A": ("f8", 10)})
    with seg.locked():
        seg.switch("l")
    seg.freeze()
    array = numpy.asarray(seg["A"])
    assert not array.flags.writeable
    with pytest.raises(ValueError):
        array[0] = 1
    with pytest.raises(ValueError):
        array.flags.writeable = True


def free_huge_pages():
    try:
        with open("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages") as file:
            return int(file.read())
    except OSError:
        return 0


def test_huge_pages():
    numpy = pytest.importorskip("numpy")
    if free_huge_pages() < 4:
        pytest.skip("vm.nr_hugepages leaves no 4 huge pages free")
    seg = shmview.create("w", 2**22 + 8, backing="sealed", huge="required")
    assert seg.placement["huge_by"] == "hugetlb"
    numpy.asarray(seg.cast("B"))[:] = 7
    seg.freeze()
    array = numpy.asarray(seg.cast("B"))
    assert seg.frozen and (array == 7).all() and not array.flags.writeable
    with pytest.raises(ValueError):
        array[-1] = 1
    with pytest.raises(ValueError):
        array.flags.writeable = True
    with pytest.raises(shmview.ReadOnly):
        seg.buf[0] = 1


def test_views_are_out():
    seg = make()
    view = seg.buf
    with pytest.raises(shmview.Busy, match="cannot be frozen: 1 views or buffers"):
        seg.freeze()
    view[0] = ord("x")  # as before
    buffer = memoryview(seg)
    del view
    with pytest.raises(shmview.Busy, match="1 views or buffers"):
        seg.freeze()
    buffer.release()
    seg.freeze()
    assert seg.buf[0] == ord("x")


def test_future():
    seg = make()
    view = seg.buf
    seg.freeze(future=True)
    view[0] = ord("y")
    assert (seg.frozen, seg.access, shmview.stats("w").frozen) == (False, "write", "future")
    with pytest.raises(shmview.ReadOnly, match="nobody else can begin"):
        shmview.attach("w")
    del view
    seg.freeze()
    assert seg.frozen


def test_refusals():
    seg = make()
    other = shmview.attach("w")
    with pytest.raises(shmview.Busy, match=f"that of process {os.getpid()} "):
        seg.freeze()
    seg.buf[0] = 1
    other.close()
    with pytest.raises(shmview.ReadOnly):
        shmview.attach("w", readonly=True).freeze()
    with pytest.raises(shmview.Invalid, match="backing is file"):
        shmview.create("file", 8, backing="file").freeze()
    with pytest.raises(TypeError):
        seg.freeze(True)
    seg.close()
    for use in (seg.freeze, lambda: seg.frozen):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_a_lock_is_given_back_meanwhile():
    """The kernel cannot freeze what a child maps, so that the library tries for a while."""
    seg = make()
    end, hang_up = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(hang_up)
        os.read(end, 1)
        os._exit(0)
    refused = []

    def freeze():
        try:
            seg.freeze()
        except shmview.Busy as error:
            refused.append(str(error))

    thread = threading.Thread(target=freeze)
    with seg.locked():
        thread.start()
        while thread.is_alive() and not seg.closed:
            time.sleep(0.001)
    thread.join()
    assert len(refused) == 1 and f"process {child} (" in refused[0]
    assert not seg.lock_status().held
    os.close(hang_up)
    os.waitpid(child, 0)
    seg.freeze()
    os.close(end)


@pytest.mark.parametrize("when", ["before", "in pause()"])
def test_no_close_meanwhile(daemon, when):
    """A segment is open after freeze(), so close() of another thread must not take it for closed."""
    seg, resumed = make(), []
    thread = threading.Thread(target=seg.freeze)

    def begin():
        daemon.process.send_signal(signal.SIGSTOP)  # freeze() waits for it
        thread.start()
        await_(lambda: seg.closed)

    class Watch:
        pause, resume = staticmethod(begin), staticmethod(resumed.append)

        def close(self):
            resumed.append(None)
    if when == "before":
        begin()
    else:
        seg._watch = Watch()
    try:
        for _ in range(2):
            with pytest.raises(shmview.Busy, match="a thread of this process freezes '"):
                seg.close()
    finally:
        daemon.process.send_signal(signal.SIGCONT)
        thread.join()
    assert resumed == [seg] * (when != "before")
    assert not seg.closed and seg.frozen
    del seg._watch
    seg.close()
    assert seg.closed
