# SPDX-License-Identifier: Apache-2.0
"""Locks, phases and changes between languages, for each triple of them: one makes the segment,
another waits, a third takes turns with both. A holder that is killed is reported equally to all."""

import itertools

import pytest

from peers import DRIVERS, Refused, await_

LAYOUTS = {"float": [{"name": "A", "format": "f", "shape": [2, 3]}, {"name": "B", "format": "f", "shape": [2], "offset": 24}],
           "int": [{"name": "D", "format": "h", "shape": [16]}]}


def in_check(languages):
    """Of all triples a third, in which each pair of languages has each two places once."""
    return sum(list(DRIVERS).index(each) for each in languages) % len(DRIVERS) == 0


TRIPLES = list(itertools.product(DRIVERS, repeat=3))
triples = pytest.mark.parametrize(
    "languages", [each if in_check(each) else pytest.param(each, marks=pytest.mark.slow) for each in TRIPLES],
    ids=["-".join(each) for each in TRIPLES])


def share(peers):
    """The first one makes a segment with two layouts, the others attach it."""
    maker = peers[0]
    maker.ask("create", seg="s", name="locks", size=32)
    for layout, views in LAYOUTS.items():
        maker.ask("define", seg="s", layout=layout, views=views)
    for peer in peers[1:]:
        peer.ask("attach", seg="s", name="locks")


def part(peers):
    for peer in peers:
        peer.ask("close", seg="s")


def switch(peer, layout):
    assert peer.ask("lock", seg="s") is None
    peer.ask("switch", seg="s", layout=layout)
    peer.ask("unlock", seg="s")


def await_waiting(peer, n):
    """Waits until n parties wait for the lock; every client can see them."""
    def waiting():
        return sum(role.startswith("waits") for role, _ in peer.ask("status", seg="s")["parties"])
    await_(lambda: waiting() == n, f"{n} who wait")


@triples
def test_phases_follow_each_other(crowd, languages):
    maker, reader, third = peers = crowd.of(languages)
    share(peers)
    assert reader.ask("phase", seg="s") == {"generation": 0, "phase": None}
    third.tell("wait_phase", seg="s", layout="float")
    maker.ask("lock", seg="s")
    maker.ask("switch", seg="s", layout="float")
    maker.ask("open", seg="s", view="A", layout="float", name="A")
    maker.ask("assign", view="A", values=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    maker.ask("unlock", seg="s")
    assert third.answer() == 1

    reader.ask("open", seg="s", view="A", layout="float", name="A")
    assert reader.ask("values", view="A") == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    reader.tell("wait_phase", seg="s", after=1)
    maker.tell("wait_phase", seg="s", layout="int", after=1)
    switch(third, "int")
    assert reader.answer() == maker.answer() == 2
    for peer in peers:
        assert peer.ask("phase", seg="s") == {"generation": 2, "phase": "int"}
    for peer in (maker, reader):
        assert peer.ask("facts", view="A")["stale"]
        peer.ask("open", seg="s", view="D", layout="int", name="D")
        assert not peer.ask("facts", view="D")["stale"]
        assert peer.ask("values", view="D")[:6] == [0, 16256, 0, 16384, 0, 16448]
    part(peers)


@triples
def test_the_lock_is_one(crowd, languages):
    maker, reader, third = peers = crowd.of(languages)
    share(peers)
    assert third.ask("lock", seg="s") is None
    for peer in (maker, reader):
        assert peer.ask("trylock", seg="s") is False
        assert peer.ask("trylock", seg="s", shared=True) is False
        with pytest.raises(Refused) as refused:
            peer.ask("lock", seg="s", timeout_ms=0)
        assert refused.value.code == 32
    status = reader.ask("status", seg="s")
    assert status == maker.ask("status", seg="s") == third.ask("status", seg="s")
    assert status["held"] and status["parties"] == [["holds", third.pid]]

    maker.tell("lock", seg="s")
    await_waiting(third, 1)
    third.ask("unlock", seg="s")
    assert maker.answer() is None
    maker.ask("unlock", seg="s")

    assert reader.ask("lock", seg="s", shared=True) is None
    assert third.ask("trylock", seg="s", shared=True) is True
    assert maker.ask("trylock", seg="s") is False
    maker.tell("lock", seg="s")
    await_waiting(reader, 1)
    third.ask("unlock", seg="s")
    reader.ask("unlock", seg="s")
    assert maker.answer() is None
    maker.ask("unlock", seg="s")
    part(peers)


@triples
def test_changes_are_heard_of(crowd, languages):
    maker, reader, third = peers = crowd.of(languages)
    share(peers)
    seen = maker.ask("change", seg="s")
    for teller in peers:
        others = [peer for peer in peers if peer is not teller]
        for peer in others:
            peer.tell("wait_change", seg="s", seen=seen)
        teller.ask("notify", seg="s")
        seen += 1
        assert [peer.answer() for peer in others] == [seen, seen]
    part(peers)


@triples
def test_a_killed_holder_is_the_same_for_all(crowd, languages):
    dead, first, second = peers = crowd.of(languages)
    share(peers)
    switch(first, "int")
    assert dead.ask("lock", seg="s") is None
    first.tell("lock", seg="s")
    second.tell("lock", seg="s", shared=True)
    await_waiting(dead, 2)
    dead.die()
    told = first.answer()
    when = told.pop("when_ns")
    command = told.pop("command")
    assert command and when > 0
    assert told == {"name": "locks", "pid": dead.pid, "generation": 1, "phase": "int"}

    # every client gets the same report, by each call, until one has repaired
    accounts = [second.answer(), first.ask("trylock", seg="s"), second.ask("recover", seg="s")]
    second.ask("unlock", seg="s", repaired=False)
    accounts.append(first.ask("recover", seg="s"))
    for account in accounts:
        assert abs(account.pop("when_ns") - when) < 1000  # the times are floats of seconds
        assert account == {**told, "command": command}
    first.ask("switch", seg="s", layout="float")
    first.ask("unlock", seg="s")
    assert second.ask("lock", seg="s") is None
    second.ask("unlock", seg="s")
    assert second.ask("phase", seg="s") == {"generation": 2, "phase": "float"}
    part(peers[1:])


@triples
def test_a_killed_reader_is_nobodys_concern(crowd, languages):
    dead, first, second = peers = crowd.of(languages)
    share(peers)
    assert dead.ask("lock", seg="s", shared=True) is None
    assert first.ask("trylock", seg="s") is False
    second.tell("lock", seg="s")
    await_waiting(first, 1)
    dead.die()
    assert second.answer() is None
    second.ask("unlock", seg="s")
    assert first.ask("lock", seg="s", shared=True) is None
    first.ask("unlock", seg="s")
    part(peers[1:])
