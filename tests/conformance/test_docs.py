# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/LANGUAGES.md are true: each driver reports the types and the names of
errors that the page has for its language."""

import os
import re

import pytest

from peers import DRIVERS, PLACE

with open(os.path.join(PLACE, "../../docs/LANGUAGES.md")) as file:
    PAGE = file.read()

# The columns of each language in the tables of formats: by value, and by its other way.
COLUMNS = {"C": (1, 2), "Python": (3, 4), "Ruby": (5, 6)}
WORDS = {"FalseClass": "true"}  # the page names the value instead


def rows(heading):
    """Returns the rows of the first table below the heading. Each is a list of the first `word`
    in each cell."""
    table = PAGE.split(f"\n## {heading}\n")[1].split("\n|---")[1].split("\n\n")[0]
    lines = [line.strip("| ").split(" |") for line in table.splitlines()[1:]]
    return [[(re.findall(r"`([^`]+)`", cell) + [""])[0] for cell in line] for line in lines]


@pytest.fixture(params=list(DRIVERS))
def peer(crowd, request):
    peer, = crowd.of([request.param])
    peer.ask("create", seg="s", name="docs", size=256)
    yield peer
    peer.ask("close", seg="s")


def test_formats(peer):
    table = rows("Formats")
    assert len(table) > 20
    for row in table:
        peer.ask("view", seg="s", view="v", format=row[0], shape=[2])
        kind = peer.ask("kind", view="v")
        told = [WORDS.get(kind[key], kind[key]) for key in ("value", "other")]
        # cells that are missing at the end are empty
        assert told == [(row + 7 * [""])[column] for column in COLUMNS[peer.language]], row[0]


def test_errors(peer):
    names = peer.ask("errors")
    others = {row[0].removeprefix("SHMVIEW_ERR_"): row[("C", "Python", "Ruby").index(peer.language)]
              for row in rows("Errors")}
    with open(os.path.join(PLACE, "../../include/shmview/error.h")) as header:
        errors = re.findall(r" X\((\w+), (\d+),", header.read())
    assert len(errors) > 30 and set(others) <= {name for name, _ in errors}
    for name, code in errors:
        camel = name.title().replace("_", "")
        wanted = name if peer.language == "C" else others.get(name, camel)
        assert names[code] == wanted
