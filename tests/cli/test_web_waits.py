# SPDX-License-Identifier: Apache-2.0
"""web: which processes wait for which, from segment to segment, and deadlocks."""

import os

import pytest

from conftest import await_
from webclient import web  # noqa: F401

pytestmark = pytest.mark.skipif("SHMVIEW_WEB" not in os.environ, reason="built without libmicrohttpd")


@pytest.fixture
def three(ctl, party):
    """Three processes, of which each has attached the segments s, t and u by these names."""
    for name in "stu":
        ctl("create", name, 4096)
    parties = [party() for _ in range(3)]
    for one in parties:
        one.do("s, t, u = map(shmview.attach, 'stu')")
    return parties


@pytest.fixture
def ask(web):
    server = web().enter()
    return lambda name="s": server.json(f"/api/waits?name={name}")


def lines(answer):
    """Returns [depth, "holds" or "waits", segment, pid] of each line."""
    return [[line["depth"], "holds" if line["holds"] else "waits", line["segment"], line["pid"]]
            for line in answer["lines"]]


def waits(cycle):
    return [(wait["pid"], wait["segment"]) for wait in cycle]


def test_nobody_waits(ask, three, ctl):
    answer = ask()
    assert (answer["name"], answer["lines"], answer["deadlocks"]) == ("s", [], [])
    assert answer["is_complete"] is True
    three[0].do("s.lock()")
    assert lines(ask()) == [[0, "holds", "s", three[0].pid]]
    three[0].do("s.unlock()")


def test_wrong_names(web, ctl):
    server = web().enter()
    assert "missing" in server.error("/api/waits")
    assert "no segment '<b>'" in server.error("/api/waits?name=<b>".replace("<", "%3C"), status=404)


def test_a_chain_of_three(ask, three):
    a, b, c = three
    c.do("u.lock()")
    b.do("t.lock()")
    b.begin("u.lock()")
    a.do("s.lock()")
    a.begin("t.lock()")
    want = [[0, "waits", "t", a.pid], [0, "holds", "t", b.pid], [1, "waits", "u", b.pid],
            [2, "holds", "u", c.pid]]
    answer = await_(lambda: (got := ask("t"))["lines"] and lines(got) == want and got,
                    what="the chain")
    assert answer["deadlocks"] == []
    assert [line["waits"] for line in answer["lines"]] == [1, 0, 1, 0]
    assert all(line["since_us"] >= 0 for line in answer["lines"] if line["waits"])
    assert all(line["command"] for line in answer["lines"])
    c.do("u.unlock()")
    b.end()
    b.do("u.unlock(); t.unlock()")
    a.end()
    assert lines(ask("t")) == [[0, "holds", "t", a.pid]]
    a.do("t.unlock(); s.unlock()")


def test_a_deadlock_is_found_and_ends(ask, three):
    a, b, c = three
    a.do("s.lock()")
    b.do("t.lock()")
    a.begin("t.lock(timeout=60)")
    b.begin("""
while True:
    try:
        s.lock(timeout=0.2)
    except shmview.TimedOut:
        continue
    except shmview.OwnerDied:  # the lock was not taken
        break""")
    answer = await_(lambda: (got := ask())["deadlocks"] and got, what="the deadlock")
    assert [waits(one) for one in answer["deadlocks"]] == [[(b.pid, "s"), (a.pid, "t")]]
    assert lines(answer) == [[0, "waits", "s", b.pid], [0, "holds", "s", a.pid], [1, "waits", "t", a.pid],
                             [2, "holds", "t", b.pid], [3, "waits", "s", b.pid],
                             [4, "holds", "s", a.pid]]
    assert [line["is_closing"] for line in answer["lines"]] == [False] * 5 + [True]
    # a third one waits for the circle, and is no part of it
    c.do("u.lock()")
    c.begin("t.lock()")
    # The process b waits again and again. An answer that was requested before a wait has no deadlock.
    answer = await_(lambda: (got := ask("t"))["deadlocks"] and len(got["lines"]) == 7 and got, what="the third")
    assert [waits(one) for one in answer["deadlocks"]] == [[(a.pid, "t"), (b.pid, "s")]]
    a.kill()
    b.end()
    answer = ask("t")
    assert answer["deadlocks"] == []
    b.do("t.unlock()")
    c.end()
    c.do("t.unlock(); u.unlock()")
