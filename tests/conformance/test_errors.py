# SPDX-License-Identifier: Apache-2.0
"""Each bad request of scenarios.json gets the same error in every language, with the same text."""

import json
import os
import re

import pytest

from peers import DRIVERS, PLACE, Refused

with open(os.path.join(PLACE, "scenarios.json")) as file:
    ERRORS = json.load(file)["errors"]
with open(os.path.join(PLACE, "../../include/shmview/error.h")) as file:
    CODES = {name: int(code) for name, code in re.findall(r" X\((\w+), (\d+),", file.read())}


@pytest.fixture
def asked(crowd, request):
    """Yields a driver that has everything to which the requests refer."""
    maker, peer = crowd.of(("C", request.param))
    for name in ("errors", "nolock", "shared"):
        maker.ask("create", seg=name, name=name, size=128, lock=name != "nolock")
    views = {"v": {"format": "h", "shape": [4]}, "m": {"format": "h", "shape": [2, 4]},
             "s": {"format": "T{i:a:}", "shape": [1]}, "r": {"format": "h", "shape": [4], "readonly": True}}
    maker.ask("define", seg="errors", layout="L", views=[{"name": "v", **views["v"]}])
    for name, seg in (("errors", "s"), ("nolock", "nolock"), ("shared", "shared")):
        peer.ask("attach", seg=seg, name=name)
    for view, description in views.items():
        peer.ask("view", seg="s", view=view, **description)
    peer.ask("lock", seg="shared", shared=True)
    yield peer
    peer.ask("unlock", seg="shared")
    for seg in ("s", "nolock", "shared"):
        peer.ask("close", seg=seg)
    for name in ("errors", "nolock", "shared"):
        maker.ask("close", seg=name)


def figures_apart(text):
    """Removes figures from a text, because the free memory differs from moment to moment."""
    return re.sub(r"[0-9]+", "N", text)


TOLD = {}  # texts, from the language that was asked first


@pytest.mark.parametrize("asked", list(DRIVERS), indirect=True)
def test_bad_requests(asked):
    for case in ERRORS:
        with pytest.raises(Refused) as refused:
            asked.ask(**{"seg": "s", **case["request"]})
            pytest.fail(f"{asked.language}: {case['name']} is no error")
        assert refused.value.code == CODES[case["error"]], (case["name"], refused.value.text)
        text = figures_apart(refused.value.text)
        assert text
        if not case.get("own_words"):
            assert text == TOLD.setdefault(case["name"], text), case["name"]
