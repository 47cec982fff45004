# SPDX-License-Identifier: Apache-2.0
"""create(), make(), attach() and connect(). They add layouts, unused names and timeouts to the
functions of the extension module."""

import os
import time

from . import _core
from ._errors import Limit, NotFound, Quota, Unsupported
from ._layouts import _numbers, _split_dtype, collect, names, resolve


def connect(path=None, *, start=True):
    """Returns the Connection of this process to the daemon with the socket path. None stands for the
    default connection, which create() and attach() use. There is one Connection for each path; later
    calls return it again.

    start: whether to start a session daemon if path is None and no daemon runs.

    Raises NoDaemon, Invalid, Denied, ProtocolError."""
    if path is None:
        return _core._default_connection(start)
    from ._types import load_connection
    return load_connection(path)


def create(name=None, size=None, *, layouts=None, phase=None, lifetime="attached", lock=True,
           populate=False, mode=None, owner=None, group=None, entries=None, label=None,
           connection=None, backing=None, own_memory=False, huge=False, numa=None, **more):
    """Creates a zeroed segment, attaches it for writing, and returns the Segment.

    name: 1 to 128 letters, digits, '.', '_' and '-', not beginning with a dot. None: an unused name.
    size: the size in bytes, 1 or more. None: the size that the layouts need. All of the memory is
    committed now, so that no later access can fail for lack of it.
    lifetime: when the segment ends: 'attached' (with its last attachment), 'manual' (when it is
    removed) or 'creator' (with the client that created it).
    lock: False for a segment that has only bytes, and no lock, phases or changes.
    populate: whether to map every page now instead of at its first use.
    mode, owner, group, entries: the users who may use the segment, see set_access(). None: the mode that the
    daemon is configured with (0o600 by default), and this user and group.
    label: a text for people, which stats() and `shmviewctl show` have: at most 63 bytes of UTF-8
    without control characters. None: none.
    connection: a Connection. None: the default connection of the process.
    backing: 'file' (in /dev/shm) or 'sealed' (of a size that nobody can change; systemd or a keeper process
    holds it while no daemon runs). None: what the daemon is configured with, 'file' by default.
    own_memory: whether this process makes the memory, which is sealed then, and hands it to the daemon. The
    kernel charges it to the control group of this process instead of the daemon's.
    huge: True for huge pages where there are some, 'required' to raise NoSpace where there are none.
    numa: 'local' (the node of this thread), 'interleaved' (all nodes in turn) or the number of a node.
    Segment.placement has what the segment got.

    Further keywords, and the entries of the dict layouts, are layouts to declare: dicts of views, for
    example

        create("demo", float={"A": ("f4", 1000), "B": ("f4", (10, 10))},
                       int={"D": ("i2", 2000), "E": "i8"})

    or structured dtypes of numpy; see Segment.define(). phase: the layout to make current at once.
    None: the segment begins without a phase.

    Raises Exists (a FileExistsError), NoSpace (with size, free and limit), Limit, Quota, Invalid,
    Denied, Disconnected; and for layouts the errors of Segment.cast()."""
    resolved, end = collect(layouts, more)
    if size is None:
        if not end:
            raise TypeError("create() needs a size, or layouts that have one")
        size = end
    elif not hasattr(size, "__index__"):
        raise TypeError(f"size is a number of bytes, not {size!r}: a layout is a keyword, as in "
                        "float={'A': ('f4', 1000)}, and make() and zeros() create one view")
    if name is None:
        name = f"py-{os.getpid()}-{os.urandom(8).hex()}"
    access = None
    if (mode, owner, group, entries) != (None, None, None, None):
        from ._access import change
        access = change(mode, owner, group, entries)
    segment = _core.create(name, size, lifetime=lifetime, lock=lock, populate=populate,
                           access=access, label=label, connection=connection, backing=backing,
                           own_memory=own_memory, huge=huge, numa=numa)
    try:
        for layout, views in resolved.items():
            segment._define(layout, views)
        segment._layouts = names(resolved)
        if phase is not None:
            with segment.locked():
                segment.switch(phase)
    except BaseException:
        if lifetime != "attached":
            segment.remove()
        segment.close()
        raise
    return segment


