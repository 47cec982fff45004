# SPDX-License-Identifier: Apache-2.0
"""freeze: what it does to segments, where it is shown, and what it refuses."""


def frozen(ctl, name):
    listed = {row["name"]: row["frozen"] for row in ctl("list", "--json", "-o", "NAME,FROZEN").json["segments"]}
    shown = ctl("show", "-J", name).json["frozen"]
    assert listed[name] == shown
    return shown


def test_freeze(ctl):
    for name in "ab":
        ctl("create", name, "8", "--backing", "sealed", "--layout", "l: A=i4[2]")
    ctl("set", "a/A", "5", "6")
    assert frozen(ctl, "a") is None
    assert "frozen" not in ctl("show", "a").out
    assert ctl("freeze", "a").out == ""
    assert (frozen(ctl, "a"), frozen(ctl, "b")) == ("all", None)
    assert "nobody can change its bytes" in ctl("show", "a").out
    ctl("set", "a/A", "7", "8", status=1, err="attach it for reading\n")  # no hint, because no right would help
    assert ctl("get", "a/A").out == "[5 6]\n"
    ctl("freeze", "a", "b")  # one of them is frozen already
    assert frozen(ctl, "b") == "all"
    ctl("remove", "a", "b")
    assert ctl.segments() == []


def test_freeze_refused(ctl, party):
    ctl("create", "file", "8")
    ctl("create", "sealed", "8", "--backing", "sealed")
    writer = party()
    writer.do("s = shmview.attach('sealed')")
    ctl("freeze", "sealed", status=1, err=f"may write to it, that of process {writer.process.pid} (")
    assert frozen(ctl, "sealed") is None
    writer.do("s.close()")
    ctl("freeze", "file", "ghost", "sealed", status=4, err="its backing is file")
    assert frozen(ctl, "sealed") == "all"
    ctl("freeze", status=2, err="an argument is missing: freeze NAME...")
