# SPDX-License-Identifier: Apache-2.0
"""pin(), with a driver that fails on demand, and on a GPU if there is one."""

import gc
import itertools
import os
import shlex
import subprocess
import sys
import threading

import pytest

import shmview
from conftest import PATIENCE
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


# --- A library, as the run time is one -----------------------------------------

FAKE = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uintptr_t pinned[64];
static size_t sizes[64];
static unsigned n_calls;
static int pending;

static int answer(int error)
{
    const char *fail = getenv("FAIL");
    if (fail && ++n_calls == (unsigned)atoi(fail))
        error = 2;
    return pending = error;
}

int cudaHostRegister(void *p, size_t size, unsigned flags)
{
    int i = 0, r = answer(msync(p, size, MS_ASYNC) || (flags & ~9u) ? 1 : 0);
    while (pinned[i])
        i++;
    if (!r)
        pinned[i] = (uintptr_t)p, sizes[i] = size;
    return r;
}

int cudaHostUnregister(void *p)
{
    int i = 0, r;
    while (i < 64 && pinned[i] != (uintptr_t)p)
        i++;
    if (i == 64)
        return answer(713);
    r = answer(0);
    if (msync(p, sizes[i], MS_ASYNC))
        printf("unmapped before it is unpinned\n");
    if (!r)
        pinned[i] = 0;
    return r;
}

const char *cudaGetErrorString(int error) { return error == 2 ? "no room" : "other"; }

int cudaGetLastError(void)
{
    int r = pending;
    pending = 0;
    return r;
}

