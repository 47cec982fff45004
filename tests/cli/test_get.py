# SPDX-License-Identifier: Apache-2.0
"""get prints elements as numpy does, as JSON and as bytes. Further tests: names and indices,
views of other phases, the lock, and memory that another client truncates."""

import json
import os
import signal
import struct
import threading

import numpy
import pytest

from arrays import arrays, create, cut_off, structs
from conftest import await_

FILE = "FILE"  # replaced by a path in each test
RANDOM = numpy.random.default_rng(1)

# Elements for which numpy has notations of its own.
PRINTED = {
    "long": numpy.arange(5000),
    "just not long": numpy.arange(1000) * 7 - 3000,
    "wide": RANDOM.normal(size=(3, 40)),
    "large": numpy.zeros((30, 40), "u1"),
    "cube": RANDOM.normal(size=(2, 3, 4)).astype("f4"),
    "large cube": numpy.arange(8 * 9 * 40).reshape(8, 9, 40),
    "small": numpy.array([1e-5, 1, 2]),
    "far": numpy.array([1, 1e8]),
    "range": numpy.array([0.001, 1.5, -2]),
    "exponents": numpy.array([1e-300, 1e300, -1.5, 0]),
    "exponents of three": numpy.array([1e100, 1e-7]),
    "thirds": numpy.arange(30) / 3,
    "singles": numpy.arange(30, dtype="f4") / 7,
    "halves": numpy.arange(30, dtype="f2") / 7,
    "signs": numpy.array([-1.5, 22.25, -333]),
    "whole": numpy.array([1.0, 2, 300]),
    "zeros": numpy.zeros(3),
    "subnormal": numpy.array([5e-324, 0]),
    "single subnormal": numpy.array([1e-45, 1], "f4"),
    "half subnormal": numpy.array([6e-8, 1], "f2"),
    "minus inf": numpy.array([-numpy.inf, 1]),
    "nothing finite": numpy.array([-numpy.inf, numpy.nan]),
    "nan and long": numpy.array([numpy.nan, 0.125, 12345.5]),
    "complexes": RANDOM.normal(size=20) + 1j * RANDOM.normal(size=20),
    "complex range": numpy.array([1e-9 + 1e9j, 1 - 2j]),
    "complex special": numpy.array([complex(numpy.nan, -numpy.inf), 1 - 2j]),
    "truth": numpy.array([[True, False], [False, True]]),
    "a column": numpy.arange(5).reshape(5, 1, 1),
}
PRINTED.update({name: array for name, array in arrays().items()
                if name not in ("structs", "packed", "scalar", "g", "deep")})


@pytest.mark.parametrize("name", PRINTED)
def test_as_numpy_prints_it(ctl, directory, name):
    array = PRINTED[name]
    create(ctl, directory, "a", array)
    with numpy.printoptions(linewidth=80):
        assert ctl("get", "a/array").out == f"{array}\n"
    with numpy.printoptions(linewidth=40):
        assert ctl("get", "a/array", env={"COLUMNS": "40"}).out == f"{array}\n"


def test_nothing_is_left_out(ctl, directory):
    array = numpy.arange(3000.).reshape(3, 1000) / 8
    create(ctl, directory, "a", array)
    with numpy.printoptions(linewidth=80, threshold=10**9):
        assert ctl("get", "--all", "a/array").out == f"{array}\n"


def test_the_edges_alone_decide_how_wide_it_is(ctl, directory):
    array = numpy.zeros(5000)
    array[2500] = 123456789
    create(ctl, directory, "a", array)
    assert ctl("get", "a").out.splitlines()[1].strip() == "[0. 0. 0. ... 0. 0. 0.]"


@pytest.mark.parametrize("array", [numpy.float64(0.1), numpy.float32(1e20), numpy.float16(0.1),
                                   numpy.float64(1e16), numpy.float64(1e15), numpy.float64(1e-5),
                                   numpy.float64(0.0001), numpy.float64(-0.0), numpy.int8(-5),
                                   numpy.float64(numpy.nan), numpy.complex128(1 - 2j),
                                   numpy.complex64(2j), numpy.bool_(True), numpy.float64(1e300),
                                   numpy.float64(5e-324), numpy.uint64(2**64 - 1)])
