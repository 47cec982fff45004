# SPDX-License-Identifier: Apache-2.0
"""Drop-ins for multiprocessing.shared_memory: blocks with a name, and lists in them.

A SharedMemory is a segment without a lock, so shmview.attach(name) and programs in other languages
can attach it too. The end of a process that has attached a block does not affect the block. There is
no resource tracker, because the daemon notices the end of processes."""

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
    """Returns a random name, which is most likely unused."""
    return _SHM_NAME_PREFIX + secrets.token_hex(8)


def _root():
    """Returns the process id of the first process of this family, to which a block is entrusted; or 0
    if this process is the first. multiprocessing only records the parent and how many generations of
    children there are, so this walks up that many parents. If a fork server is among them, it may
    return the fork server, which lives as long as the first process."""
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


# Programs have code against faults of the standard library's tracker, which ends other processes'
# blocks. The code has nothing to do here, and must do no harm (docs/MIGRATION.md, "Delete these").

def _shm_unlink(name):
    _core.remove(name[1:] if name[:1] == "/" else name)


_posixshmem = types.SimpleNamespace(shm_unlink=_shm_unlink)


class _UntrackedName(str):
    """The name of a block, which the resource tracker never registers or unregisters: it prints a
    KeyError for each name that it does not know."""

    def __radd__(self, other):
        return _UntrackedName(str.__add__(other, self))


def _exempt_from_tracker():
    """Lets the resource tracker of this process ignore our names. Replaces the class of its only
    instance, because programs may have imported the bound methods before."""
    from multiprocessing import resource_tracker
    tracker = resource_tracker._resource_tracker
    base = type(tracker)
    if base.__module__ == __name__:
        return

    class Tracker(base):
        def _send(self, cmd, name, rtype):
            if not isinstance(name, _UntrackedName):
                super()._send(cmd, name, rtype)

    tracker.__class__ = Tracker


class SharedMemory:
    """SharedMemory(name=None, create=False, size=0, *, track=True)

    A block of shared memory with a name.

    name: 1 to 128 letters, digits, '.', '_' and '-', not beginning with a dot. None, if create is
    true: an unused name.
    create: whether to create a zeroed, committed block of size bytes. Otherwise attaches the block.
    track: for a new block, False lets it end only with unlink().

    Any process may call unlink(), which ends the block. Otherwise it ends when the first process of
    the multiprocessing family ends, also by a kill; a block of a child outlives the child. A process
    that has attached the block keeps the bytes.

    Raises FileExistsError, FileNotFoundError, ValueError; shmview.NoSpace, which is an OSError with
    ENOSPC and a MemoryError, if /dev/shm has too little space; other subclasses of shmview.Error."""

    _plain_name = None
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
        if not track or "_track" not in self.__dict__:  # a subclass may have set it
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
                pass  # the root has ended, or is in a pid namespace that the daemon cannot see

    def _open(self, name, size):
        while name is None:
            self._plain_name = _make_filename()
            try:
                self._create(self._plain_name, size)
                return
            except Exists:
                continue
        self._plain_name = name = name[1:] if name[:1] == "/" else name
        if self._flags & os.O_CREAT:
            try:
                self._create(name, size or 1)
                return
            except Exists:
                if self._flags & os.O_EXCL:
                    raise
        self._segment = _core.attach(name, access="write")

    def __del__(self):
        """Does nothing, for subclasses that call it: the last reference detaches the block."""

    @property
    def _name(self):
        _exempt_from_tracker()
        return self._plain_name and _UntrackedName(self._plain_name)

    @_name.setter
    def _name(self, name):
        self._plain_name = name

    def __reduce__(self):
        return self.__class__, (self.name, False, self.size)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.name!r}, size={self.size})"

    @property
    def buf(self):
        """A memoryview of the bytes; None after close()."""
        return self._buf

    @property
    def name(self):
        """The name of the block."""
        return self._plain_name

    @property
    def size(self):
        """The size of the block in bytes."""
        return self._size if self._segment is None else self._segment.size

    _size = 0

    def close(self):
        """Detaches the block from this process; it does not end. If other objects refer to buf
        itself, as a numpy.ndarray(buffer=...) does, the memory stays attached until they end.

        Raises BufferError while views of buf exist."""
        if self._segment is None:
            return
        self._size = self._segment.size
        # Two references to buf (the attribute and the argument) and three to the segment (and buf)
        # are our own. If there are more, releasing buf would break the object that has it.
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
        """Ends the block: removes its name at once, and frees its memory with the last attachment.

        Raises FileNotFoundError if the name was removed before."""
        _core.remove(self._plain_name)


# The bytes of a list: the head (magic, number of elements); a slot for each element (offset of its
# room, bytes of the room, bytes that are used, kind of the value); then the rooms. All numbers are
# little-endian. The standard library stores lengths otherwise and cuts trailing NULs off; this form
# keeps them.
_HEAD = struct.Struct("<8sQ")
_MAGIC = b"shmview\x01"
_SLOT = struct.Struct("<QQQ8s")
_ALIGNMENT = 8
_KINDS = {int: "q", float: "d", bool: "?", str: "s", bytes: "b", type(None): "n"}
_STRUCTS = {"q": struct.Struct("<q"), "d": struct.Struct("<d"), "?": struct.Struct("<?")}
_FORMATS = {"q": "q", "d": "d", "?": "xxxxxxx?", "n": "xxxxxx?x"}


def _encode(value):
    """Returns the kind of a value, and its bytes."""
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
    """Returns the room for a text: as much as the standard library gives one of that length, or more
    if its UTF-8 form needs it."""
    return max(_ALIGNMENT * (len(value) // _ALIGNMENT + 1), len(data) + -len(data) % _ALIGNMENT)


class ShareableList:
    """ShareableList(sequence=None, *, name=None)

    A list of fixed length in shared memory. Its elements are int (64 bits), float, bool, str, bytes
    or None. An element may be set to a value of another type. A str (as UTF-8) or bytes must fit into
    the room of the first value: the next multiple of 8 that is greater than its length, or more if
    its bytes need it. Texts keep NULs at their end.

    sequence: the elements. None: attaches the list called name, or, without a name, makes an empty
    one. name: the name of a new list. None: an unused name.

    shm is the SharedMemory that contains the list. The caller must close() and unlink() it."""

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
        """Checks the head of an attached list, because another program may have written the bytes.
        _slot() checks each slot at its use, because they may change later."""
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
        if kind not in _FORMATS and kind not in ("s", "b"):
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
        """The formats of the present values, as the module struct writes them."""
        return "".join(map(self._get_packing_format, range(len(self))))

    __class_getitem__ = classmethod(types.GenericAlias)

    def count(self, value):
        """Returns the number of elements that are equal to value."""
        return sum(value == each for each in self)

    def index(self, value):
        """Returns the index of the first element that is equal to value. Raises ValueError if there
        is none."""
        for position, each in enumerate(self):
            if value == each:
                return position
        raise ValueError("ShareableList.index(x): x not in list")
