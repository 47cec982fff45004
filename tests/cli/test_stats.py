# SPDX-License-Identifier: Apache-2.0
"""stats: figures and bins equal those that numpy computes from the same elements."""

import numpy
import pytest

from arrays import arrays, create, structs

RANDOM = numpy.random.default_rng(2)
SAMPLES = {
    "normal": RANDOM.normal(size=(300, 7)),
    "far from zero": RANDOM.normal(size=5000) + 1e9,
    "integers": RANDOM.integers(-50, 1000, 3000),
    "large": numpy.array([2**63 - 1, -2**63, 5]),
    "beyond": numpy.array([2**64 - 1, 7], "u8"),
    "singles": RANDOM.normal(size=999).astype(">f4"),
    "truth": numpy.array([True, False, True]),
    "one": numpy.array(5.0),
    "the same": numpy.full(9, 0.1, "f4"),
    "more than a piece": numpy.arange(3 * 2**20, dtype="f4"),
    "fortran": numpy.asfortranarray(RANDOM.normal(size=(30, 40))),
    "whole numbers on the edges": numpy.arange(101.0),
    "on the edges": numpy.linspace(-0.7, 1.9, 11),
    "tenths": numpy.linspace(0, 1, 11),
    "below an edge": numpy.array([0, 0.3, 0.6, 0.7, 1]),
    "other edges": numpy.linspace(0.1, 12.7, 11),
    "enormous": numpy.array([-1.7e308, 1.7e308, 0]),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_as_numpy_says(ctl, directory, name):
    array = SAMPLES[name]
    create(ctl, directory, "a", array)
    answer = ctl("stats", "--json", "a").json
    assert answer["segment"] == "a"
    got, = answer["views"]
    assert (got["layout"], got["view"], got["shape"]) == ("array", "array", list(array.shape))
    assert got["n"] == array.size and got["nan"] == got["infinite"] == 0
    assert got["min"] == array.min() and got["max"] == array.max()
    with numpy.errstate(over="ignore"):
        exact = array.astype("g")
        assert got["sum"] == pytest.approx(float(exact.sum()), rel=1e-12)
        assert got["mean"] == pytest.approx(float(exact.mean()), rel=1e-12)
        assert got["std"] == pytest.approx(float(exact.std()), rel=1e-9)
    if name != "enormous" and array.dtype != bool:
        counts, edges = numpy.histogram(array.astype("f8"), 10)
        assert got["histogram"]["edges"] == pytest.approx(list(edges), rel=1e-12)
        assert got["histogram"]["counts"] == list(counts)
    assert sum(got["histogram"]["counts"]) == array.size


def test_bins(ctl, directory):
    array = SAMPLES["normal"]
    create(ctl, directory, "a", array)
    got = ctl("stats", "--json", "--bins", "37", "a/array[:, 1]").json["views"][0]
    assert got["histogram"]["counts"] == list(numpy.histogram(array[:, 1], 37)[0])
    assert "histogram" not in ctl("stats", "--json", "--bins", "0", "a").json["views"][0]
    for bins in "-1", "201", "x":
        ctl("stats", f"--bins={bins}", "a", status=2, err=f"'{bins}' is not a number from 0 to 200")


def test_what_is_no_number(ctl, directory):
    create(ctl, directory, "a", numpy.array([1, numpy.nan, 3, numpy.nan]))
    got = ctl("stats", "--json", "a").json["views"][0]
    assert (got["n"], got["nan"], got["min"], got["max"], got["mean"], got["std"]) == (4, 2, 1, 3, 2, 1)
    create(ctl, directory, "b", numpy.array([numpy.inf, 1, 3, -numpy.inf]))
    got = ctl("stats", "--json", "b").json["views"][0]
    assert (got["infinite"], got["min"], got["max"]) == (2, "-inf", "inf")
    assert got["mean"] is None and got["std"] is None
    assert sum(got["histogram"]["counts"]) == 2
    for name, array in ("c", numpy.zeros((0, 3))), ("d", numpy.array([numpy.nan])):
        create(ctl, directory, name, array)
        got = ctl("stats", "--json", name).json["views"][0]
        assert got["n"] == array.size
        assert [got[key] for key in ("min", "max", "mean", "std")] == [None] * 4
        assert "histogram" not in got
        assert "min" not in ctl("stats", name).out


def test_text(ctl, directory):
    create(ctl, directory, "a", numpy.array([0, 0, 0, 1, 2, 4], "f4"))
    assert ctl("stats", "--bins", "2", "a", env={"COLUMNS": "30"}).out == (
        "a/array  f[6]\n"
        "  elements  6\n"
        "  min       0.0\n"
        "  max       4.0\n"
        "  mean      1.166667\n"
        "  std       1.462494\n"
        "0 .. 2 4 ████████████████████\n"
        "2 .. 4 2 ██████████\n")
    assert ctl("stats", "--bins", "2", "a", env={"COLUMNS": "30", "LC_ALL": "C"}).out.endswith(
        "0 .. 2 4 ####################\n2 .. 4 2 ##########\n")


def test_text_of_what_has_no_place_in_a_bin(ctl, directory):
    create(ctl, directory, "a", numpy.array([1, numpy.inf, -numpy.inf, numpy.nan, 3], "f8"))
    said = ctl("stats", "--bins", "2", "a").out
    assert "  elements  5\n  nan       1\n  infinite  2\n" in said and "  min       -inf\n" in said
    assert "  mean      nan\n  std       nan\n" in said
    found, = ctl("stats", "--json", "--bins", "2", "a").json["views"]
    assert (found["nan"], found["infinite"], found["histogram"]["counts"]) == (1, 2, [1, 1])


def test_all_views_of_the_phase(ctl):
    ctl("create", "demo", "--layout", "x: A=f4[4] B=i2[3] S=S4", "--layout", "y: C=i4")
    ctl("switch", "demo", "x")
    ctl("fill", "demo/B", "7")
    out = ctl("stats", "demo").out
    assert [line for line in out.splitlines() if line[0] != " "] == [
        "demo/A  f[4]", "demo/B  h[3]", "demo/S  4s[]"]
    assert "  max       7\n" in out and "  no real numbers\n" in out and "█" not in out
    views = ctl("stats", "--json", "demo").json["views"]
    assert [view["view"] for view in views] == ["A", "B", "S"]
    assert views[1]["mean"] == 7 and "mean" not in views[2]
    ctl("stats", "demo/C", status=1, err="view 'C' is of layout 'y'")


def test_refused(ctl, directory):
    for name in "text", "c8", "structs":
        create(ctl, directory, name, arrays()[name])
        ctl("stats", name + "/array", status=1, err="which are not real numbers: name a field")
    create(ctl, directory, "a", structs(4))
    assert ctl("stats", "--json", "a/array[b]").json["views"][0]["max"] == 0.75
    ctl("stats", "nothing", status=4, err="no segment 'nothing'")


def test_bytes(ctl):
    ctl("create", "demo", "10")
    ctl("set", "demo[0:2]", "5", "15")
    assert ctl("stats", "--json", "demo").json["views"][0]["mean"] == 2