def test_one_element(ctl, directory, array):
    create(ctl, directory, "a", array)
    assert ctl("get", "a/array").out == f"{array!s}\n"
    create(ctl, directory, "b", numpy.array([array, array]))
    assert ctl("get", "b/array[1]").out == f"{array!s}\n"


def test_structs(ctl, directory):
    create(ctl, directory, "a", structs(3))
    assert ctl("get", "a/array").out == ("[(0, 0.0, ([0, 1], b'abc')) (1, 0.25, ([1, 2], b'abc'))\n"
                                         " (2, 0.5, ([2, 3], b'abc'))]\n")
    assert ctl("get", "a/array[1]").out == "(1, 0.25, ([1, 2], b'abc'))\n"
    assert ctl("get", "a/array['c']['x'][:, 1]").out == "[1 2 3]\n"
    assert ctl("get", "a/array[2][b]").out == "0.5\n"
    create(ctl, directory, "one", numpy.array([(5,)], [("x", "i4")]))
    assert ctl("get", "one/array").out == "[(5,)]\n"
    assert ctl("get", "--json", "a/array[1]").json["data"] == {
        "a": 1, "b": 0.25, "c": {"x": [1, 2], "y": "abc"}}


def test_packed_structs(ctl, directory):
    packed = numpy.array([(1, 0.5, 2), (-1, 1.5, 3)], [("flag", "i1"), ("x", "<f4"), ("n", ">i2")])
    create(ctl, directory, "packed", packed)
    assert ctl("get", "packed/array").out == "[(1, 0.5, 2) (-1, 1.5, 3)]\n"
    assert ctl("get", "packed/array['x']").out == "[0.5 1.5]\n"
    assert ctl("set", "packed/array['x'][1]", "2.5").status == 0
    assert ctl("fill", "packed/array['n']", "7").status == 0
    assert ctl("get", "packed/array").out == "[(1, 0.5, 7) (-1, 2.5, 7)]\n"


SLICES = ["[1]", "[-1]", "[1:3]", "[::-1]", "[..., 2]", "[1, ::2]", "[:, 1:, ::-2]", "[1][2]",
          "[:0]", "[1, 2, 3]", "[-3:-1, ..., 0]", "[10:]", "[::2][1]"]


@pytest.mark.parametrize("text", SLICES)
def test_slices(ctl, directory, text):
    array = numpy.arange(4 * 5 * 6, dtype="i2").reshape(4, 5, 6)
    create(ctl, directory, "a", array)
    part = eval(f"array{text}")
    assert ctl("get", f"a/array{text}").out == f"{part}\n"
    assert ctl("get", "--json", f"a/array{text}").json["data"] == part.tolist()


@pytest.mark.parametrize("name", arrays())
def test_json(ctl, directory, name):
    array = arrays()[name]
    create(ctl, directory, "a", array)
    got = ctl("get", "--json", "a/array").json
    assert got["segment"] == "a" and got["layout"] == "array" and got["view"] == "array"
    assert got["shape"] == list(array.shape)

    def plain(value):
        if isinstance(value, (list, tuple, numpy.ndarray)):
            return [plain(v) for v in value]
        if isinstance(value, numpy.void):
            return {name: plain(value[name]) for name in value.dtype.names}
        if isinstance(value, bytes):
            return value.decode("latin1")
        if isinstance(value, complex):
            return [plain(value.real), plain(value.imag)]
        if isinstance(value, (float, numpy.floating)) and not numpy.isfinite(value):
            return str(value)
        return value.item() if isinstance(value, numpy.generic) else value
    want = [plain(v) for v in array] if array.dtype.names else plain(array.tolist())
    assert got["data"] == json.loads(json.dumps(want, default=float))


