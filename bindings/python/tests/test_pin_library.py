# SPDX-License-Identifier: Apache-2.0
"""pin() with a run time that is loaded: a library that takes its place, and the one of a GPU if there is
one."""

import os
import shlex
import subprocess

import pytest

pytestmark = pytest.mark.usefixtures("daemon")

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
    seg = shmview.create(size=1)
    try:
        shmview.pin(seg)
        raise AssertionError
    except shmview.CudaError:
        seg.close()
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
