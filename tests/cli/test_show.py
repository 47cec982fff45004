# SPDX-License-Identifier: Apache-2.0
"""show: views, phase, lock and parties of a segment, and a picture of its memory."""

import os
import pwd

from conftest import await_

LAYOUTS = ["-l", "float: A=f4[100] B=f4[100]@600", "-l", "int: D=i4[250] gap=i2[4]@200:strides(200)"]


def bars(out):
    """Returns the bar of each view, by its name."""
    found = {}
    for line in out.splitlines():
        for edge in "│", "|":
            if line.count(edge) == 2:
                found[line.split(edge)[0].split()[-2]] = line.split(edge)[1]
    return found


def test_what_it_says(ctl):
    ctl("create", "seg", "1000", *LAYOUTS, "--mode", "0640", "--access", "user:1:rw,group:2:none")
    lines = ctl("show", "seg").out.splitlines()
    assert lines[0] == "seg"
    assert lines[1].split()[:4] == ["size", "1000B", "(1000", "bytes),"]
    assert "mode 0640" in lines[2]
    assert lines[3].split()[0] == "access" and lines[3].endswith(":rw")
    assert lines[4].endswith(":none")
    assert lines[5].split() == ["lifetime", "manual"]
    assert lines[6].split()[0] == "created"
    assert lines[7].split() == ["phase", "none", "yet"]
    assert lines[8].split() == ["attached", "0"]


def test_picture(ctl):
    """A segment of 1000 bytes on 50 columns has 20 bytes in each."""
    ctl("create", "seg", "1000", *LAYOUTS)
    labels = len("  float  gap  float32[100]  ||")
    out = ctl("show", "seg", env={"COLUMNS": str(labels + 50)}).out
    drawn = bars(out)
    assert drawn == {
        "A": "█" * 20 + "·" * 30,
        "B": "·" * 30 + "█" * 20,
        "D": "█" * 50,
        "gap": "·" * 10 + "▒" * 31 + "·" * 9,
    }
    scale = out.splitlines()[-5][labels - 1:]
    assert scale.split() == ["0B", "250B", "500B", "750B", "1000B"]
    assert scale.index("500B") == 25


def test_a_type_without_a_name_is_shown_by_its_format(ctl):
    """The output of one command is valid input of another one: the format P has no name."""
    ctl("create", "seg", "100", "-l", "one: A=P[2] B=f4[2]@16")
    out = ctl("show", "seg").out
    assert "  P[2]  " in out and "float32[2]" in out
    ctl("create", "again", "100", "-l", "one: A=P[2]")


def test_picture_where_there_is_no_utf8(ctl):
    ctl("create", "seg", "1000", *LAYOUTS)
    out = ctl("show", "seg", env={"LC_ALL": "C", "COLUMNS": "80"}).out
    assert out.isascii()
    assert bars(out)["A"] == "#" * 20 + "." * 30
    assert "+" in bars(out)["gap"]


def test_small_views_and_narrow_terminals(ctl):
    ctl("create", "seg", "1M", "-l", "l: first=u1 last=u1@1048575 none=u1[0]@500K")
    for width in "200", "80", "20":
        drawn = bars(ctl("show", "seg", env={"COLUMNS": width}).out)
        assert len(set(map(len, drawn.values()))) == 1
        assert drawn["first"][0] != "·" and set(drawn["first"][1:]) == {"·"}
        assert drawn["last"][-1] != "·" and set(drawn["last"][:-1]) == {"·"}
        assert set(drawn["none"]) == {"·"}


def test_long_types_are_cut(ctl):
    ctl("create", "seg", "1M", "-l", "l: A=" + "T{" + ":".join(f"i:f{i}" for i in range(20)) + ":}[3]")
    assert max(map(len, ctl("show", "seg").out.splitlines())) <= 80


