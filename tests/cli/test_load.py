# SPDX-License-Identifier: Apache-2.0
"""load: files of numpy and raw bytes become elements of existing and of new segments. A file
with a fault must not change anything."""

import io

import numpy
import pytest

from arrays import arrays, create, half, same

EVERYTHING = arrays()


def header(text, version=1, length=None):
    data = text.encode("latin1")
    n = len(data) if length is None else length
    return b"\x93NUMPY" + bytes([version, 0]) + n.to_bytes(2 if version == 1 else 4, "little") + data


def npy(array, version=None):
    file = io.BytesIO()
    numpy.lib.format.write_array(file, array, version)
    return file.getvalue()


def saved(ctl, target):
    return numpy.load(io.BytesIO(ctl("save", target, "-", binary=True).out))


@pytest.mark.parametrize("version", [(1, 0), pytest.param((2, 0), marks=pytest.mark.slow),
                                     pytest.param((3, 0), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", half(0))  # the other half is loaded in test_save.py
def test_what_numpy_has_written(ctl, tmp_path, name, version):
    array = EVERYTHING[name]
    (tmp_path / "a.npy").write_bytes(npy(array, version))
    ctl("load", "--create", tmp_path / "a.npy", "a")
    ctl("load", "--create", "-", "b", input=npy(array, version), binary=True)
    for segment in "a", "b":
        got = saved(ctl, segment)
        assert same(got, array) and got.flags.fnc == array.flags.fnc
    # over existing elements, in the array's own order and in the other one
    zeros = numpy.zeros_like(array)
    ctl("load", "-", "a/array", input=npy(zeros, version), binary=True)
    assert same(saved(ctl, "a"), zeros)
    (tmp_path / "a.npy").write_bytes(npy(numpy.array(array, order="C"), version))
    ctl("load", tmp_path / "a.npy", "a")
    assert same(saved(ctl, "a"), array)


def test_into_parts_and_other_orders(ctl, directory, tmp_path):
    whole = numpy.zeros((4, 5, 6), "i4")
    create(ctl, directory, "a", whole)
    for text, order in ("[1]", "C"), ("[::2, 1:]", "C"), ("[::2, 1:]", "F"), ("[..., ::-1]", "F"):
        part = numpy.zeros_like(eval(f"whole{text}"))
        part[...] = numpy.random.default_rng(5).integers(0, 1000, part.shape)
        exec(f"whole{text} = part")
        numpy.save(tmp_path / "p.npy", numpy.array(part, order=order))
        ctl("load", tmp_path / "p.npy", f"a/array{text}")
        assert (saved(ctl, "a") == whole).all()


@pytest.mark.slow
def test_large(ctl, directory, tmp_path):
    array = numpy.random.default_rng(3).integers(0, 2**60, (3, 1000, 1001))
    create(ctl, directory, "a", array)
    assert (saved(ctl, "a") == array).all()
    for other in array[::-1], numpy.asfortranarray(array), array.astype(">i8"):
        numpy.save(tmp_path / "o.npy", other)
        ctl("load", tmp_path / "o.npy", "a")
        assert (saved(ctl, "a") == other).all()


def test_the_other_byte_order(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.zeros(3, "<f8"))
    numpy.save(tmp_path / "b.npy", numpy.array([1, numpy.nan, -2.5], ">f8"))
    ctl("load", tmp_path / "b.npy", "a")
    assert ctl("get", "--json", "a/array").json["data"] == [1, "nan", -2.5]


def test_conversion(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.zeros(4, "i2"))
    numpy.save(tmp_path / "b.npy", numpy.array([1.0, 2, -3, 32767]))
    ctl("load", tmp_path / "b.npy", "a", status=1, err='has elements "d", a/array:array has "h": '
        '--convert')
    ctl("load", "--convert", tmp_path / "b.npy", "a")
    assert ctl("get", "--json", "a/array").json["data"] == [1, 2, -3, 32767]
    for bad in 1.5, 32768, numpy.nan:
        numpy.save(tmp_path / "b.npy", numpy.array([7, 8, 9, bad]))
        ctl("load", "--convert", tmp_path / "b.npy", "a", status=1, err="element [3]")
    assert ctl("get", "--json", "a/array").json["data"] == [1, 2, -3, 32767], "nothing is changed"
    numpy.save(tmp_path / "b.npy", numpy.array([b"a"] * 4))
    ctl("load", "--convert", tmp_path / "b.npy", "a", status=1)


def test_opaque_bytes(ctl, tmp_path):
    ctl("create", "demo", "--layout", "x: A=bfloat16[2] B=i4[2]")
    numpy.save(tmp_path / "v.npy", numpy.array([0x3f80, 0x4000], "u2").view("V2"))
    ctl("load", tmp_path / "v.npy", "demo/A")
    assert ctl("get", "demo/A").out == "[1. 2.]\n"
    ctl("load", tmp_path / "v.npy", "demo/B", status=1, err="--convert")


def test_raw(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.zeros((2, 3), "i2"))
    want = numpy.arange(6, dtype="i2").reshape(2, 3)
    (tmp_path / "b").write_bytes(want.tobytes())
    ctl("load", "--raw", tmp_path / "b", "a/array")
    assert (saved(ctl, "a") == want).all()
    ctl("load", "--raw", "-", "a/array[1]", input=want[0].tobytes(), binary=True)
    want[1] = want[0]
    assert (saved(ctl, "a") == want).all()
    ctl("load", "--raw", "-", "a[2:3]", input=b"\xff", binary=True)
    ctl("load", "-r", tmp_path / "b", "a[1:5]", status=1, err="has 12 bytes, a[1:5] has 4: name a part "
        "of that size, as in 'a[0:12]'")
    ctl("load", "-r", "--create", tmp_path / "b", "new")
    assert ctl.segment("new")["size"] == 12 and ctl.segment("new")["layouts"] == 0


def test_create(ctl, tmp_path):
    numpy.save(tmp_path / "a.npy", numpy.arange(6.0).reshape(2, 3))
    ctl("load", "--create", tmp_path / "a.npy", "one")
    ctl("load", "--create", tmp_path / "a.npy", "two/A")
    ctl("load", "--create", "--json", tmp_path / "a.npy", "three/float:A")
    segments = {s["name"]: s for s in ctl.segments()}
    assert {name: s["phase"] for name, s in segments.items()} == {
        "one": "array", "two": "array", "three": "float"}
    assert all(s["size"] == 48 and s["lifetime"] == "manual" for s in segments.values())
    for target in "one/array:array", "two/array:A", "three/float:A":
        assert ctl("get", target + "[1]").out == "[3. 4. 5.]\n"
    ctl("load", "--create", tmp_path / "a.npy", "one", status=1, err="exists")
    ctl("load", "--create", tmp_path / "a.npy", "four[1]", status=2, err="takes a name alone")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    ctl("load", "--create", tmp_path / "bad.npy", "four", status=1, err="not an npy file")
    ctl("load", "--create", "--raw", "/dev/null", "four", status=1, err="has 0 bytes, four has 1")
    assert "four" not in [s["name"] for s in ctl.segments()]


def test_into_a_segment_without_layouts(ctl, tmp_path):
    ctl("create", "demo", "100")
    array = numpy.asfortranarray(numpy.arange(6, dtype=">i4").reshape(2, 3))
    numpy.save(tmp_path / "a.npy", array)
    ctl("load", tmp_path / "a.npy", "demo")
    assert ctl("save", "--raw", "demo[:24]", "-", binary=True).out == array.tobytes("F")
    numpy.save(tmp_path / "a.npy", numpy.zeros(26, "f4"))
    ctl("load", tmp_path / "a.npy", "demo", status=1, err="ends at byte 104, the segment has 100 bytes")


def test_json(ctl, directory, tmp_path):
    path = create(ctl, directory, "a", numpy.zeros((3, 4), "i2"))
    assert ctl("load", "--json", path, "a").json == {
        "segment": "a", "view": "array", "file": path, "format": "h", "shape": [3, 4],
        "fortran_order": False, "bytes": 24}


GOOD = npy(numpy.arange(6, dtype="i4").reshape(2, 3))
DICT = "{'descr': %s, 'fortran_order': False, 'shape': %s, }\n"
BAD = {
    "empty": (b"", "it is empty"),
    "text": (b"a,b\n1,2\n", "does not begin with"),
    "prefix": (GOOD[:9], "truncated"),
    "half a header": (GOOD[:60], "truncated: the file ends within its header of 128 bytes"),
    "a byte too few": (GOOD[:-1], "truncated: its header announces 24 bytes of elements"),
    "no elements": (GOOD[:128], "truncated"),
    "a byte too many": (GOOD + b"x", "1 bytes after its elements"),
    "twice": (GOOD + GOOD, "after its elements"),
    "version": (GOOD[:6] + b"\x09" + GOOD[7:], "npy version 9.0"),
    "long header": (header("{}", 2, 2**32 - 1), "npy header of 4294967295 bytes; at most"),
    "other shape": (npy(numpy.zeros(6, "i4")), "an array of shape [6], demo/A is one of [2,3]"),
    "fewer": (npy(numpy.zeros((2, 2), "i4")), "an array of shape [2,2]"),
    "other type": (npy(numpy.zeros((2, 3), "f4")), "--convert"),
    "objects": (header(DICT % ("'|O'", "(2, 3)")), "Python's objects"),
    "huge": (header(DICT % ("'<i4'", "(2, 4611686018427387904)")), "more than 2^63"),
    "huge and there": (header(DICT % ("'<i4'", "(2, 461168601842738790)")) + bytes(24), "truncated"),
    "negative": (header(DICT % ("'<i4'", "(2, -3)")), "a length, 0 or more"),
    "dimensions": (header(DICT % ("'<i4'", "(1,1,1,1,1,1,1,2,3)")), "at most 8 dimensions"),
    "code": (header(DICT % ("__import__('os').system('false')", "()")), "a string is expected"),
    "control": (header(DICT % ("'\x1b[2J'", "()")), "'?[2J' is not a type"),
    "zip": (b"PK\x03\x04" + bytes(100), "does not begin with"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("piped", [False, True])
def test_bad_files_change_nothing(ctl, tmp_path, name, piped):
    data, said = BAD[name]
    ctl("create", "demo", "--layout", "x: A=i4[2,3]")
    ctl("fill", "demo/A", "7")
    (tmp_path / "bad.npy").write_bytes(data)
    if piped:
        said = {"a byte too many": "more than the 24 bytes", "twice": "more than the 24 bytes"}.get(
            name, said)
        result = ctl("load", "-", "demo/A", input=data, binary=True, status=1, err=said)
    else:
        result = ctl("load", tmp_path / "bad.npy", "demo/A", status=1, err=said)
    assert all(c in "\n" or c >= " " for c in
               (result.err.decode() if piped else result.err)), "nothing drives the terminal"
    assert ctl("get", "--json", "demo/A").json["data"] == [[7] * 3] * 2
    assert ctl("get", "demo/A[0, 0]").err == "", "nobody died"


def test_files_that_cannot_be_read(ctl, tmp_path):
    ctl("create", "demo", "--layout", "x: A=i4[2,3]")
    ctl("load", tmp_path / "none.npy", "demo/A", status=1, err="none.npy cannot be read: No such file")
    ctl("load", tmp_path, "demo/A", status=1, err="Is a directory")
    ctl("load", "x.npy", status=2, err="an argument is missing")


def test_where_to(ctl, tmp_path):
    (tmp_path / "a.npy").write_bytes(GOOD)
    ctl("create", "demo", "--layout", "x: A=i4[2,3] B=i4[2,3]:readonly", "--layout", "y: C=i4[2,3]")
    ctl("load", tmp_path / "a.npy", "nothing", status=4, err="no segment 'nothing'")
    ctl("load", tmp_path / "a.npy", "demo/D", status=4, err="has no view 'D'; it has x:A, x:B, y:C")
    ctl("switch", "demo", "x")
    ctl("load", tmp_path / "a.npy", "demo", status=2, err="'demo' has 2 views: name one of")
    ctl("load", tmp_path / "a.npy", "demo/C", status=1, err="'demo' is in phase 'x' now")
    ctl("load", tmp_path / "a.npy", "demo/B", status=1, err="declared read-only")
    assert not any(sum(ctl("get", "--json", "demo[:]").json["data"], 0) for _ in range(1))
    ctl("switch", "demo", "y")
    ctl("load", tmp_path / "a.npy", "demo")
    assert ctl("get", "demo/C").out == "[[0 1 2]\n [3 4 5]]\n"


def test_the_lock(ctl, party, tmp_path):
    (tmp_path / "a.npy").write_bytes(GOOD)
    ctl("create", "demo", "--layout", "x: A=i4[2,3]")
    other = party()
    other.do("s = shmview.attach('demo')")
    other.do("h = s.shared(); h.__enter__()")
    ctl("load", "--timeout", "10ms", tmp_path / "a.npy", "demo", status=124, err="is locked by")
    assert ctl("get", "demo/A[1]").out == "[0 0 0]\n"
    ctl("load", "--no-lock", tmp_path / "a.npy", "demo")
    assert ctl("get", "demo/A[1]").out == "[3 4 5]\n"


def test_notify(ctl, tmp_path):
    (tmp_path / "a.npy").write_bytes(GOOD)
    ctl("create", "demo", "--layout", "x: A=i4[2,3]")
    ctl("load", tmp_path / "a.npy", "demo")
    before = ctl.segment("demo")["changes"]
    ctl("load", "--notify", tmp_path / "a.npy", "demo")
    assert ctl.segment("demo")["changes"] == before + 1


def test_no_daemon(alone, tmp_path):
    (tmp_path / "a.npy").write_bytes(GOOD)
    alone("load", tmp_path / "a.npy", "demo", status=3, err="start one with")


