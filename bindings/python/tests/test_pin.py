# SPDX-License-Identifier: Apache-2.0
"""pin(), with a driver that fails on demand."""

import gc
import itertools
import os
import threading

import pytest

import shmview
from conftest import PATIENCE, outcome
from shmview import _cuda

pytestmark = pytest.mark.usefixtures("daemon")
PAGE = os.sysconf("SC_PAGESIZE")
ALREADY, NOT_SUPPORTED = 712, 801


def mapped(begin, nbytes):
    """Whether all of the range is mapped to data of segments."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            first, last = (int(number, 16) for number in line.split()[0].split("-"))
            if first <= begin and begin + nbytes <= last:
                return "/shmview." in line
    return False


class Driver:
    """Replaces the CUDA run time. The calls with numbers in fail return an error, others check their
    arguments. Finalizers swallow exceptions, so wrong has what must not happen."""

    def __init__(self):
        self.calls, self.flags, self.fail, self.pinned = [], [], {}, {}
        self.pending, self.wrong, self.at_call = 0, [], None

    def answer(self, call, error=0):
        self.calls.append(call)
        if self.at_call:
            self.at_call()
        if self.pending:
            self.wrong.append(f"error {self.pending} is pending at {call}")
        self.pending = self.fail.get(len(self.calls), error)
        return self.pending

    def cudaHostRegister(self, address, nbytes, flags):
        if address % PAGE or nbytes % PAGE or nbytes <= 0 or not mapped(address, nbytes):
            self.wrong.append(f"register {address:#x} {nbytes}")
        taken = any(address < other + size and other < address + nbytes for other, size in self.pinned.items())
        result = self.answer("register", ALREADY if taken else 0)
        if result == 0:
            self.pinned[address] = nbytes
            self.flags.append(flags)
        return result

    def cudaHostUnregister(self, address):
        if address not in self.pinned or not mapped(address, self.pinned[address]):
            self.wrong.append(f"unregister {address:#x}")
        result = self.answer("unregister", 0 if address in self.pinned else 713)
        if result == 0:
            del self.pinned[address]
        return result

    def cudaGetErrorString(self, result):
        return b"out of luck"

    def cudaGetLastError(self):
        self.pending = 0


@pytest.fixture
def driver(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(_cuda, "_runtime", driver)
    monkeypatch.setattr(_cuda, "_PIECE", 2 * PAGE)
    yield driver
    assert not driver.wrong and not driver.pending
    assert not _cuda._pages and not _cuda._dropped and not _cuda._kept
    assert not _cuda._turn.locked()


@pytest.fixture
def three(daemon, driver):
    """A segment of three pieces."""
    return shmview.create("three", 5 * PAGE + 1)


def address_of(segment):
    return segment.cast("B").address


def test_pin(driver):
    seg = shmview.create("seg", 100)
    with shmview.pin(seg) as pinned:
        assert pinned.nbytes == 100 and not pinned.closed
        assert driver.pinned == {address_of(seg): PAGE} and driver.flags == [1]
        with pytest.raises(shmview.Busy):
            seg.close()
    assert pinned.closed and not driver.pinned
    pinned.close()
    assert driver.calls == ["register", "unregister"]
    seg.close()


def test_pieces(three, driver):
    begin, seen = address_of(three), []
    with shmview.pin(three, lambda *numbers: seen.append(numbers)) as pinned:
        assert pinned.nbytes == 5 * PAGE + 1
        assert driver.pinned == {begin: 2 * PAGE, begin + 2 * PAGE: 2 * PAGE, begin + 4 * PAGE: 2 * PAGE}
        assert seen == [(2 * PAGE, 6 * PAGE), (4 * PAGE, 6 * PAGE), (6 * PAGE, 6 * PAGE)]
    assert not driver.pinned
    del pinned
    odd = shmview.create("odd", 3 * PAGE)
    with shmview.pin(odd, progress=lambda *numbers: seen.append(numbers)):
        assert list(driver.pinned.values()) == [2 * PAGE, PAGE] and seen[3:] == [(2 * PAGE, 3 * PAGE), (3 * PAGE, 3 * PAGE)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_failed_register(three, driver, n):
    driver.fail = {n: 2}
    with pytest.raises(shmview.CudaError) as e:
        shmview.pin(three)
    place = address_of(three) + (n - 1) * 2 * PAGE
    assert str(e.value) == (f"pinning piece {n} of 3 of segment 'three', {2 * PAGE} bytes at {place:#x}: "
                            "out of luck (error 2)")
    assert e.value.number == 2 and not driver.pinned and not driver.pending
    assert driver.calls == n * ["register"] + (n - 1) * ["unregister"]
    three.close()


@pytest.mark.parametrize("n", [4, 5, 6])
def test_failed_unregister(three, driver, n):
    pinned = shmview.pin(three)
    driver.fail = {n: 999}
    with pytest.raises(shmview.CudaError) as e:
        pinned.close()
    left, = driver.pinned
    assert str(e.value) == (f"unpinning piece {7 - n} of 3 of segment 'three', {2 * PAGE} bytes at {left:#x}: "
                            "out of luck (error 999)")
    assert not pinned.closed and not driver.pending
    with pytest.raises(shmview.Busy):
        three.close()
    pinned.close()
    assert pinned.closed and not driver.pinned and len(driver.calls) == 7
    three.close()


def test_pin_after_failed_unregister(three, driver):
    pinned = shmview.pin(three)
    driver.fail = {5: 999}
    with pytest.raises(shmview.CudaError):
        pinned.close()
    with shmview.pin(three):  # pins what is missing
        assert len(driver.pinned) == 3 and driver.calls[6:] == 2 * ["register"]
    pinned.close()
    assert not driver.pinned


def test_failed_rollback(three, driver):
    driver.fail = dict.fromkeys(range(3, 6), 2)  # the third piece, and the first attempt to unpin the others
    with pytest.raises(shmview.CudaError, match="^pinning piece 3 of 3"):
        shmview.pin(three)
    assert len(driver.pinned) == 2
    with pytest.raises(shmview.Busy):  # the memory stays as long as it is pinned
        three.close()
    with shmview.pin(three):  # unpins what is left first
        assert len(driver.pinned) == 3 and driver.calls[5:] == 2 * ["unregister"] + 3 * ["register"]
    assert not driver.pinned
    three.close()


def test_failed_end(three, driver):
    """An object that ends without close() while the driver fails: the next call unpins."""
    pinned = shmview.pin(three)
    driver.fail = {4: 999}
    del pinned
    assert len(driver.pinned) == 1
    other = shmview.create("other", 1)
    with shmview.pin(other):
        assert list(driver.pinned) == [address_of(other)]
    three.close()


def test_no_finalizer(three, driver, monkeypatch):
    """A finalizer that a signal interrupts: the memory stays as long as it is pinned."""
    monkeypatch.setattr(_cuda.Pinned, "__del__", lambda self: None)
    shmview.pin(three)
    with pytest.raises(shmview.Busy):
        three.close()
    assert len(driver.pinned) == 3
    _cuda._unpin_all()  # at the end of Python
    assert not driver.pinned
    pages, = _cuda._pages.values()
    pages.drop(*pages.users.values())


def test_reset_device(three, driver):
    """After cudaDeviceReset() nothing is registered, and nothing is left to unpin."""
    pinned = shmview.pin(three)
    driver.pinned.clear()
    pinned.close()
    assert len(driver.wrong) == 3 and not driver.pending  # the driver's complaints
    driver.wrong.clear()
    three.close()


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("exception", [ValueError, KeyboardInterrupt])
def test_cancel(three, driver, monkeypatch, at, exception):
    monkeypatch.setattr(_cuda, "_drop_soon", lambda: None)  # as if another thread had the turn

    def progress(done, total):
        if done == at * 2 * PAGE:
            raise exception("enough")

    with pytest.raises(exception, match="enough") as e:  # e keeps all objects of the call
        shmview.pin(three, progress)
    assert not driver.pinned and driver.calls == at * ["register"] + at * ["unregister"]
    three.close()
    del e


def test_progress_cannot_pin(three, driver):
    other = shmview.create("other", 1)
    for call in lambda: shmview.pin(other), lambda: shmview.pin(three), shmview.pin(other).close:
        with pytest.raises(RuntimeError, match=r"progress\(\)"):
            shmview.pin(three, lambda *numbers: call())
        del call
    assert not driver.pinned


def test_readonly(three, driver):
    reader = shmview.attach("three", readonly=True)
    with shmview.pin(reader):
        assert driver.flags == 3 * [9] and address_of(reader) in driver.pinned
        with shmview.pin(three):  # another mapping
            assert driver.flags == 3 * [9] + 3 * [1]
    driver.flags.clear()
    driver.fail = {13: NOT_SUPPORTED, 15: NOT_SUPPORTED, 17: NOT_SUPPORTED}  # every first attempt
    with shmview.pin(reader):
        assert driver.flags == 3 * [1]
    driver.fail = {22: NOT_SUPPORTED, 23: NOT_SUPPORTED}
    with pytest.raises(shmview.CudaError) as e:
        shmview.pin(reader)
    assert e.value.number == NOT_SUPPORTED and not driver.pinned
    driver.fail = {24: NOT_SUPPORTED}
    with pytest.raises(shmview.CudaError):
        shmview.pin(three)
    assert driver.calls[23:] == ["register"]


def test_pinned_by_others(three, driver):
    begin = address_of(three)
    driver.pinned[begin + 2 * PAGE] = PAGE  # by another library
    with pytest.raises(shmview.CudaError, match="^pinning piece 2 of 3") as e:
        shmview.pin(three)
    assert e.value.number == ALREADY and driver.pinned == {begin + 2 * PAGE: PAGE}
    driver.pinned.clear()


@pytest.mark.parametrize("order", itertools.permutations(range(3)))
def test_handles(three, driver, order):
    """The handles of a process share a mapping, and so do their pins."""
    handles = [three, shmview.attach("three"), three]
    seen = []
    assert address_of(handles[1]) == address_of(three)
    pins = [shmview.pin(handle, lambda *numbers: seen.append(numbers)) for handle in handles]
    assert driver.calls == 3 * ["register"] and seen == 3 * [(2 * PAGE, 6 * PAGE), (4 * PAGE, 6 * PAGE), (6 * PAGE, 6 * PAGE)]
    with pytest.raises(KeyError):
        shmview.pin(three, lambda *numbers: {}[numbers])
    for i in order[:2]:
        pins[i].close()
        assert len(driver.pinned) == 3
    pins[order[2]].close()
    assert not driver.pinned
    for handle in handles:
        handle.close()


@pytest.mark.parametrize("order", itertools.permutations(["seg", "view", "pinned"]))
def test_ends(three, driver, order):
    names = {"seg": shmview.attach("three")}
    names["view"] = names["seg"].cast("B")
    names["pinned"] = shmview.pin(names["seg"])
    three.close()
    for name in order:
        assert bool(driver.pinned) == ("pinned" in names)
        del names[name]
    assert not driver.pinned and len(driver.calls) == 6


def test_cycle(three, driver):
    """A garbage collection may end them in any order."""
    seg = shmview.attach("three")
    three.close()
    for _ in range(3):
        ring = [seg, shmview.pin(seg), seg.cast("B")]
        ring.insert(0, ring)
        ring[2].ring = ring
        del ring, seg
        assert driver.pinned
        gc.collect()
        assert not driver.pinned
        seg = shmview.create("again", 5 * PAGE)


def test_with_block(driver):
    with shmview.create("seg", 100) as seg:
        pinned = shmview.pin(seg)
    assert seg.closed and driver.pinned
    shmview.trim()
    del seg
    pinned.close()
    assert not driver.pinned


@pytest.mark.parametrize("in_thread", [False, True])
def test_end_during_a_call(three, driver, in_thread):
    """An object that ends while a thread pins waits for nobody, and is unpinned at the end of the call."""
    other = shmview.create("other", 1)
    ended = [shmview.pin(other)]

    def end():
        driver.at_call = None
        if in_thread:
            thread = threading.Thread(target=ended.clear)
            thread.start()
            thread.join(PATIENCE)
            assert not thread.is_alive()
        else:
            ended.clear()
        assert list(driver.pinned) == [address_of(other)]
    driver.at_call = end
    with shmview.pin(three):
        assert list(driver.pinned) == [address_of(three) + i * 2 * PAGE for i in range(3)]
        other.close()


def test_handler(three, driver):
    """A handler of a signal that interrupts the end of an object must not wait for that end."""
    other, outcomes = shmview.pin(shmview.create("other", 1)), []
    pinned = shmview.pin(three)
    driver.at_call = lambda: outcomes.append(outcome(other.close))
    del pinned
    driver.at_call = None
    assert outcomes == 3 * [RuntimeError]


def test_threads(three, driver):
    handles = [three] + [shmview.attach("three") for _ in range(3)]
    barrier, failed = threading.Barrier(4), []

    def work(handle):
        barrier.wait()
        try:
            for i in range(50):
                pinned = shmview.pin(handle)
                assert len(driver.pinned) == 3
                if i % 3:
                    pinned.close()
                del pinned
        except BaseException as error:
            failed.append(error)
    threads = [threading.Thread(target=work, args=(handle,)) for handle in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and not driver.pinned


def test_fork(three, driver):
    """A child has no pins: it can end its objects, and pin for itself."""
    pinned, other, third = (shmview.pin(three) for _ in range(3))
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            n, driver.pinned = len(driver.calls), {}
            other.close()
            assert other.closed and len(driver.calls) == n
            with shmview.pin(three):
                assert len(driver.pinned) == 3
                del pinned
                gc.collect()
                assert len(driver.pinned) == 3
            assert not driver.pinned and len(driver.calls) == n + 6 and not driver.wrong
            _cuda._unpin_all()
            assert len(driver.calls) == n + 6
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert len(driver.pinned) == 3
    other.close()
    pinned.close()
    third.close()
    assert len(driver.calls) == 6


def test_fork_during_a_call(three, driver):
    """A child whose parent pins at the moment of the fork does not wait for the parent."""
    inside, go_on = threading.Event(), threading.Event()
    driver.at_call = lambda: (inside.set(), go_on.wait())
    thread = threading.Thread(target=lambda: shmview.pin(three).close())
    thread.start()
    inside.wait()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            driver.at_call = None
            with shmview.pin(three):
                status = len(driver.pinned) - 3
        finally:
            os._exit(status)
    go_on.set()
    thread.join()
    assert os.waitpid(pid, 0)[1] == 0 and not driver.pinned


def test_without_cuda(monkeypatch):
    seg = shmview.create("seg", 100)
    monkeypatch.setenv("SHMVIEW_CUDART", "/nowhere/libcudart.so")
    monkeypatch.setattr(_cuda, "_runtime", None)
    with pytest.raises(ImportError) as e:
        shmview.pin(seg)
    assert isinstance(e.value, shmview.NoCuda) and "/nowhere" in str(e.value)
    seg.close()
