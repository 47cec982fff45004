# SPDX-License-Identifier: Apache-2.0
"""create and define: sizes, access, lifetimes, and the language of layouts. Each error must show
the place of the fault, and leave nothing."""

import os
import pwd
import signal

import pytest

from conftest import Ctl, Daemon, await_


def view(ctl, name, layout, view):
    """Returns a view as show --json describes it."""
    layouts = {each["name"]: each["views"] for each in ctl("show", "-J", name).json["layouts"]}
    return {each["name"]: each for each in layouts[layout]}[view]


@pytest.mark.parametrize("text,size", [
    ("1", 1), ("4096", 4096), ("4K", 4096), ("4k", 4096), ("1.5M", 1572864), ("64KiB", 65536),
    ("2kb", 2000), ("0.001MB", 1000),
])
def test_sizes(ctl, text, size):
    ctl("create", "seg", text)
    assert ctl.segment("seg")["size"] == size


@pytest.mark.parametrize("text", ["0", "", "4X", "-1", "1e3", "0x10", "1.0001K", "99999999999999999999",
                                  " 1", "nan", "inf"])
def test_what_is_no_size(ctl, text):
    assert "write it like" in ctl("create", "seg", "--", text, status=2).err or text == "0"
    assert ctl.segments() == []


def test_what_is_created(ctl):
    assert ctl("create", "seg", "5000").out == ""
    seg = ctl.segment("seg")
    assert (seg["size"], seg["lifetime"], seg["attached"], seg["lock"]) == (5000, "manual", 0, True)
    ctl("create", "seg", "1", status=1, err="a segment 'seg' exists already: take another name")
    ctl("create", "bare", "1", "--no-lock", "--populate")
    assert ctl.segment("bare")["lock"] is False
    made = ctl("create", "told", "4000", "--layout", "l: A=f4", "--json").json
    assert made == ctl("show", "told", "--json").json
    assert made["layouts"][0]["name"] == "l"


def test_labels(ctl):
    ctl("create", "seg", "1", "--label", "of the night run, µ")
    ctl("create", "bare", "1")
    assert ctl("show", "seg", "-J").json["label"] == "of the night run, µ"
    assert ctl("show", "bare", "-J").json["label"] is None
    assert "  label      of the night run, µ\n" in ctl("show", "seg").out
    assert "label" not in ctl("show", "bare").out
    rows = ctl("list", "-J", "-o", "NAME,LABEL").json["segments"]
    assert [(row["name"], row["label"]) for row in rows] == [("seg", "of the night run, µ"), ("bare", None)]
    for wrong in ("", "x" * 64, "a\nb", "\x1b[2J"):
        ctl("create", "other", "1", "--label", wrong, status=1, err="a label has 1 to 63 bytes of UTF-8")
    assert len(ctl.segments()) == 2


def test_a_label_outlives_the_daemon(tmp_path):
    daemon = Daemon(str(tmp_path))
    daemon.start({"segments": [{"name": "declared", "size": 1, "label": "of the configuration"}]})
    ctl = Ctl(str(tmp_path), daemon.socket)
    ctl("create", "seg", "1", "--label", "kept")
    ctl("create", "bare", "1")
    daemon.process.kill()
    daemon.process.wait()
    daemon.start()
    labels = [ctl("show", name, "-J").json["label"] for name in ("seg", "bare", "declared")]
    assert labels == ["kept", None, "of the configuration"]
    daemon.stop()


def test_names_and_arguments(ctl):
    ctl("create", status=2, err="an argument is missing: create NAME [SIZE]")
    ctl("create", "a", "1", "2", status=2, err="'2' is one argument too many")
    ctl("create", "a", status=2, err="a size is missing: give one, or a --layout")
    ctl("create", "no name", "1", status=1, err="'no name'")
    ctl("create", "a", "1", "--lifetime", "long", status=2,
        err="lifetime 'long' is none of attached, manual, creator")
    ctl("create", "a", "1000000G", status=1, err="or enlarge /dev/shm")


