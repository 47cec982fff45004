# SPDX-License-Identifier: Apache-2.0
"""The exceptions. Every one is an Error; most are what Python's own call of that kind raises as well."""

import errno
import re


class Error(Exception):
    """What libshmview refuses. code is its SHMVIEW_ERR_* number (0: none), str() the whole
    story with names and figures. What the call was about is in attributes as well, name of
    the segment and so on, as each class says."""

    code = 0


class Invalid(Error, ValueError):
    """An argument that cannot be right."""
    code = 1


class Denied(Error, PermissionError):
    """The daemon does not allow it. name: of the segment."""
    code, number = 2, errno.EACCES


class NotFound(Error, FileNotFoundError):
    """There is no such segment, or none that this user may see. name: of the segment."""
    code, number = 3, errno.ENOENT


class Exists(Error, FileExistsError):
    """A segment of this name exists already. name: of the segment."""
    code, number = 4, errno.EEXIST


class NoSpace(Error, OSError, MemoryError):
    """Not enough shared memory. name; size: bytes that were asked for; free and limit: bytes, or
    None where the daemon did not say."""
    code, number = 5, errno.ENOSPC
    free = limit = None


class Limit(Error, OSError):
    """A limit is exceeded: of segments, layouts, attachments; the text has it."""
    code, number = 6, errno.EDQUOT


class NoLayout(Error, LookupError):
    """No such layout or view. layout, view: what was asked for."""
    code = 7


class LayoutExists(Error, ValueError):
    """A layout of this name exists already. layout: its name."""
    code = 8


class NoSlot(Error, OSError):
    """Every slot of the segment's lock is taken. name: of the segment."""
    code, number = 9, errno.EUSERS


class NotAttached(Error, OSError):
    """The daemon does not know the attachment."""
    code, number = 10, errno.ENOTCONN


class FormatError(Error, ValueError):
    """Not a format of an element. format: the text; at: the character, from 0."""
    code = 11


class Misaligned(Error, ValueError):
    """A view that is not aligned to its element; the text names the dimension and the byte."""
    code = 12


class IllSized(Error, ValueError):
    """Bytes that do not divide into whole elements, or a shape for another number of them."""
    code = 13


class Bounds(Error, ValueError, IndexError):
    """Outside: of the segment, or of the view."""
    code = 14


class Overflow(Error, OverflowError, ValueError):
    """A size that does not fit."""
    code = 15


class Unsupported(Error, NotImplementedError):
    """The daemon is too old for it."""
    code = 16


class Quota(Error, OSError):
    """A quota of this user is exceeded; the text has the figures."""
    code, number = 17, errno.EDQUOT


class TimedOut(Error, TimeoutError):
    """The time is over. name: of the segment."""
    code, number = 32, errno.ETIMEDOUT


class NotOwner(Error, RuntimeError):
    """The calling thread does not hold the lock."""
    code = 33


class Deadlock(Error, RuntimeError):
    """The call would wait for itself."""
    code = 34


class NoLock(Error, RuntimeError):
    """The segment, or this access to it, has no lock."""
    code = 35


class ReadOnly(Error, TypeError, BufferError):
    """A change of read-only memory, or its export as writable, was refused."""
    code = 36


class NoDaemon(Error, ConnectionError):
    """No shmviewd could be reached. path: the socket that the caller named, None for the default."""
    code, number = 37, errno.ECONNREFUSED


class Disconnected(Error, ConnectionError):
    """The daemon closed the connection."""
    code, number = 38, errno.ECONNRESET


class ProtocolError(Error, ConnectionError):
    """What answers does not keep the protocol."""
    code, number = 39, errno.EPROTO


class LayoutVersion(Error, OSError):
    """Shared memory of a layout version that this library does not know, or truncated."""
    code, number = 40, errno.EPROTONOSUPPORT


class Busy(Error, BufferError):
    """Still in use; the text says by how many."""
    code = 41


class NoMemory(Error, MemoryError):
    """Out of (private) memory."""
    code = 42


class SystemCallFailed(Error, OSError):
    """A system call failed; the text names it."""
    code, number = 43, errno.EIO


class TooDeep(Error, RecursionError):
    """The lock is held too many times by this thread."""
    code = 44


class StaleViewError(Error, RuntimeError):
    """The view is of a past phase, or of one that has not come. Open it anew."""
    code = 45


class Lost(Error, RuntimeError):
    """The lock was lost while it was held, because the attachment had ended: others may have written.
    close() the segment and attach it again."""
    code = 48


class Interrupted(Error, InterruptedError):
    """A wait was ended by shmview_on_wait(). A signal handler that raises ends a wait with its own
    exception, so only programs that call shmview_on_wait() themselves see this one."""
    code, number = 49, errno.EINTR


class ConversionError(Error, OverflowError, ValueError):
    """A value that the element's type cannot hold without loss."""
    code = 46


class NotContiguous(Error, BufferError):
    """The view's strides are more than the consumer can bear."""
    code = 47


class OwnerDied(Error):
    """The last exclusive holder of a lock died inside: the bytes may be half written.

    name: of the segment; pid, command: who it was (0 and '' where nobody knows any more);
    generation, phase: of the phase it died in; when: seconds, as time.monotonic() has them.
    phase is None where that is not the current one any more, or where the Segment does not know
    its name yet: taking a lock asks nobody. Segment.phase asks the daemon for it."""

    name, pid, command, generation, phase, when = "", 0, "", 0, None, 0.0


__all__ = [name for name, c in list(globals().items()) if isinstance(c, type) and
           issubclass(c, Error)]
_by_code = {globals()[name].code: globals()[name] for name in __all__}


def make(code, text, facts):
    """An exception for the extension module to raise."""
    cls = _by_code.get(code, Error)
    made = cls(cls.number, text) if issubclass(cls, OSError) else cls(text)
    if made.code != code:
        made.code = code
    if facts:
        made.__dict__.update(facts)
    if cls is NoSpace:
        figures = re.search(r"(\d+) are free, .* holds (\d+)", text)
        if figures:
            made.free, made.limit = map(int, figures.groups())
    return made


def make_death(name, pid, generation, phase, command, when):
    """An OwnerDied for the extension module to raise."""
    who = f"process {pid}" if pid else "an unknown process"
    if command:
        who += f" ({command})"
    made = OwnerDied(f"{who} died while it held the lock of '{name}'; see Segment.recover()")
    made.__dict__.update(name=name, pid=pid, command=command, generation=generation, phase=phase,
                         when=when)
    return made
