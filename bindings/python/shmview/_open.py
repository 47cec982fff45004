# SPDX-License-Identifier: Apache-2.0
"""create(), attach(), connect(): what opens a segment."""

import os
import secrets
import time

from . import _core
from ._errors import Limit, NotFound, Quota, Unsupported
from ._layouts import collect, names


def connect(path=None, *, start=True):
    """The Connection of this process to the daemon whose socket path is; None is the one that
    create() and attach() use by themselves. One of each path is made and kept.

    start: whether a session daemon is started where path is None and none runs.
    Raises NoDaemon, Invalid, Denied, ProtocolError."""
    if path is None:
        return _core._default_connection(start)
    from ._types import load_connection
    return load_connection(path)


def create(name=None, size=None, *, layouts=None, phase=None, lifetime="attached", lock=True,
           populate=False, connection=None, **more):
    """Creates the segment called name, zeroed, and attaches it for writing.

    name: 1 to 128 letters, digits, '.', '_', '-', no dot in front; None: one that nobody has.
    size: bytes, 1 or more; None: what the layouts need. All of it is committed at once, so that
    no later access can run out of memory.
    lifetime: 'attached' (it goes with its last attachment), 'manual' (when it is removed) or
    'creator' (with the connection that created it).
    lock: False: it has only its bytes: no lock, no phases, no changes.
    populate: every page is mapped now instead of at first touch.
    connection: a Connection; None: the process's own.

    Further keywords, and those in the dict layouts, are layouts that are declared at once: dicts
    of views, for example

        create("demo", float={"A": ("f4", 1000), "B": ("f4", (10, 10))},
                       int={"D": ("i2", 2000), "E": "i8"})

    or a structured dtype of numpy's each; see Segment.define(). phase: the one that is current
    from the beginning; None: none.

    Raises Exists (a FileExistsError), NoSpace (size, free and limit), Limit, Invalid, Denied,
    Disconnected; and for layouts what Segment.cast() raises."""
    resolved, end = collect(layouts, more)
    if size is None:
        if not end:
            raise TypeError("create() needs a size, or layouts that have one")
        size = end
    if name is None:
        name = f"py-{os.getpid()}-{secrets.token_hex(8)}"
    segment = _core.create(name, size, lifetime=lifetime, lock=lock, populate=populate,
                           connection=connection)
    try:
        for layout, views in resolved.items():
            segment._define(layout, views)
        segment._layouts = names(resolved)
        if phase is not None:
            with segment:
                segment.switch(phase)
    except BaseException:
        if lifetime != "attached":
            segment.remove()
        segment.close()
        raise
    return segment


def make(nbytes, format, shape=None, strides=None, offset=0, readonly=False, *, connection=None):
    """A View of a fresh segment of nbytes bytes, zeroed, whose name nobody has: shared memory for
    children and for whoever gets the pickled view. view.segment is the segment, with its lock.

    format, shape, strides, offset: as of Segment.cast(); without a shape, one dimension to the
    end. readonly: of this view; others of the segment may be written.
    Raises what create() and Segment.cast() raise."""
    segment = create(None, nbytes, connection=connection)
    return segment.cast(format, shape, strides=strides, offset=offset, readonly=readonly)


def attach(name, readonly=False, *, access=None, timeout=0, populate=False, connection=None):
    """Attaches the segment called name.

    readonly: its bytes cannot be changed, its lock can be taken; the same as access='read'.
    access: 'peek' (no lock, nothing can be disturbed), 'read' or 'write' (the default).
    timeout: seconds to wait for a segment of this name to be created, of which the daemon tells;
    None: as long as it takes. The GIL is free meanwhile, and signal handlers run.
    populate: every page is mapped now instead of at first touch.

    Raises NotFound (a FileNotFoundError; also where this user may not see it), Denied, NoSlot,
    Limit, Invalid, LayoutVersion, Disconnected."""
    if access is None:
        access = "read" if readonly else "write"
    elif readonly and access == "write":
        raise ValueError("access='write' is not readonly")

    def attempt():
        try:
            return _core.attach(name, access=access, populate=populate, connection=connection)
        except NotFound:
            return None

    if timeout != 0:
        found = attempt() or _await(name, timeout, connection, attempt)
        if found is not None:
            return found
    return _core.attach(name, access=access, populate=populate, connection=connection)


def _await(name, timeout, connection, attempt):
    """What attempt() returns once the segment is there; None if it is not in time."""
    end = None if timeout is None else time.monotonic() + timeout
    try:
        return _core.await_creation(name, timeout, connection, attempt)
    except (Limit, Quota, Unsupported):  # a daemon has only so many monitors
        pause = 0.001
    while end is None or time.monotonic() < end:
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
        found = attempt()
        if found is not None:
            return found
    return None
