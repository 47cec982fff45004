# SPDX-License-Identifier: Apache-2.0
"""The names that shmviewctl suggests for a mistyped verb, option, segment, view or layout."""

import pytest


def hint(result):
    """Returns the last line if it is a suggestion."""
    last = result.err.splitlines()[-1]
    return last if last.startswith("Did you mean") else None


@pytest.mark.parametrize("typed,means", [
    ("shwo", "'show'"),  # swapped
    ("shw", "'show'"),  # left out
    ("showw", "'show'"),  # one too many
    ("shaw", "'show'"),  # replaced
    ("mointro", "'monitor'"),
    ("mon", "'monitor'"),  # its beginning
    ("LIST", "'list'"),
    ("st", "'set', 'stats' or 'stream'"),
    ("ch", "'chmod' or 'chown'"),
    ("xxxx", None),
    ("monitortheworld", None),
    ("x", None),
    ("", None),
    ("s" * 1000, None),
])
def test_verbs(alone, typed, means):
    result = alone(typed, status=2, err=f"there is no verb '{typed}'")
    assert hint(result) == (means and f"Did you mean {means}?")


def test_options(alone):
    assert hint(alone("list", "--jsno", status=2)) == "Did you mean '--json'?"
    assert hint(alone("list", "--sokcet=/x", status=2)) == "Did you mean '--socket'?"
    assert hint(alone("--verison", status=2)) == "Did you mean '--version'?"
    assert hint(alone("list", "-x", status=2)) is None
    # not an option of another verb
    assert hint(alone("list", "--timeuot", status=2)) is None


SEGMENT_VERBS = [
    ["show", "fraems"],
    ["define", "fraems", "l: A=f4"],
    ["remove", "fraems"],
    ["chmod", "0600", "fraems"],
    ["chmod", "g+r", "fraems"],
    ["chown", "0", "fraems"],
    ["switch", "fraems", "l"],
    ["get", "fraems"],
    ["set", "fraems/A", "1"],
    ["save", "fraems/A", "/dev/null"],
    ["stats", "fraems"],
    ["lock", "fraems", "true"],
    ["list", "fraems"],
    ["who", "fraems"],
]


@pytest.mark.parametrize("words", SEGMENT_VERBS, ids=" ".join)
def test_segments(ctl, words):
    ctl("create", "frames", "64")
    ctl("create", "other", "64")
    result = ctl(*words, status=4, err="no segment")
    assert hint(result) == "Did you mean 'frames'?"


def test_at_most_three_in_an_order_of_their_own(ctl):
    for letter in "dbeac":
        ctl("create", f"camera-{letter}", "1")
    assert hint(ctl("show", "camera-x", status=4)) == \
        "Did you mean 'camera-a', 'camera-b' or 'camera-c'?"
    assert hint(ctl("show", "camera-xyzzy", status=4)) is None


def test_the_nearest_only(ctl):
    ctl("create", "spectrum", "1")
    ctl("create", "spectral", "1")
    assert hint(ctl("show", "spectrm", status=4)) == "Did you mean 'spectrum'?"


def test_a_removed_name_is_not_suggested(ctl, party):
    ctl("create", "frames", "1")
    one = party()
    one.do("s = shmview.attach('frames')")
    ctl("remove", "frames")
    assert hint(ctl("show", "fraems", status=4)) is None


def test_views_and_layouts(ctl):
    ctl("create", "seg", "-l", "float: red=f4 green=f4", "-l", "int: red=i4")
    assert hint(ctl("get", "seg/gren", status=4, err="has no view 'gren'")) == \
        "Did you mean 'green'?"
    assert hint(ctl("get", "seg/rde", status=4)) == "Did you mean 'red'?"
    assert hint(ctl("get", "seg/flaot:red", status=4)) == "Did you mean 'float:red'?"
    assert hint(ctl("get", "seg/float:gren", status=4)) == "Did you mean 'float:green'?"
    assert hint(ctl("get", "seg/blue", status=4)) is None
    assert hint(ctl("switch", "seg", "itn", status=4)) == "Did you mean 'int'?"
    assert hint(ctl("switch", "seg", "double", status=4)) is None