def make(nbytes=None, format=None, shape=None, strides=None, offset=0, readonly=False, *, name=None,
         **options):
    """Creates a zeroed segment, and returns a View of it. Children and other processes that get the
    pickled view share its memory. view.segment is the Segment, which has the lock.

        make(4000, "f4")                        as many elements as there is room for
        make(format="f4", shape=(10, 100))      as many bytes as the elements need
        make(format=a)                          the format and shape of an array, without its values

    nbytes: the size of the segment in bytes. None: what the view needs. format, shape, strides,
    offset: see Segment.cast(). format may also be an array of numpy or another View. None: 'B'.
    readonly: whether this view is read-only; other views of the segment can be written.
    name, options: the name of the segment, and the options of create().

    Raises the errors of create() and of Segment.cast()."""
    if hasattr(format, "tolist") and not isinstance(format, type):  # an array, or a View
        shape = format.shape if shape is None else shape
        format = getattr(format, "dtype", None) or format.format
    base, inner = _split_dtype(format)
    if inner and (nbytes is None or shape is not None):
        format, shape = base, _numbers(() if shape is None else shape) + tuple(inner)
    format = "B" if format is None else format
    if nbytes is None:
        if shape is None:
            raise TypeError("make() needs nbytes, or a shape: make(format='f4', shape=(10, 100))")
        view = {"format": format, "shape": shape, "strides": strides, "offset": offset}
        nbytes = resolve({"view": view})[1] or 1  # a segment has at least one byte
    elif not hasattr(nbytes, "__index__"):
        raise TypeError(f"nbytes is a number of bytes, not {nbytes!r}: make(format='f4', shape=(10, 100))")
    segment = create(name, nbytes, **options)
    try:
        return segment.cast(format, shape, strides=strides, offset=offset, readonly=readonly)
    except BaseException:
        if options.get("lifetime") not in (None, "attached"):
            segment.remove()
        segment.close()
        raise


def attach(name, readonly=False, *, access=None, timeout=0, populate=False, connection=None):
    """Attaches the segment called name, and returns the Segment. Given a list or tuple of names, attaches
    all of them in one exchange with the daemon, and returns a list of Segments. If one of them cannot be
    attached, none is.

    readonly: like access='read': the bytes cannot be changed, but the lock can be taken.
    access: 'peek' (see the bytes without the lock), 'read' or 'write' (the default).
    timeout: the seconds to wait until the daemon reports that a segment of this name was created.
    None: as long as necessary. The wait releases the GIL, and signal handlers run.
    populate: whether to map every page now instead of at its first use.
    connection: a Connection. None: the default connection of the process.

    Raises NotFound (a FileNotFoundError, also if this user may not see the segment), Denied, NoSlot,
    Limit, Quota, Invalid, LayoutVersion, Disconnected."""
    if access is None:
        access = "read" if readonly else "write"
    elif readonly and access == "write":
        raise ValueError("access='write' is not readonly")

    if isinstance(name, (list, tuple)):
        return _attach_many(name, access, timeout, populate, connection)

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


def _attach_many(names, access, timeout, populate, connection):
    """Like attach() with names. If one is missing and there is a timeout, waits for each."""
    end = None if timeout is None else time.monotonic() + timeout
    try:
        return _core.attach_many(names, access, populate, connection)
    except NotFound:
        if timeout == 0:
            raise
    segments = []
    try:
        for name in names:
            left = None if end is None else max(end - time.monotonic(), 0)
            segments.append(attach(name, access=access, timeout=left, populate=populate, connection=connection))
    except BaseException:
        for segment in segments:
            segment.close()
        raise
    return segments


def _await(name, timeout, connection, attempt):
    """Calls attempt() until it returns a Segment, and returns that; or None after the timeout."""
    end = None if timeout is None else time.monotonic() + timeout
    try:
        return _core.await_creation(name, timeout, connection, attempt)
    except (Limit, Quota, Unsupported):  # the daemon has no room for a monitor, or knows none: poll
        pause = 0.001
    while end is None or time.monotonic() < end:
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
        found = attempt()
        if found is not None:
            return found
    return None
