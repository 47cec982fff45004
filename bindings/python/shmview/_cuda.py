# SPDX-License-Identifier: Apache-2.0
"""Pins the pages of a segment, so that copies to a GPU need no staging buffer. The first call loads
the CUDA run time through ctypes. Nothing is linked against it, because most machines have none."""

import atexit
import collections
import contextlib
import ctypes
import glob
import mmap
import os
import sys
import threading

from ._errors import Error

_PORTABLE, _READ_ONLY = 1, 8  # cudaHostRegister*
_NOT_SUPPORTED = 801
_GONE = (4, 713)  # the run time is being unloaded; the memory is not registered
_PAGE = mmap.PAGESIZE
_PIECE = 64 << 30  # one call pins less than 512 GiB, which is a limit of NVIDIA's driver
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
                runtime = ctypes.CDLL(name)
                break
            except OSError as error:
                tried.append(str(error))
        else:
            raise NoCuda("no CUDA run time: " + "; ".join(tried))
        runtime.cudaGetErrorString.restype = ctypes.c_char_p
        runtime.cudaHostRegister.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint]
        runtime.cudaHostUnregister.argtypes = [ctypes.c_void_p]
        _runtime = runtime  # now other threads may use it
    return _runtime


def _error(runtime, what, result):
    """Returns the exception for the result of a call."""
    text = runtime.cudaGetErrorString(result).decode(errors="replace")
    runtime.cudaGetLastError()  # resets the error, which the next caller would get otherwise
    error = CudaError(f"{what}: {text} (error {result})")
    error.number = result
    return error