def digits(word):
    """The digits that count: without sign, point, exponent, and zeros at either end."""
    return word.split("e")[0].replace(".", "").lstrip("-").strip("0")


def test_json_reads_back_the_same(ctl, directory):
    """In each type the program prints the fewest digits that give the same number."""
    bits = RANDOM.integers(0, 2**64, 2000, dtype="u8")
    for code, size in ("f8", 8), ("f4", 4), ("f2", 2):
        array = bits.view(code)
        array = array[numpy.isfinite(array)][:2000]
        create(ctl, directory, f"a{size}", array)
        text = ctl("get", "--json", f"a{size}/array").out
        words = text.split("[")[2].split("]")[0].split(", ")
        assert (numpy.array(words, code) == array).all()
        assert all(len(digits(word)) <= len(digits(numpy.format_float_scientific(x)))
                   for word, x in zip(words, array))


def test_hex(ctl, directory):
    create(ctl, directory, "a", numpy.array([1, 256, -1], ">i4"))
    assert ctl("get", "--hex", "a/array").out == "[00000001 00000100 ffffffff]\n"
    assert ctl("get", "--hex", "a/array[1]").out == "00000100\n"
    assert ctl("get", "--hex", "--json", "a/array").json["data"] == ["00000001", "00000100",
                                                                     "ffffffff"]


def test_a_segment_shows_the_views_of_its_phase(ctl):
    ctl("create", "demo", "--layout", "float: A=f4[3] B=f8[2,2]@16", "--layout", "int: D=i2[24]")
    ctl("get", "demo/A", err=None)
    ctl("set", "demo/float:A", "1", "2.5", "3")
    assert "00000000  00 00 80 3f" in ctl("get", "demo").out, "no phase yet: bytes"
    ctl("switch", "demo", "float")
    out = ctl("get", "demo").out
    assert out == "A  f[3]\n  [1.  2.5 3. ]\nB  d[2,2]\n  [[0. 0.]\n   [0. 0.]]\n"
    both = ctl("get", "--json", "demo").json
    assert both["segment"] == "demo" and both["layout"] == "float"
    assert [view["view"] for view in both["views"]] == ["A", "B"]
    assert both["views"][0]["data"] == [1, 2.5, 3]


def test_the_only_layout_needs_no_phase(ctl):
    ctl("create", "demo", "--layout", "float: A=f4[3]")
    assert ctl("get", "demo").out == "A  f[3]\n  [0. 0. 0.]\n"


def test_bytes(ctl):
    ctl("create", "demo", "600")
    ctl("set", "demo[0:4]", "104", "105", "0", "255")
    assert ctl("get", "demo[:20]").out == (
        "00000000  68 69 00 ff 00 00 00 00  00 00 00 00 00 00 00 00  |hi..............|\n"
        "00000010  00 00 00 00                                       |....|\n"
        "00000014\n")
    lines = ctl("get", "demo").out.splitlines()
    assert lines[1:] == ["00000010  " + " ".join(["00"] * 8) + "  " + " ".join(["00"] * 8) +
                         "  |................|", "*", "00000200",
                         "... 88 more bytes: print them with --all, or a part: 'demo[512:]'"]
    assert ctl("get", "--all", "demo").out.splitlines()[-1] == "00000258"
    assert ctl("get", "demo[512:]").out.splitlines()[-1] == "00000258"
    assert ctl("get", "demo[::2][:3]").out == "[104   0   0]\n"
    assert ctl("get", "--json", "demo[:4]").json == {
        "segment": "demo", "format": "B", "shape": [4], "data": [104, 105, 0, 255]}


