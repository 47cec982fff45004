# SPDX-License-Identifier: Apache-2.0
"""Owner, group, mode and entries of a segment."""

import grp
import os
import pwd

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
ME = pwd.getpwuid(os.getuid()).pw_name
GROUP = grp.getgrgid(os.getgid()).gr_name


def test_defaults(seg):
    assert (seg.mode, seg.owner, seg.group, seg.entries) == (0o600, os.getuid(), os.getgid(), {})
    assert shmview.get_access("seg") == shmview.Access(0o600, os.getuid(), os.getgid(), {})


def test_a_new_segment():
    seg = shmview.create("new", 10, mode=0o640, owner=ME, group=GROUP, entries={"user:nobody": "read"})
    assert (seg.mode, seg.owner, seg.group, seg.entries) == (0o640, os.getuid(), os.getgid(), {"user:nobody": "read"})
    seg.close()
    assert shmview.zeros(3, mode=0o604).segment.mode == 0o604
    assert shmview.array(b"abc", mode=0o644).segment.mode == 0o644
    assert shmview.full(3, 1, mode=0o666, entries={}).segment.mode == 0o666
    with pytest.raises(TypeError, match="unknown options: rights"):
        shmview.zeros(3, rights=0o644)
    assert shmview.make(10, mode=0o606).segment.mode == 0o606


def test_a_new_stream():
    with shmview.create_stream("new", image=("u1", 4), mode=0o640, owner=ME, group=GROUP, entries={"user:nobody": "read"}):
        assert shmview.get_access("new") == shmview.Access(0o640, os.getuid(), os.getgid(), {"user:nobody": "read"})
    with pytest.raises(shmview.Invalid):
        shmview.create_stream("wrong", image=("u1", 4), group="no such group")
    with pytest.raises(shmview.NotFound):
        shmview.get_access("wrong")


def test_a_change(seg):
    seg.set_access(mode=0o660)
    assert (seg.mode, seg.entries) == (0o660, {})
    entries = {"user:nobody": "write", "group:daemon": "read", "user:4294967": None}
    seg.set_access(entries=entries)
    assert (seg.mode, seg.entries) == (0o660, entries)
    shmview.set_access("seg", entries={}, group=str(os.getgid()))
    assert (seg.mode, seg.entries, seg.group) == (0o660, {}, os.getgid())
    seg.set_access()  # changes nothing
    assert seg.mode == 0o660


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user(run, daemon):
    os.chmod(os.path.dirname(daemon.socket), 0o755)
    seg = shmview.create("seg", 10, mode=0o600)
    nobody = pwd.getpwnam("nobody").pw_uid
    attach = f"""
import os
os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
import shmview
try:
    print(shmview.attach("seg", readonly=True).access)
except (shmview.NotFound, shmview.Denied) as e:
    print(type(e).__name__)
"""
    socket_mode = os.stat(daemon.socket).st_mode
    os.chmod(daemon.socket, 0o666)
    try:
        assert run(attach) == "NotFound\n"
        seg.set_access(entries={"user:nobody": "read"})
        assert run(attach) == "read\n"
        seg.set_access(mode=0o666, entries={"user:nobody": None})
        assert run(attach) == "NotFound\n"
    finally:
        os.chmod(daemon.socket, socket_mode)
    seg.set_access(owner="nobody")
    assert seg.owner == nobody
    seg.close()


def test_refusals(seg):
    for wrong in ({"mode": 0o777}, {"mode": 640}, {"mode": 2**40}, {"mode": -1}):
        with pytest.raises((ValueError, OverflowError)):
            seg.set_access(**wrong)
        with pytest.raises((ValueError, OverflowError)):
            shmview.create("refused", 10, **wrong)
    with pytest.raises(TypeError):
        seg.set_access(mode="0640")
    with pytest.raises(shmview.Invalid, match="there is no user 'nobody at all'"):
        seg.set_access(owner="nobody at all")
    with pytest.raises(shmview.Invalid, match="there is no group 'nobody at all'"):
        shmview.create("refused", 10, group="nobody at all")
    with pytest.raises(shmview.Invalid, match="nobody at all"):
        seg.set_access(entries={"user:nobody at all": "read"})
    for entries in ({"alice": "read"}, {"user:": "read"}, {"all:x": "read"}, {"user:root": "rw"}):
        with pytest.raises(ValueError, match="entry|right"):
            seg.set_access(entries=entries)
    with pytest.raises(ValueError):
        seg.set_access(entries={f"user:{i}": "read" for i in range(1, 80)})
    with pytest.raises(shmview.Invalid, match="32"):
        seg.set_access(entries={f"user:{i}": "read" for i in range(1, 40)})
    with pytest.raises(TypeError):
        seg.set_access(rights=0o600)
    assert seg.mode == 0o600 and shmview.list() == ["seg"]
    with pytest.raises(shmview.NotFound) as caught:
        shmview.set_access("missing", mode=0o600)
    assert caught.value.name == "missing"
    with pytest.raises(shmview.NotFound):
        shmview.get_access("missing")
    with pytest.raises(AttributeError):
        seg.mode = 0o640
    seg.close()
    with pytest.raises(ValueError, match="closed"):
        seg.mode
    with pytest.raises(ValueError, match="closed"):
        seg.set_access(mode=0o600)
