# SPDX-License-Identifier: Apache-2.0
"""The exceptions. Each is an Error, and most are also an exception of Python's own, so that code that
catches FileNotFoundError or BufferError works without change."""

import errno
import os
import time


class Error(Exception):
    """The base of all errors of shmview. code is the SHMVIEW_ERR_* number, or 0 if there is none.
    str() has the names and figures. The facts of the call, such as the name of the segment, are
    attributes, which each class documents. A fact that is not known is None."""

    code = 0


class Invalid(Error, ValueError):
    """An argument is wrong."""
    code = 1


class Denied(Error, PermissionError):
    """This user may not do that. name: the name of the segment."""
    code, number = 2, errno.EACCES
    name = None


class NotFound(Error, FileNotFoundError):
    """There is no such segment, or this user may not see it. name: the name of the segment."""
    code, number = 3, errno.ENOENT
    name = None


class Exists(Error, FileExistsError):
    """A segment of this name exists already. name: its name."""
    code, number = 4, errno.EEXIST
    name = None


class NoSpace(Error, OSError, MemoryError):
    """There is too little shared memory. name: the name of the segment; size: the bytes that were
    requested; free, limit: bytes, or None if the daemon did not report them."""
    code, number = 5, errno.ENOSPC
    name = size = free = limit = None


class Limit(Error, OSError):
    """A limit of segments, layouts or attachments is exceeded. The text names it."""
    code, number = 6, errno.EDQUOT


class NoLayout(Error, LookupError):
    """There is no such layout or view. layout, view: the names that were requested."""
    code = 7
    layout = view = None


class LayoutExists(Error, ValueError):
    """A layout of this name exists already. layout: its name."""
    code = 8
    layout = None


class NoSlot(Error, OSError):
    """Every slot of the segment's lock is taken. name: the name of the segment."""
    code, number = 9, errno.EUSERS
    name = None


class NotAttached(Error, OSError):
    """The daemon does not know the attachment."""
    code, number = 10, errno.ENOTCONN


class FormatError(Error, ValueError):
    """A text is not a format. format: the text; at: the index of the wrong character."""
    code = 11
    format = at = None


class Misaligned(Error, ValueError):
    """A view of a native format is not aligned to its elements. The text names the dimension and the byte."""
    code = 12


class IllSized(Error, ValueError):
    """The bytes do not divide into whole elements, or the shape has another number of elements."""
    code = 13


class Bounds(Error, ValueError, IndexError):
    """A view does not fit into its segment, or an index into its view."""
    code = 14


class Overflow(Error, OverflowError, ValueError):
    """A size or stride does not fit into 63 bits."""
    code = 15


class Unsupported(Error, NotImplementedError):
    """The daemon is too old for the request."""
    code = 16


class Quota(Error, OSError):
    """A quota of this user is exceeded. The text has the figures."""
    code, number = 17, errno.EDQUOT


class TimedOut(Error, TimeoutError):
    """The timeout has passed."""
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
    path = None


class Disconnected(Error, ConnectionError):
    """The daemon closed the connection."""
    code, number = 38, errno.ECONNRESET


class ProtocolError(Error, ConnectionError):
    """The process at the other end of the socket breaks the protocol."""
    code, number = 39, errno.EPROTO


class LayoutVersion(Error, OSError):
    """The lock of the segment is damaged, or belongs to a version that this library does not know."""
    code, number = 40, errno.EPROTONOSUPPORT


class Busy(Error, BufferError):
    """The object is still in use. The text has the number of users."""
    code = 41


class NoMemory(Error, MemoryError):
    """The process is out of private memory."""
    code = 42


class SystemCallFailed(Error, OSError):
    """A system call failed. The text names it."""
    code, number = 43, errno.EIO


class TooDeep(Error, RecursionError):
    """The lock is held too many times by this thread."""
    code = 44


class StaleViewError(Error, RuntimeError):
    """The view belongs to another phase than the current one. Open it again."""
    code = 45


class Lost(Error, RuntimeError):
    """The attachment has ended, and its locks with it. If the lock was held, others may have written.
    Close the segment and attach it again."""
    code = 48