class _Pages:
    """The pages of one mapping and their pins. The handles of a process with one access share a
    mapping, and CUDA refuses to pin a page twice, so several Pinned use one object of this class.

    A piece is in pieces from before the call that pins it until after the call that unpins it. users
    has a buffer for each Pinned, and these keep the pages mapped even if a signal interrupts a
    finalizer. Only a thread within _alone() or _drop_soon() uses this object."""

    def __init__(self, runtime, segment, start, end, readonly):
        self.runtime, self.start, self.end, self.readonly = runtime, start, end, readonly
        self.name, self.step = segment.name, _PIECE
        self.pieces, self.users = [], {}

    def place(self, address):
        count = -(-(self.end - self.start) // self.step)
        return (f"piece {(address - self.start) // self.step + 1} of {count} of segment '{self.name}', "
                f"{min(self.step, self.end - address)} bytes at {address:#x}")

    def pin_piece(self, address):
        nbytes = min(self.step, self.end - address)
        self.pieces.append(address)
        flags = _PORTABLE | (_READ_ONLY if self.readonly else 0)
        result = self.runtime.cudaHostRegister(address, nbytes, flags)
        if result == _NOT_SUPPORTED and self.readonly:
            # Devices that use the page tables of the processor pin read-only pages without the flag.
            self.runtime.cudaGetLastError()
            result = self.runtime.cudaHostRegister(address, nbytes, _PORTABLE)
        if result:
            self.pieces.pop()
            raise _error(self.runtime, f"pinning {self.place(address)}", result)

    def pin(self, progress):
        """Pins the pieces that are not pinned. The caller unpins them after an exception."""
        for address in range(self.start, self.end, self.step):
            if address not in self.pieces:
                self.pin_piece(address)
            if progress:
                progress(min(address + self.step, self.end) - self.start, self.end - self.start)

    def unpin(self):
        """Unpins all pieces. A piece whose call fails stays in pieces; raises the first error."""
        first = None
        for address in self.pieces[::-1]:
            result = self.runtime.cudaHostUnregister(address)
            if result:
                error = _error(self.runtime, f"unpinning {self.place(address)}", result)
                if result not in _GONE:
                    first = first or error
                    continue
            self.pieces.remove(address)
        if first:
            raise first

    def drop(self, memory):
        """Ends the use by the Pinned with this buffer, and unpins the pages after the last use. If
        that fails, the use goes on."""
        if id(memory) not in self.users:
            return
        if len(self.users) == 1:
            self.unpin()
            if _pages.get(self.start) is self:
                del _pages[self.start]
        del self.users[id(memory)]
        memory.release()


_pages = {}  # by address
_turn = threading.Lock()
_owner = None  # the thread that has it; None if there is no such thread
# Uses of objects that have ended without close(). A garbage collection ends them, perhaps in the
# thread that has the turn, so that their finalizers cannot wait for it.
_dropped = collections.deque()
_kept = []  # those whose pages could not be unpinned


@contextlib.contextmanager
def _alone():
    """Pins and unpins are made by one thread at a time."""
    global _owner
    if _owner == threading.get_ident():
        raise RuntimeError("progress(), or a handler of a signal that interrupts a pin, can neither pin nor unpin")
    try:
        with _turn:
            _owner = threading.get_ident()
            try:
                _dropped.extend(_kept)
                _kept.clear()
                _drop_all()
                yield
            finally:
                _owner = None
    finally:
        _drop_soon()


def _drop_all():
    while _dropped:
        pages, memory = _dropped[0]
        try:
            pages.drop(memory)
        except CudaError:
            _kept.append((pages, memory))
        _dropped.popleft()


def _drop_soon():
    """Drops what is in _dropped now or, if another call has the turn, at the end of that call."""
    global _owner
    while _dropped and _turn.acquire(blocking=False):
        try:
            _owner = threading.get_ident()
            _drop_all()
        finally:
            _owner = None
            _turn.release()


@atexit.register
def _unpin_all():
    with _alone():
        for pages in list(_pages.values()):
            try:
                pages.unpin()
            except CudaError:
                pass  # the end of the process unpins them


def _forget_pins():
    """In a forked child: the pins are those of the parent."""
    global _turn, _owner
    _turn, _owner = threading.Lock(), None
    for pages in _pages.values():
        pages.pieces.clear()
    _pages.clear()
    _dropped.clear()
    _kept.clear()


os.register_at_fork(after_in_child=_forget_pins)


class Pinned:
    """Pages of a segment that are pinned until close(), the end of a with statement or the end of the
    last reference. While they are pinned, the segment stays attached. nbytes is the size of the
    segment."""

    def __init__(self, segment, progress=None):
        runtime = _load()
        memory = memoryview(segment)
        # ctypes cannot return the address of read-only memory, but a View can.
        address = segment.cast("B").address
        self.nbytes = memory.nbytes
        start, end = address // _PAGE * _PAGE, -(-(address + self.nbytes) // _PAGE) * _PAGE
        with _alone():
            pages = _pages.setdefault(start, _Pages(runtime, segment, start, end, memory.readonly))
            self._pages, self._memory = pages, memory
            try:
                pages.users[id(memory)] = memory
                pages.pin(progress)
            except BaseException:
                self._memory = None
                _dropped.append((pages, memory))
                _drop_all()
                raise

    @property
    def closed(self):
        return self._memory is None

    def close(self):
        """Unpins the pages, unless other objects pin them. Closing again has no effect. If the CUDA
        run time fails, raises CudaError, and the pages count as pinned; another close() tries again.
        Raises RuntimeError within progress() and in a handler of a signal that interrupts a pin."""
        if self._memory is not None:
            with _alone():
                if self._memory is not None:  # another thread may have closed it
                    self._pages.drop(self._memory)
                    self._memory = None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def __del__(self):
        if getattr(self, "_memory", None) is not None:
            _dropped.append((self._pages, self._memory))
            self._memory = None
            _drop_soon()


def pin(segment, progress=None):
    """Registers the pages of the segment as pinned memory with the CUDA run time, for all of its
    contexts. Returns a Pinned, which unpins them at the end of a with statement, and keeps the segment
    attached until then. Several objects may pin one segment; the last one unpins it.

    The pages are pinned in pieces of at most 64 GiB, which takes about 0.1 s per GB. A copy of the CUDA
    run time must not cross from one piece to the next. After each piece, progress(done, total) is
    called with numbers of bytes. If it raises an exception, or if a piece cannot be pinned, the pieces
    before it are unpinned again. Other threads that pin or unpin wait in the meantime.

    The pins belong to this process: a forked child has none. The pages are unpinned before the
    segment is detached, at the latest when Python ends.

    The run time is $SHMVIEW_CUDART; otherwise libcudart.so; otherwise the one beside torch.

    Raises NoCuda, which is an ImportError, if there is none; CudaError if the pages cannot be
    pinned; RuntimeError within progress() and in a handler of a signal that interrupts a pin; what
    progress() raises."""
    return Pinned(segment, progress)
