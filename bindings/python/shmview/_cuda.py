# SPDX-License-Identifier: Apache-2.0
"""Pins the pages of a segment, so that copies to a GPU need no staging buffer. The first call loads
the CUDA run time through ctypes. Nothing is linked against it, because most machines have none."""

import ctypes
import ctypes.util
import glob
import os
import sys

from ._errors import Error

_PORTABLE, _READ_ONLY = 1, 8  # cudaHostRegister*
_runtime = None


class NoCuda(Error, ImportError):
    """No CUDA run time could be loaded. The text names the libraries that were tried."""


class CudaError(Error, RuntimeError):
    """A call of the CUDA run time failed. number is its cudaError_t."""
    number = 0


def _candidates():
    chosen = os.environ.get("SHMVIEW_CUDART")
    if chosen:
        return [chosen]
    found = [f"libcudart.so{suffix}" for suffix in (".13", ".12", ".11.0", "")]
    for place in sys.path:  # pip installs the run time of torch there
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
    runtime.cudaGetLastError()  # resets the error, which the next caller would get otherwise
    error = CudaError(f"{what}: {text} (error {result})")
    error.number = result
    raise error


class Pinned:
    """Pages of a segment that are pinned until close() or the end of a with statement. While they
    are pinned, the segment stays attached. nbytes is their size."""

    def __init__(self, segment):
        runtime = _load()
        self._memory = memoryview(segment)
        flags = _PORTABLE | (_READ_ONLY if self._memory.readonly else 0)
        # ctypes cannot return the address of read-only memory, but a View can.
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
        """Unpins the pages. Closing again has no effect."""
        memory, self._memory, self._view = self._memory, None, None
        if memory is None:
            return
        if self._pid == os.getpid():  # a forked child must not undo its parent's pins
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
    """Registers the pages of the segment as pinned memory with the CUDA run time, for all of its
    contexts. Returns a Pinned, which unpins them at the end of a with statement.

    The run time is $SHMVIEW_CUDART; otherwise libcudart.so; otherwise the one beside torch.

    Raises NoCuda, which is an ImportError, if there is none; CudaError if the pages cannot be
    pinned."""
    return Pinned(segment)