def test_access(ctl):
    ctl("create", "seg", "1", "--mode", "0640", "--access", "user:1:rw,group:2:r,u:3:none")
    seg = ctl("show", "seg", "-J").json
    assert seg["mode"] == "0640"
    assert [(e["kind"], e["id"], e["right"]) for e in seg["access"]] == [
        ("user", 1, "rw"), ("group", 2, "r"), ("user", 3, "none")]
    ctl("create", "a", "1", "--mode", "0700", status=2, err="only rights to read (4) and write (2)")
    ctl("create", "a", "1", "--mode", "abc", status=2, err="write it like 0660")
    ctl("create", "a", "1", "--access", "alice", status=2, err="write it like user:alice:rw")
    ctl("create", "a", "1", "--access", "user:1:x", status=2, err="'user:1:x' is not valid")
    ctl("create", "a", "1", "--access", "user:nobody-of-this-name:r", status=1,
        err="there is no user 'nobody-of-this-name'")
    ctl("create", "a", "1", "--access", ",".join(["user:1:r"] * 33), status=2, err="at most 32")
    ctl("create", "a", "1", "--owner", "nobody-of-this-name", status=2, err="getent passwd")
    ctl("create", "a", "1", "--group", "nobody-of-this-name", status=2, err="getent group")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give segments away")
def test_owner(ctl):
    ctl("create", "seg", "1", "--owner", "65532:65531")
    ctl("create", "other", "1", "--owner", "65532", "--group", "7")
    seg, other = ctl.segment("seg"), ctl.segment("other")
    assert (seg["uid"], seg["gid"]) == (65532, 65531)
    assert (other["uid"], other["gid"]) == (65532, 7)


def test_backings(ctl):
    ctl("create", "file", "1")
    ctl("create", "sealed", "1", "--backing", "sealed")
    assert [ctl("show", "-J", name).json["backing"] for name in ("file", "sealed")] == ["file", "sealed"]
    assert "sealed, and so nobody can change its size" in ctl("show", "sealed").out
    assert "backing" not in ctl("show", "file").out
    rows = ctl("list", "--raw", "-o", "NAME,BACKING").out
    assert sorted(row.split()[-1] for row in rows.splitlines() if row.split()[0] in ("file", "sealed")) == [
        "file", "sealed"]
    ctl("create", "a", "1", "--backing", "wood", status=2, err="backing 'wood' is none of file, sealed")


def test_own_memory(ctl):
    ctl("create", "own", "5000", "--own-memory")
    ctl("create", "other", "1")
    own, other = (ctl("show", "-J", name).json for name in ("own", "other"))
    assert (own["backing"], own["paid_by"]) == ("sealed", os.geteuid())
    assert (other["backing"], other["paid_by"]) == ("file", None)
    user = pwd.getpwuid(os.geteuid()).pw_name
    assert f"paid by    {user}, whose program made the memory" in ctl("show", "own").out
    assert "paid by" not in ctl("show", "other").out
    rows = dict(line.split() for line in ctl("list", "--raw", "-o", "NAME,PAID-BY").out.splitlines())
    assert (rows["own"], rows["other"]) == (user, "-")
    ctl("create", "both", "1", "--own-memory", "--backing", "file", status=1, err="always sealed")
    ctl("create", "both", "1", "--own-memory", "--huge", "wanted", status=1, err="a placement")


def test_placement(ctl):
    ctl("create", "none", "1")
    ctl("create", "small", "1", "--huge", "wanted", "--numa", "0")
    said = ctl("show", "small").out
    assert "smaller than a huge page; nodes " in said
    assert "placement" not in ctl("show", "none").out
    assert ctl("show", "-J", "none").json["placement"] is None
    assert ctl("show", "-J", "small").json["placement"].startswith("smaller than a huge page; nodes ")
    assert "smaller than a huge page; nodes" in ctl("list", "--raw", "-o", "PLACEMENT", "small").out.replace("\\x20", " ")
    ctl("create", "all", "1", "--numa", "interleaved")
    ctl("create", "a", "1", "--huge", "required", status=1,
        err="requires huge pages: it is smaller than a huge page: 'shmviewctl doctor' shows")
    ctl("create", "a", "1", "--huge", "no", status=2, err="huge 'no' is none of wanted, required")
    ctl("create", "a", "1", "--numa", "63", status=2, err="--numa '63' is none of local, interleaved, 0 to 62")