def test_as_something_else(ctl, directory):
    create(ctl, directory, "a", numpy.arange(12, dtype="i4"))
    assert ctl("get", "a", "--as", "i2[2,3]@4").out == "[[1 0 2]\n [0 3 0]]\n"
    assert ctl("get", "a", "--as", "i4@40").out == "[10 11]\n"
    assert ctl("get", "a/array", "--as", "u1[12,4]").out.startswith("[[ 0  0  0  0]\n [ 1  0")
    assert ctl("get", "a[1]", "--as", ">i4").out == "16777216\n"
    ctl("get", "a/array", "--as", "i2@4", status=2, err="names a view: give a format and lengths")
    ctl("get", "a", "--as", "i4[20]", status=1, err="ends at byte 80")
    ctl("get", "a", "--as", "i4@2", status=1, err="byte 2")
    ctl("get", "a", "--as", "zz", status=2, err="'z'")
    ctl("get", "a", "--as", "i4 b=i4", status=2, err="more than one view")


@pytest.fixture
def phased(ctl):
    ctl("create", "demo", "--layout", "float: A=f4[4] S=f4", "--layout", "int: D=i4[4] S=i4")
    ctl("fill", "demo/float:A", "1")
    ctl("switch", "demo", "float")


def test_a_view_of_another_phase_is_refused(ctl, phased):
    assert ctl("get", "demo/A").out == ctl("get", "demo/float:A").out == "[1. 1. 1. 1.]\n"
    for view in "D", "int:D":
        said = ctl("get", f"demo/{view}", status=1, err="view 'D' is of layout 'int', but 'demo' is "
                   "in phase 'float' now").err
        assert "--any-phase" in said
        number = struct.unpack("i", struct.pack("f", 1))[0]
        assert ctl("get", "--any-phase", "--json", f"demo/{view}").json["layout"] == "int"
        assert ctl("get", "--any-phase", f"demo/{view}").out == f"[{' '.join([str(number)] * 4)}]\n"
    assert ctl("get", "demo/S").out == "0.0\n", "that of the phase"
    ctl("switch", "demo", "int")
    assert ctl("get", "demo/S").out == "0\n"
    ctl("get", "demo/A", status=1, err="is in phase 'int' now")


def test_arrays_within_elements_are_dimensions(ctl):
    ctl("create", "demo", "--layout", "x: A=(2,3)h[2]")
    ctl("set", "demo/A[1, 0]", "1", "2", "3")
    assert ctl("get", "demo/A[1]").out == "[[1 2 3]\n [0 0 0]]\n"
    assert ctl("get", "--json", "demo/A").json["shape"] == [2, 2, 3]


def test_names_that_are_not_there(ctl, phased):
    ctl("get", "nothing", status=4, err="'shmviewctl list' shows")
    ctl("get", "demo/Z", status=4, err="'demo' has no view 'Z'; it has float:A, float:S, int:D, int:S")
    ctl("get", "demo/int:A", status=4, err="'int'")
    ctl("get", "demo/none:A", status=4, err="'none'")


def test_a_name_in_two_layouts_must_be_chosen(ctl):
    ctl("create", "demo", "--layout", "x: A=f4", "--layout", "y: A=i4")
    ctl("get", "demo/A", status=1, err="more than one view 'A': name one of x:A, y:A")
    assert ctl("get", "demo/y:A").out == "0\n"


@pytest.mark.parametrize("text, said", [
    ("", "the name of a segment is expected at character 0"),
    ("demo/", "the name of a view is expected at character 5"),
    ("demo/x:", "the name of a view is expected at character 7"),
    ("demo/x:y:z", "':' at character 8"),
    ("demo?", "'?' at character 4"),
    ("a" * 129, "at most 128 characters"),
    ("demo/A[1:x]", "  [1:x]\n     ^"),
    ("demo/A[", "it ends here"),
])
def test_what_cannot_be_read(ctl, text, said):
    ctl("get", text, status=2, err=said)


def test_indices_that_do_not_fit(ctl, phased):
    ctl("get", "demo/A[4]", status=1, err="index 4 of dimension 0, which has length 4\n  [4]\n   ^")
    ctl("get", "demo/A[1, 2]", status=1, err="2 indices, but there is 1 dimension")
    ctl("get", "demo/A[x]", status=1, err="[x]\n   ^")


