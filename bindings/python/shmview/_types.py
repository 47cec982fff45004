# SPDX-License-Identifier: Apache-2.0
"""The functions that unpickle objects of the extension module, and those that make its tuples. The
classes of the tuples are in _tuples, which is imported at their first use, because typing takes a
fifth of the time of 'import shmview'."""


def make_summary(*members):
    from ._tuples import Summary
    return Summary(*members)


def make_lock_status(held, dead, dirty, parties, n):
    from ._tuples import LockParty, LockStatus
    return LockStatus(bool(held), bool(dead), bool(dirty),
                      tuple(LockParty(*party) for party in parties), n)


_connections = {}


def load_connection(path):
    """Returns the connection of this process to the daemon at path, and makes it if there is none."""
    from . import _core
    own = _core._own_connection()
    if own is not None and not own.closed and own.path == path:
        return own
    connection = _connections.get(path)
    if connection is None or connection.closed:
        connection = _connections[path] = _core.Connection(path)
    return connection


def load_segment(path, name, access):
    """Unpickles a segment: attaches it again."""
    from . import _core
    return _core.attach(name, access=access, connection=load_connection(path))


def load_stream(path, name, access):
    """Unpickles a stream: opens it again."""
    from . import _core
    return _core.open_stream(name, access, load_connection(path))


def load_view(segment, format, offset, shape, strides, suboffsets, readonly, phase):
    """Unpickles a view: makes it again from its description, in the phase to which it belonged."""
    view = segment.cast(format, shape, offset=offset, strides=strides, suboffsets=suboffsets,
                        readonly=readonly)
    return segment._bind(view, *phase) if phase else view