@pytest.mark.parametrize("lifetime", ["attached", "creator"])
def test_lifetimes_that_need_somebody_who_stays(ctl, lifetime):
    process = ctl.start("create", "seg", "1", "--lifetime", lifetime)
    assert "'seg' exists as long as" in process.stderr.readline()
    assert ctl.segment("seg")["lifetime"] == lifetime
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    process.communicate()
    await_(lambda: not ctl.segments(), what="its end")


# --- Layouts

def test_the_issue_in_one_line(ctl):
    """Floats A and B, then ints in the same bytes: one line is enough."""
    ctl("create", "seg", "--layout", "float: A=f4[100] B=f4[100]", "-l", "int: D=i4[200]")
    assert ctl.segment("seg")["size"] == 800
    b = view(ctl, "seg", "float", "B")
    assert (b["offset"], b["shape"], b["strides"], b["format"]) == (400, [100], [4], "f")
    assert view(ctl, "seg", "int", "D")["begin"] == 0


@pytest.mark.parametrize("text,wanted", [
    ("V=f4", {"shape": [], "nbytes": 4, "offset": 0}),
    ("V=f4[]", {"shape": [], "nbytes": 4}),
    ("V=f4[0]", {"shape": [0], "nbytes": 0}),
    ("V=i2[2,3,4]", {"shape": [2, 3, 4], "strides": [24, 8, 2], "itemsize": 2}),
    ("V=i2[ 2 , 3 ]", {"shape": [2, 3]}),
    ("V=int16[3]@64", {"offset": 64, "format": "h"}),
    ("V=<f8[3]@1K", {"offset": 1024, "format": "d"}),
    ("V=u1[3]:readonly", {"readonly": True}),
    ("V=f4[5,20]@320:strides(-80,4):readonly", {"begin": 0, "end": 400, "readonly": True}),
    ("V=f4[5,20]:strides(-80,4)", {"offset": 320, "begin": 0}),
    ("V=i4[3,5]:fortran", {"strides": [4, 12]}),
    ("V=T{i:a:d:b:}[3]", {"itemsize": 16, "shape": [3]}),
    ("V=T{i:a@b:}[2]", {"shape": [2]}),
    ('V="i@d"[2]@16', {"offset": 16, "itemsize": 16}),
    ("V='(2,3)f'[2]", {"itemsize": 24}),
    ("V=@i[2]", {"format": "i"}),
    ("V=i8[2,2]@64:strides(8,8):suboffsets(0,-1)", {"suboffsets": [0, -1]}),
    ("a=u1[3] V=f8[2]", {"offset": 8}),
    ("a=u1[3] V=<f8[2]", {"offset": 8}),
    ("a=u1[3]  b=u1  V=i2", {"offset": 4}),
    ("a=f8[4]@100K V=u1", {"offset": 102432}),
    ("a=i4[0] V=u1", {"offset": 0}),
    ("a=f4[2,4]@48:strides(-16,4) V=u1", {"offset": 64}),
])
def test_views(ctl, text, wanted):
    ctl("create", "seg", "200K", "--layout", f"l: {text}")
    got = view(ctl, "seg", "l", "V")
    assert {name: got[name] for name in wanted} == wanted