def test_the_lock(ctl, phased, party):
    other = party()
    other.do("s = shmview.attach('demo')")
    other.do("s.lock()")
    said = ctl("get", "--timeout", "0.01", "demo/A", status=124, err="'demo' is locked by").err
    assert str(other.pid) in said and "--no-lock" in said
    assert ctl("get", "--no-lock", "demo/A").out == "[1. 1. 1. 1.]\n"
    other.do("s.unlock()")
    other.do("s.shared().__enter__()")
    assert ctl("get", "--timeout", "0.01", "demo/A").out == "[1. 1. 1. 1.]\n", "readers share"


def test_nobody_waits_for_the_lock_and_the_daemon(ctl, daemon, phased, party):
    """Once `get` waits for the lock, it must not need the daemon: the test stops the daemon at
    that moment, and `get` must still finish."""
    other = party()
    other.do("s = shmview.attach('demo')")

    def stop_and_let_in(words):
        other.do("s.lock()")
        waiting = ctl.start("get", *words)
        assert "waiting for the lock" in waiting.stderr.readline()
        if words == ["demo/N"]:
            other.do("s.define(late={'N': 'i4'})")
            other.do("s.switch('late')")
        daemon.process.send_signal(signal.SIGSTOP)
        other.do("s.unlock()")
        return waiting

    try:
        for words in ["demo/A"], ["demo/float:A"], ["demo"]:
            waiting = stop_and_let_in(words)
            out, _ = waiting.communicate(timeout=20)
            assert waiting.returncode == 0 and "[1. 1. 1. 1.]" in out
            daemon.process.send_signal(signal.SIGCONT)
        waiting = stop_and_let_in(["demo/N"])  # a new layout: here `get` needs the daemon
        await_(lambda: other.do("s.lock_status().n_parties") == 0, 20, "the lock")
        assert waiting.poll() is None
        daemon.process.send_signal(signal.SIGCONT)
        assert waiting.communicate(timeout=20)[0] == "1065353216\n", "1.0"
    finally:
        daemon.process.send_signal(signal.SIGCONT)


def test_who_died_is_told_until_somebody_repairs(ctl, phased, party):
    other = party()
    other.do("s = shmview.attach('demo')")
    other.do("s.lock()")
    other.kill()
    for _ in range(2):
        assert ctl("get", "demo/A", err=f"'demo': {other.pid} ").out == "[1. 1. 1. 1.]\n"


def test_no_lock_no_phase(ctl):
    ctl("create", "demo", "--no-lock", "--layout", "float: A=f4[2]")
    assert ctl("get", "demo/A").out == "[0. 0.]\n"


@pytest.mark.parametrize("words", [["get", "demo"], *(pytest.param(each, marks=pytest.mark.slow) for each in (
    ["save", "demo", FILE], ["save", "demo[::2]", FILE], ["stats", "demo"], ["load", "--raw", FILE, "demo[:16]"]))])
def test_a_peer_cuts_the_memory_off(ctl, daemon, party, tmp_path, words):
    ctl("create", "demo", "1M")
    other = party()
    other.do("s = shmview.attach('demo')")
    other.do("s.lock()")
    (tmp_path / "file").write_bytes(bytes(16))
    waiting = ctl.start(*[tmp_path / "file" if word == FILE else word for word in words])
    assert f"waiting for the lock of 'demo', which {other.pid} " in waiting.stderr.readline()
    done = threading.Event()

    def cut_again():
        while not done.is_set():  # again and again, because the daemon repairs the size
            cut_off(daemon, "demo")
    cutter = threading.Thread(target=cut_again)
    cut_off(daemon, "demo")
    cutter.start()
    try:
        other.do("s.unlock()")
        out, err = waiting.communicate()
    finally:
        done.set()
        cutter.join()
    assert (waiting.returncode, out) == (1, "")
    assert "the segment's memory is gone" in err
    assert os.listdir(tmp_path) == ["file"] and (tmp_path / "file").read_bytes() == bytes(16)
