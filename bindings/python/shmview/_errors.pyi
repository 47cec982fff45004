# SPDX-License-Identifier: Apache-2.0
from datetime import datetime
from typing import Optional

class Error(Exception):
    code: int

class Invalid(Error, ValueError): ...

class Denied(Error, PermissionError):
    name: Optional[str]

class NotFound(Error, FileNotFoundError):
    name: Optional[str]

class Exists(Error, FileExistsError):
    name: Optional[str]

class NoSpace(Error, OSError, MemoryError):
    name: Optional[str]
    size: Optional[int]
    free: Optional[int]
    limit: Optional[int]

class Limit(Error, OSError): ...

class NoLayout(Error, LookupError):
    layout: Optional[str]
    view: Optional[str]

class LayoutExists(Error, ValueError):
    layout: Optional[str]

class NoSlot(Error, OSError):
    name: Optional[str]

class NotAttached(Error, OSError): ...

class FormatError(Error, ValueError):
    format: Optional[str]
    at: Optional[int]

class Misaligned(Error, ValueError): ...

class IllSized(Error, ValueError): ...

class Bounds(Error, ValueError, IndexError): ...

class Overflow(Error, OverflowError, ValueError): ...

class Unsupported(Error, NotImplementedError): ...

class Quota(Error, OSError): ...

class TimedOut(Error, TimeoutError): ...

class NotOwner(Error, RuntimeError): ...

class Deadlock(Error, RuntimeError): ...

class NoLock(Error, RuntimeError): ...

class ReadOnly(Error, TypeError, BufferError): ...

class NoDaemon(Error, ConnectionError):
    path: Optional[str]

class Disconnected(Error, ConnectionError): ...

class ProtocolError(Error, ConnectionError): ...

class LayoutVersion(Error, OSError): ...

class Busy(Error, BufferError): ...

class NoMemory(Error, MemoryError): ...

class SystemCallFailed(Error, OSError): ...

class TooDeep(Error, RecursionError): ...

class StaleViewError(Error, RuntimeError): ...

class Lost(Error, RuntimeError): ...

class Interrupted(Error, InterruptedError): ...

class PeerFailed(Error, ConnectionError):
    rank: Optional[int]

class ConversionError(Error, OverflowError, ValueError): ...

class NotContiguous(Error, BufferError): ...

class StreamEnded(Error, EOFError):
    name: str

class OwnerDied(Error):
    name: str
    pid: int
    command: str
    generation: int
    phase: Optional[str]
    when: float
    @property
    def died_at(self) -> Optional[datetime]: ...

class WriterDied(Error):
    name: str
    pid: int
    command: str
    when: float
    @property
    def died_at(self) -> Optional[datetime]: ...