def test_phase_lock_and_parties(ctl, party):
    ctl("create", "seg", *LAYOUTS)
    one, two = party(), party()
    one.do("s = shmview.attach('seg')")
    two.do("s = shmview.attach('seg', access='read')")
    one.do("s.lock()")
    one.do("s.switch('int')")
    two.begin("try:\n s.lock()\nexcept shmview.OwnerDied:\n with s.recover(): pass")
    seg = await_(lambda: (lambda seg: [p for p in seg["attached"] if p["waits"]] and seg)(
        ctl("show", "seg", "--json").json), what="a waiter")
    assert seg["phase"] == {"layout": "int", "generation": 1}
    parties = {p["pid"]: (p["access"], p["holds"], p["waits"]) for p in seg["attached"]}
    assert parties == {one.pid: ("write", "exclusive", None), two.pid: ("read", None, "exclusive")}
    out = ctl("show", "seg").out
    assert "phase      int, generation 1" in out
    assert f"pid {one.pid} " in out and "holds the lock (exclusive) for" in out
    assert f"pid {two.pid} " in out and "waits for the lock (exclusive)" in out
    assert "* int    D" in out and "* float" not in out
    one.kill()
    two.end()
    seg = await_(lambda: (lambda s: s["deaths"] == 1 and s)(ctl("show", "seg", "-J").json))
    assert "1 died while they held the lock" in ctl("show", "seg").out


def test_json(ctl):
    ctl("create", "seg", *LAYOUTS, "--no-lock")
    seg = ctl("show", "seg", "--json").json
    assert (seg["name"], seg["size"], seg["uid"], seg["lock"]) == ("seg", 1000, os.geteuid(), False)
    assert seg["phase"] == {"layout": None, "generation": None}
    ctl("chmod", "--access", "user:1:r,user:2:rw", "seg")
    named = ctl("show", "seg", "--json").json
    assert named["owner"] == pwd.getpwuid(os.geteuid()).pw_name
    assert [e["name"] for e in named["access"]] == [pwd.getpwuid(uid).pw_name for uid in (1, 2)]
    gap = seg["layouts"][1]["views"][1]
    assert gap == {"name": "gap", "format": "h", "itemsize": 2, "nbytes": 8, "offset": 200,
                   "shape": [4], "strides": [200], "suboffsets": None, "readonly": False,
                   "begin": 200, "end": 802}
    assert "lock       none, and so no phases" in ctl("show", "seg").out


def test_views(ctl):
    ctl("create", "seg", *LAYOUTS)
    ctl("switch", "seg", "int")
    heading, *rows = ctl("show", "seg", "--views").rows
    assert heading == "LAYOUT VIEW TYPE SHAPE OFFSET BYTES CURRENT".split()
    assert rows == [["float", "A", "float32", "100", "0", "400B", "no"],
                    ["float", "B", "float32", "100", "600", "400B", "no"],
                    ["int", "D", "int32", "250", "0", "1000B", "yes"],
                    ["int", "gap", "int16", "4", "200", "8B", "yes"]]
    *_, gap = ctl("show", "seg", "--views", "-J", "-o", "VIEW,STRIDES,END").json["views"]
    assert gap == {"view": "gap", "strides": "200", "end": 802}
    ctl("show", "seg", "-o", "VIEW", status=2, err="options of tables need --views")
    ctl("show", "seg", "--views", "-o", "X", status=2, err="there is no column 'X'")
    ctl("show", "ghost", "--views", status=4, err="no segment 'ghost'")


def test_refused(ctl):
    ctl("show", "ghost", status=4, err="no segment 'ghost': 'shmviewctl list' shows the segments")
    ctl("show", status=2, err="an argument is missing: show NAME")
    ctl("show", "a", "b", status=2, err="'b' is one argument too many")


def test_colors_are_for_terminals(ctl):
    ctl("create", "seg", *LAYOUTS)
    assert "\033[" in ctl.on_a_terminal("show", "seg")
    assert "\033[" not in ctl.on_a_terminal("show", "seg", NO_COLOR="1")
    assert "\033[" not in ctl.on_a_terminal("show", "seg", TERM="dumb")
    assert "\033[" not in ctl("show", "seg").out
