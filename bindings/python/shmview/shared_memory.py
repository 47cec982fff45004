# SPDX-License-Identifier: Apache-2.0
"""As multiprocessing.shared_memory: blocks with a name, and lists in them.

A SharedMemory is a segment of the daemon, without a lock, so shmview.attach(name) and other
languages find it too. Who attaches one, and how that process ends, does nothing to it. There is no
resource tracker: the daemon knows who lives."""

import os
import secrets
import struct
import sys
import types
from multiprocessing import process

from . import _core
from ._errors import Denied, Exists, NotFound

__all__ = ["SharedMemory", "ShareableList"]

_USE_POSIX = True
_SHM_NAME_PREFIX = "psm_"
_O_CREX = os.O_CREAT | os.O_EXCL


def _make_filename():
    """A name that nobody has, most likely."""
    return _SHM_NAME_PREFIX + secrets.token_hex(8)


def _root():
    """The process that the family of this one began with, as far as multiprocessing tells; 0: this
    is it. Children of children are counted: a fork server in between is as good as the first."""
    parent = process.parent_process()
    if parent is None:
        return 0
    pid = parent.pid
    for _ in range(len(process.current_process()._identity) - 1):
        pid = _parent_of(pid) or pid
    return pid


def _parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


class SharedMemory:
    """SharedMemory(name=None, create=False, size=0, *, track=True)

    A block of shared memory with a name.

    name: 1 to 128 letters, digits, '.', '_', '-', no dot in front; None, with create: one that
    nobody has. create: make it, zeroed and committed, of size bytes; else attach it.

    A block ends with unlink(), by whomever, and at the latest when the process ends that
    multiprocessing's family began with, however that is: a child's block outlives the child.
    Who has it attached keeps the bytes. track=False, when it is created: only with unlink().

    Raises FileExistsError, FileNotFoundError, ValueError; shmview.NoSpace, an OSError with
    ENOSPC and a MemoryError, where /dev/shm has not enough; other subclasses of shmview.Error."""

    _name = None
    _segment = None
    _buf = None
    _flags = os.O_RDWR
    _mode = 0o600
    _track = True
    _outlives_child = True

    def __init__(self, name=None, create=False, size=0, *, track=True):
        if not size >= 0:
            raise ValueError("'size' must be a positive integer")
        if create:
            self._flags = _O_CREX | os.O_RDWR
            if size == 0:
                raise ValueError("'size' must be a positive number different from zero")
        if name is None and not self._flags & os.O_EXCL:
            raise ValueError("'name' can only be None if create=True")
        self._track = bool(track)
        self._open(name, size)
        self._buf = memoryview(self._segment)

    def _create(self, name, size):
        lifetime = "creator" if self._track else "manual"
        self._segment = _core.create(name, size, lifetime=lifetime, lock=False)
        root = _root() if self._track and self._outlives_child else 0
        if root:
            try:
                self._segment.entrust(root)
            except (Denied, NotFound):
                pass  # the root is gone, or not to be seen from where the daemon is

    def _open(self, name, size):
        while name is None:
            self._name = _make_filename()
            try:
                self._create(self._name, size)
                return
            except Exists:
                continue
        self._name = name = name[1:] if name[:1] == "/" else name
        if self._flags & os.O_CREAT:
            try:
                self._create(name, size or 1)
                return
            except Exists:
                if self._flags & os.O_EXCL:
                    raise
        self._segment = _core.attach(name, access="write")

    def __reduce__(self):
        return self.__class__, (self.name, False, self.size)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.name!r}, size={self.size})"

    @property
    def buf(self):
        """A memoryview of its bytes; None once it is closed."""
        return self._buf

    @property
    def name(self):
        """Its name."""
        return self._name

    @property
    def size(self):
        """Its size in bytes."""
        return self._size if self._segment is None else self._segment.size

    _size = 0

    def close(self):
        """Detaches it here; the block stays. Raises BufferError while views of buf are out.
        Where others refer to buf itself (numpy.ndarray(buffer=...) does), the memory stays
        until they do not."""
        if self._segment is None:
            return
        self._size = self._segment.size
        if sys.getrefcount(self._buf) > 2 or sys.getrefcount(self._segment) > 3:
            self._buf = self._segment = None
            return
        self._buf.release()
        try:
            self._segment.close()
        except BufferError:
            self._buf = memoryview(self._segment)
            raise
        self._buf = self._segment = None

    def unlink(self):
        """Ends the block: its name goes at once, its memory with the last who has it attached.
        Raises FileNotFoundError where that was done already."""
        _core.remove(self._name)


# The head of a list, and of each element: where its room begins, how much of it there is, how
# much is used, and what is in it.
_HEAD = struct.Struct("<8sQ")
_MAGIC = b"shmview\x01"
_SLOT = struct.Struct("<QQQ8s")
_ALIGNMENT = 8
_KINDS = {int: "q", float: "d", bool: "?", str: "s", bytes: "b", type(None): "n"}
_STRUCTS = {"q": struct.Struct("<q"), "d": struct.Struct("<d"), "?": struct.Struct("<?")}
_FORMATS = {"q": "q", "d": "d", "?": "xxxxxxx?", "n": "xxxxxx?x"}