@pytest.mark.parametrize("text,at,why", [
    ("", 1, "the name of a layout is missing"),
    (".l: A=f4", 1, "the name of a layout is missing"),
    ("l", 2, "':' must follow the name of a layout"),
    ("l:", 3, "a view is missing, like A=f4[100]"),
    ("l: A", 5, "'=' must follow the name of a view"),
    ("l: =f4", 4, "the name of a view is missing"),
    ("l: A=", 6, "a format is missing"),
    ("l: A=[3]", 6, "a format is missing"),
    ("l: A=zz[3]", 6, ""),
    ("l: A=f5[3]", 8, "character 2"),
    ('l: A="f4', 6, "this quote is never closed"),
    ("l: A=f4[3", 10, "',' or ']' must follow"),
    ("l: A=f4[3;4]", 10, "',' or ']' must follow"),
    ("l: A=f4[3,]", 11, "a number is missing, 0 or more"),
    ("l: A=f4[-3]", 9, "a number is missing, 0 or more"),
    ("l: A=f4[99999999999999999999]", 9, "a number is missing"),
    ("l: A=f4[1,1,1,1,1,1,1,1,1]", 25, "at most 8 dimensions"),
    ("l: A=f4[3]x", 11, "a space, '[', '@' or ':' must follow"),
    ("l: A=f4[3]@", 12, "an offset is missing"),
    ("l: A=f4[3]@K", 12, "an offset is missing"),
    ("l: A=f4[3]:blue", 12, "no such word: readonly, fortran"),
    ("l: A=f4[3]:readonlyx", 12, "no such word"),
    ("l: A=f4[3]:strides(4,4)", 20, "2 numbers for 1 dimensions"),
    ("l: A=f4[3]:strides(4", 21, "',' or ')' must follow"),
    ("l: A=f4 A=f4", 9, "there are two views 'A'"),
    ("l: A=f4[3]@4:strides(-4)", 4, "4 bytes below byte 0: give it @8"),
    ("l: A=f4[9223372036854775807,8]", 4, "larger than any segment"),
    ("l: A=f4[4611686018427387904]", 4, "larger than any segment"),
    ("l: A=i8[2,2]:strides(8,8):suboffsets(0,-1)", 4, "needs an @OFFSET"),
    ("l: A=i8[2,2]@0:strides(8,8):suboffsets(0,-1) B=u1", 46, "needs an @OFFSET"),
    ("l: " + "A" * 65 + "=f4", 4, "at most 64 characters"),
])
def test_faults_show_their_place(ctl, text, at, why):
    said = ctl("create", "seg", "4K", "--layout", text, status=2,
               err=f"shmviewctl: create: layout, character {at}: ").err
    assert why in said
    lines = said.splitlines()
    assert lines[1] == "  " + text
    assert lines[2] == " " * (at + 1) + "^"
    assert ctl.segments() == []


def test_long_texts_are_shown_near_the_fault(ctl):
    text = "l: " + " ".join(f"v{i}=u1" for i in range(257))
    said = ctl("create", "seg", "4K", "--layout", text, status=2, err="at most 256 views").err
    line, mark = said.splitlines()[1:3]
    assert len(line) <= 80
    assert line[mark.index("^"):] == "v256=u1"


def test_what_the_daemon_refuses_leaves_nothing(ctl):
    ctl("create", "seg", "4K", "--layout", "l: A=f4[3]@3", status=1,
        err="give the view another @OFFSET, or other strides")
    ctl("create", "seg", "--layout", "l: A=f4[3]", "--layout", "l: B=f4[3]", status=1,
        err="take another name")
    assert ctl.segments() == []
    ctl("create", "seg", "10", "--layout", "l: A=f4[3]", status=2,
        err="size 10 is too small: the layouts need 12 bytes")


def test_define(ctl):
    ctl("create", "seg", "4000")
    assert ctl("define", "seg", "float: A=f4[100] B=f4[100]", "int: D=i4[200]").out == ""
    told = ctl("define", "seg", "bytes: all=u1[4000]", "--json").json
    assert [layout["name"] for layout in told["layouts"]] == ["float", "int", "bytes"]
    assert told["attachments"] == 0
    ctl("define", "seg", "int: E=u1", status=1, err="layouts stay as long as their segment")
    ctl("define", "seg", "more: E=u1[4001]", status=1, err="make the view smaller, or a larger "
        "segment")
    ctl("define", "seg", "more: E", status=2, err="layout, character 8")
    ctl("define", "seg", status=2, err="an argument is missing: define NAME LAYOUT...")
    ctl("define", "ghost", "l: A=u1", status=4, err="'shmviewctl list' shows the segments")
    assert len(ctl("show", "seg", "-J").json["layouts"]) == 3
    for i in range(3, 64):
        ctl("define", "seg", f"l{i}: A=u1")
    ctl("define", "seg", "last: A=u1", status=1, err="64")
