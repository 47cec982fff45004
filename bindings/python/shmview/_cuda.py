# SPDX-License-Identifier: Apache-2.0
"""Pages of a segment as pinned memory, for copies to a GPU that need no staging buffer. The CUDA
run time is loaded when it is asked for; nothing is linked against it."""

import ctypes
import ctypes.util
import glob
import os
import sys

from ._errors import Error

_PORTABLE, _READ_ONLY = 1, 8  # cudaHostRegister*
_runtime = None


class NoCuda(Error, ImportError):
    """No CUDA run time could be loaded, or it finds no device; the text has what was tried."""


class CudaError(Error, RuntimeError):
    """A call of the CUDA run time failed. number: its cudaError_t."""
    number = 0


def _candidates():
    chosen = os.environ.get("SHMVIEW_CUDART")
    if chosen:
        return [chosen]
    found = [f"libcudart.so{suffix}" for suffix in (".13", ".12", ".11.0", "")]
    for place in sys.path:  # what pip installs beside torch
        found += sorted(glob.glob(f"{place}/nvidia/*/lib/libcudart.so.*"), reverse=True)
    return found + sorted(glob.glob("/usr/local/cuda*/lib64/libcudart.so*"), reverse=True)


def _load():
    global _runtime
    if _runtime is None:
        tried = []
        for name in _candidates():
            try:
                _runtime = ctypes.CDLL(name)
                break
            except OSError as error:
                tried.append(str(error))
        else:
            raise NoCuda("no CUDA run time: " + "; ".join(tried))
        _runtime.cudaGetErrorString.restype = ctypes.c_char_p
        _runtime.cudaHostRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
        _runtime.cudaHostUnregister.argtypes = [ctypes.c_void_p]
    return _runtime


def _check(runtime, what, result):
    if result == 0:
        return
    text = runtime.cudaGetErrorString(result).decode(errors="replace")
    runtime.cudaGetLastError()  # it is told here, and not to the next call
    error = CudaError(f"{what}: {text} (error {result})")
    error.number = result
    raise error


class Pinned:
    """Pages that are pinned until close(), or the end of a with statement. They keep the segment
    attached."""

    def __init__(self, segment):
        runtime = _load()
        self._memory = memoryview(segment)
        flags = _PORTABLE | (_READ_ONLY if self._memory.readonly else 0)
        # ctypes cannot take the address of read-only memory; a view of ours tells its own
        self._view = segment.cast("B")
        self._address = self._view.address
        self.nbytes = self._memory.nbytes
        try:
            _check(runtime, f"pinning {self.nbytes} bytes",
                   runtime.cudaHostRegister(self._address, self.nbytes, flags))
        except BaseException:
            self._memory.release()
            self._memory = self._view = None
            raise
        self._pid = os.getpid()

    @property
    def closed(self):
        return self._memory is None

    def close(self):
        """Unpins the pages; once more does no harm."""
        memory, self._memory, self._view = self._memory, None, None
        if memory is None:
            return
        if self._pid == os.getpid():  # a forked child has no part in its parent's pins
            _check(_runtime, "unpinning", _runtime.cudaHostUnregister(self._address))
        memory.release()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __del__(self):
        if getattr(self, "_memory", None) is not None:
            try:
                self.close()
            except Exception:
                pass


def pin(segment):
    """Registers the segment's pages with the CUDA run time as pinned memory, portable to all its
    contexts, and returns a Pinned, which unpins them at the end of a with statement.

    The run time is looked for as $SHMVIEW_CUDART, else libcudart.so, else beside torch.
    Raises NoCuda, an ImportError, where there is none, and CudaError."""
    return Pinned(segment)
