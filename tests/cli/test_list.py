# SPDX-License-Identifier: Apache-2.0
"""list: lines, columns, patterns, JSON, the state of the lock, and thousands of segments."""

COLUMNS = "NAME SIZE RESIDENT PHASE ATTACHED LOCK-OWNER SINCE OWNER MODE LIFETIME AGE".split()


def test_empty(ctl):
    assert ctl("list").out == ""
    assert ctl("list", "--json").json == {"segments": []}
    assert ctl.on_a_terminal("list") == "There are no segments: 'shmviewctl create' makes one.\r\n"


def test_columns_are_refused_by_name(ctl):
    ctl("list", "-o", "NAME,WEIGHT", status=2, err="there is no column 'WEIGHT'")
    ctl("list", "-o", "NAME,", status=2, err="there is no column ''")
    ctl("list", "-o", "NAME,name", status=2, err="column NAME is named twice")
    ctl("list", "-o", "+NAME", status=2, err="column NAME is named twice")


def test_a_name_that_is_not_there(ctl):
    ctl("list", "ghost", status=4, err="no segment 'ghost'")


def test_lines(ctl):
    ctl("create", "a.1", "1.5M")
    ctl("create", "b-2", "100", "--mode", "0644", "--layout", "l: A=f4")
    heading, a, b = ctl("list").rows
    assert heading == COLUMNS
    assert a[:2] == ["a.1", "1.5M"] and b[:2] == ["b-2", "100B"]
    assert a[-3:-1] == ["0600", "manual"] and b[-3:-1] == ["0644", "manual"]
    assert ctl("list", "--noheadings").rows[0][:2] == ["a.1", "1.5M"]
    assert ctl("list", "--bytes", "-n").rows[0][1] == "1572864"
    assert ctl("list", "-n", "-o", "name,layouts").rows == [["a.1", "0"], ["b-2", "1"]]
    assert ctl("list", "-o", "+ID").rows[0] == COLUMNS + ["ID"]


def test_patterns(ctl):
    for name in "cam.1", "cam.2", "mic.1":
        ctl("create", name, "1")
    names = lambda *patterns: [row[0] for row in ctl("list", "-n", *patterns).rows]
    assert names("cam.*") == ["cam.1", "cam.2"]
    assert names("*.1", "cam.1") == ["cam.1", "mic.1"]
    assert names("mic.1") == ["mic.1"]
    out = ctl("list", "-n", "-o", "NAME", "mic.1", "gho*", status=4, err="no segment 'gho*'").out
    assert out == "mic.1\n"


def test_json_and_raw(ctl):
    ctl("create", "seg", "1.5M", "--mode", "0640")
    (seg,) = ctl("list", "--json").json["segments"]
    assert list(seg) == [name.lower() for name in COLUMNS]
    assert (seg["size"], seg["mode"], seg["attached"]) == (1572864, "0640", 0)
    assert (seg["phase"], seg["lock-owner"], seg["since"]) == (None, None, None)
    assert 0 <= seg["age"] < 3600
    raw = ctl("list", "--raw", "-o", "NAME,SIZE,PHASE,LOCK,AGE").out.splitlines()
    assert raw[0] == "NAME SIZE PHASE LOCK AGE"
    assert raw[1].startswith("seg 1.5M - yes 0.") or raw[1].startswith("seg 1.5M - yes ")
    assert ctl.segment("seg")["created"].endswith("Z")


def test_the_lock(ctl, party):
    ctl("create", "seg", "1", "-l", "l: A=u1")
    one, two = party(), party()
    for each in one, two:
        each.do("s = shmview.attach('seg')")
    one.do("s.lock()")
    one.do("s.switch('l')")
    seg = ctl.segment("seg")
    assert seg["lock-owner"].split()[0] == str(one.pid)
    assert (seg["lock-pid"], seg["held"], seg["phase"]) == (one.pid, "exclusive", "l")
    assert (seg["attached"], seg["waiting"], seg["generation"]) == (2, 0, 1)
    one.do("s.unlock()")
    one.do("s.lock(shared=True)")
    seg = ctl.segment("seg")
    assert (seg["lock-pid"], seg["held"]) == (one.pid, "shared")
    assert seg["lock-owner"].endswith("(shared)")
    two.do("s.lock(shared=True)")
    assert ctl.segment("seg")["lock-owner"] == "2 readers"
    for each in one, two:
        each.do("s.unlock()")
    assert ctl.segment("seg")["lock-owner"] is None


def test_thousands(ctl, party):
    """Lists all of them, over many pages of the protocol."""
    one = party()
    one.do("keep = [shmview.create(f's{i}', 1, lock=False) for i in range(3000)]")
    rows = ctl("list", "-n", "-o", "NAME").out.split()
    assert rows == [f"s{i}" for i in range(3000)]
    one.leave()
