# SPDX-License-Identifier: Apache-2.0
"""set and fill: values from the command line become elements, parts and fields. If one value
does not fit, no element changes."""

import numpy
import pytest

from arrays import create, structs


def values(ctl, target):
    return ctl("get", "--json", target).json["data"]


@pytest.mark.parametrize("format, given, got", [
    ("i1", ["-128", "127", "0x7f"], [-128, 127, 127]),
    ("u1", ["+0", "255", "0xff"], [0, 255, 255]),
    (">i4", ["-2147483648", "1", "2"], [-2147483648, 1, 2]),
    ("i8", [str(-2**63), str(2**63 - 1), "0"], [-2**63, 2**63 - 1, 0]),
    ("u8", [str(2**64 - 1), str(2**63), "0"], [2**64 - 1, 2**63, 0]),
    ("?", ["true", "0", "False"], [True, False, False]),
    ("f4", ["0.1", "-1e3", "7"], [0.1, -1000.0, 7.0]),
    (">f8", ["nan", "-inf", "1e308"], ["nan", "-inf", 1e308]),
    ("f2", ["0.1", "65504", "-0.0"], [0.1, 65500, 0]),
    ("c8", ["1+2j", "-2.5j", "(3-1e2j)"], [[1, 2], [0, -2.5], [3, -100]]),
    ("S4", ["abc", "", "toll"], ["abc", "", "toll"]),
    ("5p", ["abc", "", "voll"], ["abc", "", "voll"]),
    ("c", ["a", "b", ""], ["a", "b", ""]),
    ("bfloat16", ["1.5", "-2", "0"], [1.5, -2, 0]),
])
def test_each_type(ctl, format, given, got):
    ctl("create", "demo", "--layout", f"x: A={format}[3]")
    ctl("set", "demo/A", *given)
    assert values(ctl, "demo/A") == got
    ctl("fill", "demo/A", given[1])
    assert values(ctl, "demo/A") == [got[1]] * 3


@pytest.mark.parametrize("format, value, said", [
    ("i1", "128", "128"),
    ("u1", "-1", "-1"),
    ("i4", "1.5", "'1.5' is not an integer"),
    ("i4", "0x", "'0x' is not an integer"),
    ("i4", "", "'' is not an integer"),
    ("i8", str(2**63), "no value of int64"),
    ("i8", str(-2**63 - 1), "is not an integer of 64 bits"),
    ("u8", str(2**64), "is not an integer"),
    ("f4", "1e39", "no value of float32"),
    ("f4", "1,5", "'1,5' is not a number"),
    ("f8", "1e999", "more than a double can hold"),
    ("f8", "1+2j", "'1+2j' is complex"),
    ("c8", "1+2", "'1+2' is not a number"),
    ("e", "70000", "70000 is no value of float16"),
    ("S2", "abc", "'abc': text of 3 bytes is no value of bytes with room for 2"),
    ("3p", "abc", "is no value of pascal with room for 2"),
    ("T{i:x:f:y:}", "1", "name a field, as in [field]"),
])
def test_what_does_not_fit_changes_nothing(ctl, format, value, said):
    ctl("create", "demo", "--layout", f"x: A={format}[3]")
    ctl("set", "demo[:]", *["1"] * int(ctl.segment("demo")["size"]))
    before = ctl("get", "--hex", "demo/A").out
    ctl("fill", "demo/A", value, status=1, err=said)
    ctl("set", "demo/A", "1" if format[0] != "T" else "x", "1", value, status=1, err=said)
    assert ctl("get", "--hex", "demo/A").out == before


def test_parts(ctl, directory):
    array = numpy.arange(24, dtype="i4").reshape(4, 6)
    create(ctl, directory, "a", array)
    ctl("set", "a/array[1, ::2]", "-1", "-2", "-3")
    array[1, ::2] = -1, -2, -3
    ctl("fill", "a/array[2:, 1]", "50")
    array[2:, 1] = 50
    ctl("fill", "a/array[:0]", "50")
    ctl("set", "a/array[-1, -1]", "99")
    array[-1, -1] = 99
    assert values(ctl, "a/array") == array.tolist()


def test_fields(ctl, directory):
    create(ctl, directory, "a", structs(2))
    ctl("set", "a/array['b']", "-1", "-2")
    ctl("fill", "a/array[c][x][0]", "9")
    assert values(ctl, "a/array['b']") == [-1, -2]
    assert values(ctl, "a/array['c']['x']") == [[9, 9], [1, 2]]


def test_bytes_and_casts(ctl):
    ctl("create", "demo", "8")
    ctl("set", "demo[0:4]", "1", "2", "3", "4")
    ctl("set", "--as", ">i2@4", "demo", "5", "6")
    assert values(ctl, "demo[:]") == [1, 2, 3, 4, 0, 5, 0, 6]


def test_the_number_of_values(ctl):
    ctl("create", "demo", "--layout", "x: A=i4[3]")
    ctl("set", "demo/A", "1", "2", status=2, err="demo/A has 3 elements, and 2 values were given: "
        "'fill' sets all")
    ctl("set", "demo/A", "1", status=2, err="1 value was given")
    ctl("set", "demo/A", status=2, err="an argument is missing")
    ctl("fill", "demo/A", "1", "2", status=2, err="'2' is one argument too many")
    for verb in "set", "fill":
        ctl(verb, "demo", "1", status=2, err="'demo': name a view, or bytes as in 'demo[0:4]'")
    assert values(ctl, "demo/A") == [0, 0, 0]


def test_read_only(ctl):
    ctl("create", "demo", "--layout", "x: A=i4[3]:readonly B=i4[3]@0")
    ctl("fill", "demo/A", "1", status=1, err="view 'A' was declared read-only")
    ctl("fill", "demo/B", "1")
    assert values(ctl, "demo/A") == [1, 1, 1]


def test_another_phase_is_not_written_to(ctl):
    ctl("create", "demo", "--layout", "x: A=i4[3]", "--layout", "y: B=i4[3]")
    ctl("switch", "demo", "y")
    ctl("fill", "demo/A", "1", status=1, err="view 'A' is of layout 'x'")
    assert values(ctl, "demo/B") == [0, 0, 0]
    ctl("fill", "--any-phase", "demo/A", "1")
    assert values(ctl, "demo/B") == [1, 1, 1]


def test_the_lock(ctl, party):
    ctl("create", "demo", "--layout", "x: A=i4[3]")
    other = party()
    other.do("s = shmview.attach('demo')")
    other.do("h = s.shared(); h.__enter__()")
    for verb in "set", "fill":
        said = ctl(verb, "--timeout=10ms", "demo/A[0]", "1", status=124, err="is locked by").err
        assert "--no-lock" not in said
    assert values(ctl, "demo/A") == [0, 0, 0]
    ctl("fill", "--no-lock", "demo/A", "1")
    assert values(ctl, "demo/A") == [1, 1, 1]


def test_notify(ctl):
    ctl("create", "demo", "--layout", "x: A=i4[3]")
    before = ctl.segment("demo")["changes"]
    ctl("fill", "demo/A", "1")
    assert ctl.segment("demo")["changes"] == before
    ctl("fill", "--notify", "demo/A", "1")
    ctl("set", "-N", "demo/A[0]", "1")
    assert ctl.segment("demo")["changes"] == before + 2