__attribute__((destructor)) static void report(void)
{
    int n = 0;
    for (int i = 0; i < 64; i++)
        n += pinned[i] != 0;
    printf("left %d pending %d\n", n, pending);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cuda")
    (folder / "fake.c").write_text(FAKE)
    done = subprocess.run([*shlex.split(os.environ.get("CC") or "cc"), "-shared", "-fPIC", "-o", folder / "libcudart.so",
                           folder / "fake.c"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()
    return str(folder / "libcudart.so")


EXIT = """
import atexit, builtins, os, sys, shmview
import shmview._cuda as _cuda
_cuda._PIECE = os.sysconf("SC_PAGESIZE")
seg = shmview.create(size=3 * _cuda._PIECE)
reader = shmview.attach(seg.name, readonly=True)
"""


@pytest.mark.parametrize("end", [
    "pinned = shmview.pin(seg)",
    "builtins.pinned = [shmview.pin(reader)]; builtins.pinned.append(builtins.pinned)",
    "pinned = shmview.pin(seg); pinned.seg = seg; seg = pinned; os.fork()",
    "pinned = shmview.pin(seg); atexit.register(lambda: pinned.close())",
    "shmview.pin(seg); shmview.pin(reader); seg.close()",
    "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(shmview.pin(seg)))",  # lives for ever
])
def test_exit(run, library, monkeypatch, end):
    """At the end of Python nothing is pinned, and nothing was unmapped before."""
    monkeypatch.setenv("SHMVIEW_CUDART", library)
    lines = run(EXIT + end).splitlines()
    # a forked child has a copy of the library's table, and unpins nothing
    assert sorted(lines) == ["left 0 pending 0"] + ["left 3 pending 0"] * ("fork" in end)


@pytest.mark.parametrize("n", range(1, 7))
def test_library(run, library, monkeypatch, n):
    monkeypatch.setenv("SHMVIEW_CUDART", library)
    monkeypatch.setenv("FAIL", str(n))
    lines = run(EXIT + """
try:
    with shmview.pin(reader):
        pass
except shmview.CudaError as error:
    print(error)
""").splitlines()
    assert len(lines) == 2 and lines[0].endswith(": no room (error 2)") and lines[1] == "left 0 pending 0"
    assert lines[0].startswith(f"pinning piece {n} of 3 " if n <= 3 else f"unpinning piece {7 - n} of 3 ")


def test_without_cuda(monkeypatch):
    seg = shmview.create("seg", 100)
    monkeypatch.setenv("SHMVIEW_CUDART", "/nowhere/libcudart.so")
    monkeypatch.setattr(_cuda, "_runtime", None)
    with pytest.raises(ImportError) as e:
        shmview.pin(seg)
    assert isinstance(e.value, shmview.NoCuda) and "/nowhere" in str(e.value)
    seg.close()


# --- On a GPU --------------------------------------------------------------------

# In a process of its own, because CUDA opens descriptors that stay.
GPU = """
import ctypes, sys, shmview
import shmview._cuda as _cuda

def skip(why):
    print(why)
    sys.exit()

try:
    gpu = _cuda._load()
except shmview.NoCuda:
    skip("no CUDA run time")
n = ctypes.c_int()
if gpu.cudaGetDeviceCount(ctypes.byref(n)) or n.value == 0 or gpu.cudaFree(None):
    skip("no CUDA device")

def pinned_pieces(begin):
    flags = ctypes.c_uint()
    found = [gpu.cudaHostGetFlags(ctypes.byref(flags), ctypes.c_void_p(begin + i * step)) == 0 for i in range(4)]
    gpu.cudaGetLastError()
    return found

readonly = bool(int(sys.argv[1]))
step = _cuda._PIECE = 1 << 20
nbytes = 3 * step + 5
seg = shmview.create(size=nbytes)
data = seg.cast("B")
data[:] = bytes(i % 251 for i in range(nbytes))
used = shmview.attach(seg.name, readonly=readonly)
begin = used.cast("B").address
"""

COPIES = """
seen = []
try:
    pinned = shmview.pin(used, lambda *numbers: seen.append(numbers))
except shmview.CudaError as error:
    assert gpu.cudaPeekAtLastError() == 0
    if readonly and error.number == 801:
        skip("the device cannot pin read-only memory")
    raise
assert len(seen) == 4 and seen[-1][0] == seen[-1][1] and all(pinned_pieces(begin))
device, back = ctypes.c_void_p(), ctypes.create_string_buffer(nbytes)
assert gpu.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(nbytes)) == 0
for place in range(0, nbytes, step):  # to the device and back
    size = ctypes.c_size_t(min(step, nbytes - place))
    there = ctypes.c_void_p(device.value + place)
    assert gpu.cudaMemcpyAsync(there, ctypes.c_void_p(begin + place), size, 1, None) == 0
    assert gpu.cudaMemcpyAsync(ctypes.c_void_p(ctypes.addressof(back) + place), there, size, 2, None) == 0
assert gpu.cudaDeviceSynchronize() == 0 and gpu.cudaFree(device) == 0
assert back.raw == data.tobytes()
with shmview.pin(used):
    pinned.close()
    assert all(pinned_pieces(begin))
assert not any(pinned_pieces(begin))
pinned = shmview.pin(used)
del used
assert all(pinned_pieces(begin))
del pinned
assert not any(pinned_pieces(begin)) and gpu.cudaPeekAtLastError() == 0
print("done")
"""

ROLLBACK = """
flags = 1 | (8 if readonly else 0)
if gpu.cudaHostRegister(begin + 2 * step, step, flags) == 801:  # as another library
    skip("the device cannot pin read-only memory")
try:
    shmview.pin(used)
except shmview.CudaError as error:
    assert error.number == 712 and str(error).startswith("pinning piece 3 of 4"), error
else:
    raise AssertionError
assert gpu.cudaPeekAtLastError() == 0 and pinned_pieces(begin) == [False, False, True, False]
assert gpu.cudaHostUnregister(begin + 2 * step) == 0
try:
    shmview.pin(used, lambda done, total: {}[done - step])
except KeyError:
    pass
assert not any(pinned_pieces(begin)) and gpu.cudaPeekAtLastError() == 0
print("done")
"""


@pytest.mark.parametrize("readonly", [0, 1])
@pytest.mark.parametrize("part", [COPIES, ROLLBACK], ids=["copies", "rollback"])
def test_gpu(run, part, readonly):
    printed = run(GPU + part, readonly).strip()
    if printed != "done":
        pytest.skip(printed)