class Interrupted(Error, InterruptedError):
    """A function given to shmview_on_wait() has ended a wait. A signal handler that raises ends it
    with its own exception, so this one occurs only if C code calls shmview_on_wait() itself."""
    code, number = 49, errno.EINTR


class PeerFailed(Error, ConnectionError):
    """Another process of an MPI job has failed. Only calls of shmview.mpi have this error. rank: its rank
    in the communicator of the job, or None if that is not known."""
    code, number = 50, errno.ECONNRESET
    rank = None


class ConversionError(Error, OverflowError, ValueError):
    """The type of the element cannot hold the value without loss."""
    code = 46


class NotContiguous(Error, BufferError):
    """The consumer does not accept the strides of the view."""
    code = 47


class StreamEnded(Error, EOFError):
    """The writer has ended the stage of a stream, and this reader has taken all frames. name: the name of
    the stream."""

    name = ""


class OwnerDied(Error):
    """The last owner of the lock died inside, or called unlock(repaired=False), so the bytes may be
    half written. The caller does not hold the lock; see Segment.recover().

    name: the name of the segment. pid, command: the process of that owner, or 0 and '' if it is no
    longer known. generation, phase: the phase in which it died. when: the time of the death in
    seconds, on the clock of time.monotonic(); 0 if it is not known, as that of a thread, or if
    nobody has died. died_at: the same time as a datetime of this machine's time zone; None for 0.

    phase is None if another phase is current now, or if the Segment does not know the name yet,
    because taking a lock sends no request to the daemon. Segment.phase sends one."""

    name, pid, command, generation, phase, when = "", 0, "", 0, None, 0.0

    @property
    def died_at(self):
        if not self.when:
            return None
        from datetime import datetime, timedelta
        return datetime.now().astimezone() - timedelta(seconds=time.monotonic() - self.when)


class WriterDied(Error):
    """A writer of a stream has died. No reader sees a frame that it had not published. Each Stream reports
    it once; the next call goes on with the frames of the next writer.

    name: the name of the stream. pid, command: the process that died, or 0 and '' if that is no longer
    known. when: the time at which it was noticed, in seconds on the clock of time.monotonic(). died_at:
    the same time as a datetime of this machine's time zone."""

    name, pid, command, when = "", 0, "", 0.0
    died_at = OwnerDied.died_at


__all__ = [name for name, c in list(globals().items()) if isinstance(c, type) and
           issubclass(c, Error)]
_by_code = {globals()[name].code: globals()[name] for name in __all__}


def make(code, text, facts):
    """Makes an exception, which the extension module raises. facts: a dict of attributes or None."""
    cls = _by_code.get(code, Error)
    made = cls(cls.number, text) if issubclass(cls, OSError) else cls(text)
    if made.code != code:
        made.code = code
    if facts:
        made.__dict__.update(facts)
    if cls is NoSpace:
        import re
        figures = re.search(r"(\d+) are free, .* (?:holds?|may have) (\d+)", text)
        if figures:
            made.free, made.limit = map(int, figures.groups())
    return made


def _who(pid, command):
    who = "a thread of this process" if pid == os.getpid() else f"process {pid}" if pid else "an unknown process"
    return f"{who} ({command})" if command else who


def make_death(name, pid, generation, phase, command, when):
    """Makes an OwnerDied, which the extension module raises or returns."""
    made = OwnerDied(f"{_who(pid, command)} died while it held the lock of '{name}'"
                     f"{'' if when else ', or gave it back unrepaired'}; see Segment.recover()")
    made.__dict__.update(name=name, pid=pid, command=command, generation=generation, phase=phase,
                         when=when)
    return made


def make_writer_death(name, pid, command, when):
    """Makes a WriterDied, which the extension module raises or returns."""
    made = WriterDied(f"{_who(pid, command)}, a writer of stream '{name}', died")
    made.__dict__.update(name=name, pid=pid, command=command, when=when)
    return made


def make_end(name):
    """Makes a StreamEnded, which the extension module raises."""
    made = StreamEnded(f"stream '{name}' has ended")
    made.name = name
    return made
