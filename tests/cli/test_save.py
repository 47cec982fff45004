# SPDX-License-Identifier: Apache-2.0
"""save writes files that numpy reads, as a whole or not at all: a failure or a kill leaves the old file
or none. A slow reader of the output must not hold the lock."""

import io
import os
import resource
import signal
import stat
import subprocess

import numpy
import pytest

from arrays import arrays, create, half, on_terminal, same
from conftest import CTL, await_, end_with_parent


@pytest.mark.parametrize("name", half(1))  # the other half is saved in test_load.py
def test_numpy_reads_it(ctl, directory, tmp_path, name):
    array = arrays()[name]
    create(ctl, directory, "a", array)
    ctl("save", "a/array", tmp_path / "b.npy")
    got = numpy.load(tmp_path / "b.npy")
    assert same(got, array)
    assert got.flags.fnc == array.flags.fnc, "it lies in the file as it does in memory"
    piped = numpy.load(io.BytesIO(ctl("save", "a", "-", binary=True).out))
    assert same(piped, array)


@pytest.mark.parametrize("text", ["[1]", "[::2]", "[:, ::-1]", "[..., 1]", "[:0]", "[1, 2, 3]"])
def test_parts(ctl, directory, tmp_path, text):
    array = numpy.arange(4 * 5 * 6, dtype=">i2").reshape(4, 5, 6)
    create(ctl, directory, "a", array)
    ctl("save", f"a/array{text}", tmp_path / "b.npy")
    assert same(numpy.load(tmp_path / "b.npy"), numpy.array(eval(f"array{text}"), ">i2"))


def test_large_and_not_contiguous(ctl, directory, tmp_path):
    """Needs several pieces in each of the ways in which elements are written."""
    array = numpy.random.default_rng(3).integers(0, 2**60, (3, 1000, 1001))
    create(ctl, directory, "a", array)
    for part in "", "[1:]", "[:, ::-1, 1:]", "[::-2, 5]", "[..., 3]":
        ctl("save", f"a/array{part}", tmp_path / "b.npy")
        assert same(numpy.load(tmp_path / "b.npy"), numpy.array(eval(f"array{part}")))


def test_what_numpy_has_not(ctl, tmp_path):
    ctl("create", "demo", "--layout", "x: A=bfloat16[3] B=3f[2] C=5p")
    ctl("set", "demo/A", "1", "2", "-3")
    ctl("save", "demo/A", tmp_path / "a.npy")
    got = numpy.load(tmp_path / "a.npy")
    assert got.dtype == "V2"
    assert [float(x) for x in (got.view("u2").astype("u4") << 16).view("f4")] == [1, 2, -3]
    ctl("save", "demo/B", tmp_path / "b.npy")
    assert numpy.load(tmp_path / "b.npy").shape == (2, 3)


