# SPDX-License-Identifier: Apache-2.0
"""remove, chmod and chown: what they change, what they refuse, and what a user without the right
to a segment learns of it."""

import os
import subprocess

import pytest

from conftest import CTL


def test_remove(ctl):
    for name in "abc":
        ctl("create", name, "1")
    assert ctl("remove", "a", "c").out == ""
    assert [segment["name"] for segment in ctl.segments()] == ["b"]
    ctl("remove", "ghost", "b", status=4, err="no segment 'ghost'")  # the command goes on after that error
    assert ctl.segments() == []
    ctl("remove", "--force", "ghost", "ghost2")
    ctl("remove", "-f")
    ctl("remove", status=2, err="an argument is missing: remove NAME...")
    ctl("remove", "no name", status=1, err="'no name'")


def test_what_is_attached_outlives_its_name(ctl, party):
    ctl("create", "seg", "8")
    one = party()
    one.do("s = shmview.attach('seg')")
    ctl("remove", "seg")
    assert ctl.segments() == []
    left = ctl("list", "--json", "-o", "NAME,REMOVED,ATTACHED", "seg").json["segments"]
    assert left == [{"name": "seg", "removed": True, "attached": 1}]


def test_chmod(ctl):
    ctl("create", "a", "1")
    ctl("create", "b", "1", "--mode", "0644")
    modes = lambda: [ctl.segment(name)["mode"] for name in "ab"]
    assert modes() == ["0600", "0644"]
    ctl("chmod", "660", "a", "b")
    assert modes() == ["0660", "0660"]
    ctl("chmod", "g-w", "a")
    ctl("chmod", "o+rw", "b")
    assert modes() == ["0640", "0666"]
    ctl("chmod", "u=rw,go=", "a", "b")
    assert modes() == ["0600", "0600"]
    ctl("chmod", "+r", "a")
    ctl("chmod", "a=rw", "b")
    assert modes() == ["0644", "0666"]
    ctl("chmod", "0600", "ghost", "b", status=4, err="no segment 'ghost'")
    ctl("chmod", "g+w", "ghost", "a", status=4, err="no segment 'ghost'")
    assert modes() == ["0664", "0600"]


@pytest.mark.parametrize("mode", ["", "g", "+", "x+r", "g+x", "g+r,", "r", "08", "0888", "0o660",
                                  "00000666666", "0666 "])
def test_what_is_no_mode(ctl, mode):
    ctl("create", "seg", "1")
    ctl("chmod", mode, "seg", status=2 if mode != "+" else 0,
        err=f"mode '{mode}' is not valid: write it like 0660" if mode != "+" else None)
    assert ctl.segment("seg")["mode"] == "0600"


def test_modes_that_no_segment_has(ctl):
    ctl("create", "seg", "1")
    ctl("chmod", "0755", "seg", status=2, err="only rights to read (4) and write (2) exist")
    ctl("chmod", "0600", status=2, err="an argument is missing: chmod MODE NAME...")


def test_entries(ctl):
    ctl("create", "seg", "1")
    ctl("chmod", "--access", "user:1:rw,group:2:r", "seg")
    ctl("chmod", "0640", "seg")  # the entries stay
    entries = lambda: [(e["kind"], e["id"], e["right"])
                       for e in ctl("show", "seg", "--json").json["access"]]
    assert entries() == [("user", 1, "rw"), ("group", 2, "r")]
    ctl("chmod", "-a", "g:3:write", "seg")
    assert entries() == [("group", 3, "rw")]
    ctl("chmod", "-a", "", "seg")
    assert entries() == []
    assert ctl.segment("seg")["mode"] == "0640"
    ctl("chmod", "-a", "user:1", "seg", status=2, err="access 'user:1' is not valid")
    ctl("chmod", "-a", "user::r", "seg", status=2, err="access 'user::r' is not valid")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give segments away")
def test_chown(ctl):
    ctl("create", "a", "1")
    ctl("create", "b", "1")
    owners = lambda: [(s["uid"], s["gid"]) for s in (ctl.segment("a"), ctl.segment("b"))]
    ctl("chown", "65532", "a", "b")
    assert owners() == [(65532, 0), (65532, 0)]
    ctl("chown", ":65531", "a")
    ctl("chown", "65530:7", "b")
    assert owners() == [(65532, 65531), (65530, 7)]
    ctl("chown", "root:root", "a", "ghost", status=4, err="no segment 'ghost'")
    assert owners()[0] == (0, 0)


def test_what_is_no_owner(ctl):
    ctl("create", "seg", "1")
    ctl("chown", "nobody-of-this-name", "seg", status=2, err="'getent passwd' lists them")
    ctl("chown", ":nobody-of-this-name", "seg", status=2, err="'getent group' lists them")
    ctl("chown", ":", "seg", status=2, err="write it like alice, alice:lab or :lab")
    ctl("chown", "", "seg", status=2, err="write it like alice")
    ctl("chown", "4294967295", "seg", status=2, err="there is no user '4294967295'")
    ctl("chown", "root", status=2, err="an argument is missing: chown OWNER[:GROUP] NAME...")


@pytest.fixture
def stranger(ctl):
    """The program as another user runs it, who may connect."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    path, socket = ctl.directory, ctl.environment["SHMVIEW_SOCKET"]
    os.chmod(path, 0o755)
    os.chmod(socket, 0o666)

    def stranger(*words):
        done = subprocess.run([CTL, *words], capture_output=True, text=True, timeout=100,
                              env=ctl.environment, user=65533, group=65533, extra_groups=[])
        return done.returncode, done.stdout, done.stderr
    try:
        stranger("--version")
    except PermissionError:
        pytest.skip("others may not run what is built here")
    return stranger


def test_others_are_suggested_only_what_they_may_see(ctl, stranger):
    ctl("create", "frames-open", "4", "--mode", "0644")
    ctl("create", "frames-closed", "4")
    assert "Did you mean" not in stranger("show", "frames-clsoed")[2]
    assert stranger("show", "frames-opne")[2].endswith("\nDid you mean 'frames-open'?\n")


def test_what_others_may(ctl, stranger):
    ctl("create", "open", "4", "-l", "l: A=f4", "--mode", "0644")
    ctl("create", "closed", "4", "-l", "l: A=f4")
    status, out, err = stranger("list", "-n", "-o", "NAME")
    assert (status, out, err) == (0, "open\n", "")
    assert stranger("show", "open", "--json")[0] == 0
    assert stranger("wait", "open")[0] == 0
    for words in (["show", "closed"], ["remove", "closed"], ["chmod", "0666", "closed"],
                  ["switch", "closed", "l"]):
        status, out, err = stranger(*words)
        assert (status, out) == (4, "") and "no segment 'closed'" in err
    for words in (["remove", "open"], ["chmod", "0666", "open"], ["chown", "65533", "open"],
                  ["define", "open", "m: A=f4"], ["switch", "open", "l"]):
        status, out, err = stranger(*words)
        assert (status, out) == (1, ""), words
        # the advice is for those who need access, not for those who are not its owner
        assert ("shows who may; its owner can 'shmviewctl chmod'" in err) == (words[0] in ("define", "switch"))
    status, out, err = stranger("create", "closed", "4")
    assert status == 1 and "if you cannot see it, another user has the name" in err
    os.chmod(ctl.environment["SHMVIEW_SOCKET"], 0o600)
    status, out, err = stranger("list")
    assert (status, out) == (1, "") and "administrator" in err and "chmod" not in err
    assert ctl.segment("open")["mode"] == "0644"
