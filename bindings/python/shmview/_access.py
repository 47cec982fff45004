# SPDX-License-Identifier: Apache-2.0
"""get_access(), set_access(), and the attributes of a Segment that show its owner, group, mode and
entries."""

from typing import Dict, NamedTuple, Optional

from . import _core
from ._errors import Invalid, make

_RIGHTS = {None: 0, "read": 2, "write": 3}
_NAMES_OF_RIGHTS = {number: name for name, number in _RIGHTS.items()}
_KINDS = {"user": 1, "group": 2}


class Access(NamedTuple):
    """The users who may use a segment."""
    mode: int  #: bits like those of a file, without execute bits: 0o640
    owner: int  #: uid
    group: int  #: gid
    entries: Dict[str, Optional[str]]  #: {'user:alice': 'write', 'group:lab': 'read', 'user:bob': None}


def _user(name):
    import pwd
    return pwd.getpwnam(name).pw_uid


def _group(name):
    import grp
    return grp.getgrnam(name).gr_gid


def _id(kind, look_up, value):
    """Returns the number of a user or group: of its name, or of a text of digits, or the number."""
    if not isinstance(value, str):
        return value
    if value.isdecimal():
        return int(value)
    try:
        return look_up(value)
    except KeyError:
        raise make(Invalid.code, f"there is no {kind} {value!r}", {}) from None


def _entry(key, right):
    kind, colon, name = key.partition(":")
    if kind not in _KINDS or not name:
        raise ValueError(f"an entry is for 'user:NAME' or 'group:NAME', not {key!r}")
    if right not in _RIGHTS:
        raise ValueError(f"the right of {key!r} is 'read', 'write' or None, not {right!r}")
    return _KINDS[kind], _RIGHTS[right], name


def change(mode=None, owner=None, group=None, entries=None):
    """Returns a change as the extension module takes it."""
    if entries is not None:
        entries = tuple(_entry(key, right) for key, right in dict(entries).items())
    return mode, _id("user", _user, owner), _id("group", _group, group), entries


def set_access(name, *, connection=None, **access):
    """Changes who may use the segment called name. Only the members that are given change.

    mode: bits like those of a file, 0 to 0o666: read (4) and write (2) for the owner, the group and
    all others. 2 alone is worth nothing.
    owner, group: names or numbers. Only administrators may name another owner, or a group that the
    owner is not in.
    entries: rights of further users and groups, which replace all earlier ones: a dict such as
    {'user:alice': 'write', 'group:lab': 'read', 'user:bob': None}. None takes away what the mode
    gives. An entry of a user counts before the group, and all entries before the rights of others.

    Attachments that exist stay.

    Raises NotFound (also if this user may not see the segment), Denied, Quota, Invalid, Disconnected."""
    _core.set_access(name, change(**access), connection)


def get_access(name, *, connection=None):
    """Returns the Access of the segment called name. An entry for a user or group without a name has
    the number.

    Raises NotFound (also if this user may not see the segment), Invalid, Disconnected."""
    *head, entries = _core.get_access(name, connection)
    return Access(*head, {_key(kind, number): _NAMES_OF_RIGHTS.get(right, "?") for kind, right, number in entries})


def _key(kind, number):
    """Returns the key of an entry."""
    try:
        if kind == _KINDS["user"]:
            import pwd
            return "user:" + pwd.getpwuid(number).pw_name
        import grp
        return "group:" + grp.getgrgid(number).gr_name
    except KeyError:
        return f"{'user' if kind == _KINDS['user'] else 'group'}:{number}"


def set_access_of(segment, **access):
    """Implements Segment.set_access()."""
    set_access(segment.name, connection=segment.connection, **access)


def get_access_of(segment, member):
    """Implements Segment.mode, owner, group and entries."""
    return getattr(get_access(segment.name, connection=segment.connection), member)