def test_raw(ctl, directory, tmp_path):
    array = numpy.asfortranarray(numpy.arange(12, dtype="i2").reshape(3, 4))
    create(ctl, directory, "a", array)
    ctl("save", "--raw", "a/array", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == array.tobytes("C")
    assert ctl("save", "-r", "a[4:9]", "-", binary=True).out == array.tobytes("F")[4:9]


def test_json(ctl, directory, tmp_path):
    array = numpy.asfortranarray(numpy.zeros((3, 4), "i2"))
    create(ctl, directory, "a", array)
    assert ctl("save", "--json", "a", tmp_path / "b").json == {
        "segment": "a", "view": "array", "file": str(tmp_path / "b"), "format": "h",
        "shape": [3, 4], "fortran_order": True, "bytes": 24}
    ctl("save", "--json", "a", "-", status=2, err="cannot both go to standard output")


def test_bytes_of_a_segment_without_layouts(ctl, tmp_path):
    ctl("create", "demo", "100")
    ctl("save", "demo", tmp_path / "b.npy")
    assert same(numpy.load(tmp_path / "b.npy"), numpy.zeros(100, "u1"))
    ctl("save", "demo", "--as", ">f4[5,5]", tmp_path / "b.npy")
    assert same(numpy.load(tmp_path / "b.npy"), numpy.zeros((5, 5), ">f4"))


def test_a_view_must_be_named_where_there_are_more(ctl, tmp_path):
    ctl("create", "demo", "--layout", "x: A=f4 B=f4")
    ctl("save", "demo", tmp_path / "b", status=2, err="'demo' has 2 views: name one of demo/A, demo/B")
    ctl("save", "demo/A", status=2, err="an argument is missing")
    assert os.listdir(tmp_path) == []


def test_what_was_there_is_replaced(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.arange(5))
    (tmp_path / "there").write_text("old")
    os.chmod(tmp_path / "there", 0o640)
    os.symlink("there", tmp_path / "link")
    ctl("save", "a", tmp_path / "link")
    assert same(numpy.load(tmp_path / "there"), numpy.arange(5))
    assert stat.S_IMODE(os.stat(tmp_path / "there").st_mode) == 0o640
    assert os.path.islink(tmp_path / "link")
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


def test_a_new_file_obeys_the_mask(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.arange(5))
    old = os.umask(0o027)
    try:
        ctl("save", "a", "b", cwd=tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(tmp_path / "b").st_mode) == 0o640


def test_where_it_cannot_be_written(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.arange(5))
    ctl("save", "a", tmp_path / "no" / "b", status=1, err="No such file or directory")
    ctl("save", "a", tmp_path, status=1, err="Is a directory")
    ctl("save", "a", "/dev/full", status=1, err="/dev/full cannot be written: No space left on device: "
        "make room")
    ctl("save", "a", "/dev/null")
    assert os.listdir(tmp_path) == []


def test_not_enough_room_is_told_first(ctl, tmp_path):
    """A view of strides 0 is larger than any disk, although its segment is small."""
    ctl("create", "demo", "--layout", "x: A=u1[1048576,1048576,1048576]:strides(0,0,0)")
    ctl("save", "demo", tmp_path / "b", status=1, err="No space left on device: make room")
    assert os.listdir(tmp_path) == []


def readable(fd):
    try:
        return os.read(fd, 1)
    except BlockingIOError:
        return None


def test_a_slow_reader_does_not_hold_the_lock(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.arange(10**6))
    os.mkfifo(tmp_path / "pipe")
    fd = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    saving = ctl.start("save", "a", tmp_path / "pipe")
    first = await_(lambda: readable(fd), what="the first bytes")
    ctl("fill", "--timeout", "60", "a/array", "7")
    os.set_blocking(fd, True)
    with os.fdopen(fd, "rb") as pipe:
        got = numpy.load(io.BytesIO(first + pipe.read(8 * 10**6 + 128 - len(first))))
    assert (got == numpy.arange(10**6)).all(), "as it was when the lock was held"
    assert saving.wait(60) == 0
    saving.communicate()


def test_a_save_that_fails_leaves_nothing(ctl, directory, tmp_path):
    """A limit on the size of files ends it in the middle."""
    create(ctl, directory, "a", numpy.zeros(2**20))
    (tmp_path / "b").write_text("old")

    def limit():
        end_with_parent()
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it by default
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
    done = subprocess.run([CTL, "save", "a", tmp_path / "b"], env=ctl.environment, preexec_fn=limit,
                          capture_output=True)
    assert done.returncode == 1, done
    assert b"b cannot be written: File too large" in done.stderr
    assert os.listdir(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "old"
    assert ctl("get", "--timeout", "60", "a/array[0]").out == "0.0\n", "the lock is free"


def test_the_lock(ctl, party, tmp_path):
    ctl("create", "demo", "--layout", "x: A=i4[3]")
    other = party()
    other.do("s = shmview.attach('demo')")
    other.do("s.lock()")
    ctl("save", "--timeout", "10ms", "demo", tmp_path / "b", status=124, err="is locked by")
    assert os.listdir(tmp_path) == []
    ctl("save", "--no-lock", "demo", tmp_path / "b")
    other.do("s.unlock()")
    other.do("h = s.shared(); h.__enter__()")
    ctl("save", "--timeout", "60", "demo", tmp_path / "b")


def test_no_progress_where_nobody_looks(ctl, directory, tmp_path):
    create(ctl, directory, "a", numpy.zeros(2**20))
    assert ctl("save", "a", tmp_path / "b").err == ""


def test_a_terminal_gets_no_bytes(ctl, directory):
    path = create(ctl, directory, "a", numpy.zeros(4))
    for words in ["save", "a", "-"], ["plot", "a", "-o", "-"]:
        assert "standard output is a terminal" in on_terminal(ctl, *words, status=2)
    assert "standard input is a terminal" in on_terminal(ctl, "load", "-", "a", status=2)
    assert on_terminal(ctl, "load", path, "a") == ""
