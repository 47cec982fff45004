# SPDX-License-Identifier: Apache-2.0
"""who: the clients of one, several or all segments, with their pids, and which of them hold or
wait for the lock."""

from conftest import await_


def rows(ctl, *words):
    return ctl("who", "--json", *words).json["attachments"]


def test_nobody(ctl):
    assert ctl("who").out == ""
    assert rows(ctl) == []


def test_holds_and_waits(ctl, party):
    one, two, three = party(), party(), party()
    one.do("a = shmview.create('a', 100)")
    two.do("a = shmview.attach('a')")
    three.do("a = shmview.attach('a', access='peek')")
    one.do("a.lock()")
    two.begin("a.lock()")
    await_(lambda: any(row["lock"] == "waits exclusive" for row in rows(ctl, "a")), what="a wait")
    told = {row["pid"]: row for row in rows(ctl, "a")}
    assert told[one.pid]["lock"] == "exclusive" and told[one.pid]["command"] == "python3"
    assert told[two.pid]["lock"] == "waits exclusive" and told[two.pid]["since"] >= 0
    assert told[three.pid] == {"segment": "a", "pid": three.pid, "user": told[one.pid]["user"],
                               "command": told[three.pid]["command"], "access": "peek",
                               "slot": None, "lock": None, "since": None}
    lines = ctl("who", "a").out.splitlines()
    assert lines[0].split() == "SEGMENT PID USER COMMAND ACCESS SLOT LOCK SINCE".split()
    assert len(lines) == 4
    one.do("a.unlock()")
    two.end()
    two.do("a.unlock()")


def test_of_some_and_of_all(ctl, party):
    one = party()
    for name in "abc":
        one.do(f"{name} = shmview.create('{name}', 1)")
    assert [row["segment"] for row in rows(ctl)] == ["a", "b", "c"]
    assert [row["segment"] for row in rows(ctl, "c", "a")] == ["c", "a"]
    shown = ctl("who", "-n", "-o", "SEGMENT,ATTACHMENT,UID,ID,SINCE-TIME", "b").rows
    assert len(shown) == 1 and shown[0][0] == "b" and shown[0][4] == "-"


def test_what_is_not_there(ctl, party):
    one = party()
    one.do("a = shmview.create('a', 1)")
    result = ctl("who", "a", "ghost", status=4, err="shmviewctl: who: no segment 'ghost'")
    assert f"{one.pid}" in result.out
    ctl("who", "-o", "SHOE", status=2, err="there is no column 'SHOE'")


def test_more_than_are_told(ctl, party):
    one = party()
    one.do("s = [shmview.create('a', 1)] + [shmview.attach('a') for i in range(69)]")
    result = ctl("who", "a", err="'a' has 70 attachments, of which 64 are shown")
    assert len(result.rows) == 65
