# SPDX-License-Identifier: Apache-2.0
"""One language reads what another one has written: every row of scenarios.json, for each ordered
pair of languages. One makes and fills the segment, the other attaches it."""

import itertools
import json
import os

import pytest

from peers import DRIVERS, PLACE

BYTES = 256

with open(os.path.join(PLACE, "scenarios.json")) as file:
    SCENARIOS = json.load(file)["elements"]


LANGUAGES = list(DRIVERS)


def pairs(scenario, number):
    """Returns parameters: the scenario with each ordered pair of languages. Of the pairs make check runs a third, in
    which each language writes once and reads once; with the next scenario, that is the next third."""
    for maker, reader in itertools.product(range(len(LANGUAGES)), repeat=2):
        languages = LANGUAGES[maker], LANGUAGES[reader]
        in_check = (maker + reader) % len(LANGUAGES) == number % len(LANGUAGES)
        yield pytest.param(scenario, languages, marks=() if in_check else pytest.mark.slow,
                           id=f"{scenario['name']}-{'-'.join(languages)}")


def exactly(value):
    """Returns text that compares: 1, 1.0 and true differ, and so do 0.0 and -0.0; nan equals
    nan."""
    return repr(value)


def look(peer, view, wanted, facts):
    """Checks the values and facts of a view, by each way that the language has. Returns all
    facts."""
    assert exactly(peer.ask("values", view=view)) == exactly(wanted), peer.language
    other = peer.ask("other", view=view)
    assert other is None or exactly(other) == exactly(wanted), f"{peer.language}, by its other way"
    told = peer.ask("facts", view=view)
    assert {key: told[key] for key in facts} == facts, peer.language
    return told


def first_element(view, values):
    """Returns (index, value) of the last element; None if the view has no elements."""
    index = []
    for length in view["shape"]:
        if not length:
            return None
        index.append(length - 1)
        values = values[-1]
    return index, values


def of_segment(hexadecimal):
    return hexadecimal + "00" * (BYTES - len(hexadecimal) // 2)


@pytest.mark.parametrize("scenario, languages", [
    each for number, scenario in enumerate(SCENARIOS) for each in pairs(scenario, number)])
def test_one_fills_and_the_other_reads(crowd, scenario, languages):
    maker, reader = crowd.of(languages)
    view, values = scenario["view"], scenario["values"]
    maker.ask("create", seg="s", name="elements", size=BYTES)
    maker.ask("put", seg="s", hex=scenario.get("before", ""))
    maker.ask("define", seg="s", layout="L", views=[{"name": "v", **view}])
    maker.ask("open", seg="s", view="v", layout="L", name="v")
    if not view.get("readonly"):
        maker.ask("assign", view="v", values=values)
    reader.ask("attach", seg="s", name="elements")
    assert reader.ask("dump", seg="s") == of_segment(scenario["bytes"])
    reader.ask("open", seg="s", view="v", layout="L", name="v")
    reader.ask("view", seg="s", view="cast", **view)
    facts = scenario.get("facts", {})
    told = look(reader, "v", values, facts)
    assert told == look(maker, "v", values, facts)
    assert {**look(reader, "cast", values, facts), "stale": told["stale"]} == told
    if last := first_element(view, values):
        assert exactly(reader.ask("get", view="v", index=last[0])) == exactly(last[1])
        if not view.get("readonly"):
            reader.ask("set", view="v", index=last[0], value=last[1])
            assert maker.ask("dump", seg="s") == of_segment(scenario["bytes"])
    for step in scenario.get("then", ()):
        made = {key: step[key] for key in step if key not in ("values", "facts")}
        told = []
        for peer in (maker, reader):
            peer.ask(**made, of="v", view="made")
            told.append(look(peer, "made", step["values"], step.get("facts", {})))
        assert told[0] == told[1]
    reader.ask("close", seg="s")
    maker.ask("close", seg="s")


@pytest.mark.parametrize("languages", list(itertools.product(DRIVERS, repeat=2)), ids="-".join)
@pytest.mark.parametrize("access", ["read", "peek"])
def test_who_may_not_write_sees_the_same(crowd, languages, access):
    maker, reader = crowd.of(languages)
    maker.ask("create", seg="s", name="elements", size=BYTES)
    maker.ask("view", seg="s", view="v", format="i", shape=[3])
    maker.ask("assign", view="v", values=[1, -2, 3])
    reader.ask("attach", seg="s", name="elements", access=access)
    reader.ask("view", seg="s", view="v", format="i", shape=[3])
    look(reader, "v", [1, -2, 3], {"readonly": True})
    maker.ask("set", view="v", index=[1], value=7)
    look(reader, "v", [1, 7, 3], {})
    reader.ask("close", seg="s")
    maker.ask("close", seg="s")