def _encode(value):
    """Its kind and its bytes."""
    kind = _KINDS.get(type(value))
    if kind is None:
        raise TypeError("a ShareableList holds int, float, bool, str, bytes and None, not "
                        f"{type(value).__name__}")
    if kind in _STRUCTS:
        return kind, _STRUCTS[kind].pack(value)
    return kind, b"" if kind == "n" else value if kind == "b" else value.encode()


def _decode(kind, data):
    if kind in _STRUCTS:
        return _STRUCTS[kind].unpack(data)[0]
    return None if kind == "n" else data if kind == "b" else data.decode()


def _room(value, data):
    """What the standard library gives a text of that length, and enough in any case."""
    return max(_ALIGNMENT * (len(value) // _ALIGNMENT + 1), len(data) + -len(data) % _ALIGNMENT)


class ShareableList:
    """ShareableList(sequence=None, *, name=None)

    A list in shared memory whose length is fixed: of int (64 bits), float, bool, str, bytes and
    None. An element may be set to a value of another type; str (as UTF-8) and bytes up to the
    room that the first one got: the next multiple of 8 bytes that is more than its length, and
    holds it. They come back whole, NULs at the end as well.

    sequence: its elements; None: attach the list called name. name: of a new list; None: one that
    nobody has. shm is the SharedMemory that it lives in, whose close() and unlink() are
    the caller's."""

    def __init__(self, sequence=None, *, name=None):
        if sequence is None and name is not None:
            self.shm = SharedMemory(name)
            self._check()
            return
        self._write(sequence or (), lambda size: SharedMemory(name, create=True, size=size))

    def _write(self, sequence, make):
        """Writes a new list into the block that make(size) returns."""
        values = list(sequence)
        encoded = [_encode(value) for value in values]
        end = _HEAD.size + _SLOT.size * len(encoded)
        slots = []
        for value, (kind, data) in zip(values, encoded):
            room = _room(value, data) if kind in "sb" else _ALIGNMENT
            slots.append((end, room, len(data), kind.encode()))
            end += room
        self.shm = make(end)
        buf = self.shm.buf
        for i, (slot, (_, data)) in enumerate(zip(slots, encoded)):
            _SLOT.pack_into(buf, _HEAD.size + i * _SLOT.size, *slot)
            buf[slot[0]:slot[0] + len(data)] = data
        _HEAD.pack_into(buf, 0, _MAGIC, len(encoded))

    def _check(self):
        """What another wrote is looked at before it is believed."""
        size = self.shm.size
        magic, n = _HEAD.unpack_from(self.shm.buf) if size >= _HEAD.size else (b"", 0)
        if magic != _MAGIC or n > (size - _HEAD.size) // _SLOT.size:
            raise ValueError(f"no ShareableList is in '{self.shm.name}'")

    def __len__(self):
        n = _HEAD.unpack_from(self.shm.buf)[1]
        return min(n, (self.shm.size - _HEAD.size) // _SLOT.size)

    def _slot(self, position, what="index"):
        n = len(self)
        position = position + n if position < 0 else position
        if not 0 <= position < n:
            raise IndexError(f"{what} out of range")
        start, room, used, kind = _SLOT.unpack_from(self.shm.buf,
                                                    _HEAD.size + position * _SLOT.size)
        if used > room or start + room > self.shm.size:
            raise ValueError(f"element {position} lies outside of '{self.shm.name}'")
        kind = kind.rstrip(b"\0").decode("ascii", "replace")
        if kind not in _FORMATS and kind not in "sb":
            raise ValueError(f"element {position} of '{self.shm.name}' is of no known kind")
        return position, start, room, used, kind

    def __getitem__(self, position):
        _, start, room, used, kind = self._slot(position)
        return _decode(kind, bytes(self.shm.buf[start:start + used]))

    def __setitem__(self, position, value):
        position, start, room, used, kind = self._slot(position, "assignment index")
        kind, data = _encode(value)
        if len(data) > room:
            raise ValueError(f"{len(data)} bytes: the value exceeds available storage, of {room}")
        self.shm.buf[start:start + len(data)] = data
        _SLOT.pack_into(self.shm.buf, _HEAD.size + position * _SLOT.size, start, room, len(data),
                        kind.encode())

    def __reduce__(self):
        from functools import partial
        return partial(self.__class__, name=self.shm.name), ()

    def __repr__(self):
        return f"{self.__class__.__name__}({list(self)}, name={self.shm.name!r})"

    def _get_packing_format(self, position):
        _, start, room, used, kind = self._slot(position)
        return f"{room}s" if kind in "sb" else _FORMATS[kind]

    @property
    def format(self):
        """The formats of struct of the values that it holds now."""
        return "".join(map(self._get_packing_format, range(len(self))))

    __class_getitem__ = classmethod(types.GenericAlias)

    def count(self, value):
        """How many elements are equal to value."""
        return sum(value == each for each in self)

    def index(self, value):
        """The place of the first element that is equal to value. Raises ValueError."""
        for position, each in enumerate(self):
            if value == each:
                return position
        raise ValueError("ShareableList.index(x): x not in list")
