# SPDX-License-Identifier: Apache-2.0
"""create(), attach(), connect(): what opens a segment."""

import time

from . import _core
from ._errors import NotFound


def connect(path=None, *, start=True):
    """The Connection of this process to the daemon whose socket path is; None is the one that
    create() and attach() use by themselves. One of each path is made and kept.

    start: whether a session daemon is started where path is None and none runs.
    Raises NoDaemon, Invalid, Denied, ProtocolError."""
    if path is None:
        return _core._default_connection(start)
    from ._types import load_connection
    return load_connection(path)


def create(name, size, *, lifetime="attached", lock=True, populate=False, connection=None):
    """Creates the segment called name, zeroed, and attaches it for writing."""
    return _core.create(name, size, lifetime=lifetime, lock=lock, populate=populate,
                        connection=connection)


def attach(name, readonly=False, *, access=None, timeout=0, populate=False, connection=None):
    """Attaches the segment called name.

    readonly: its bytes cannot be changed, its lock can be taken; the same as access='read'.
    access: 'peek' (no lock, nothing can be disturbed), 'read' or 'write' (the default).
    timeout: seconds to wait for a segment of this name to be created; None: as long as it takes.
    populate: every page is mapped now instead of at first touch.

    Raises NotFound (a FileNotFoundError; also where this user may not see it), Denied, NoSlot,
    Limit, Invalid, LayoutVersion, Disconnected."""
    if access is None:
        access = "read" if readonly else "write"
    elif readonly and access == "write":
        raise ValueError("access='write' is not readonly")
    end = None if timeout is None else time.monotonic() + timeout
    pause = 0.001
    while True:
        try:
            return _core.attach(name, access=access, populate=populate, connection=connection)
        except NotFound:
            left = pause if end is None else end - time.monotonic()
            if left <= 0:
                raise
        time.sleep(min(pause, left))
        pause = min(pause * 2, 0.05)
