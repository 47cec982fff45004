# SPDX-License-Identifier: Apache-2.0
"""Arrays of every kind, and segments that have their elements."""

import os
import pty
import subprocess

import numpy
import pytest

from conftest import CTL, end_with_parent

STRUCT = numpy.dtype([("a", "i1"), ("b", "f8"), ("c", [("x", "<u2", 2), ("y", "S3")])], align=True)


def structs(n):
    array = numpy.zeros(n, STRUCT)
    array["a"] = range(n)
    array["b"] = numpy.arange(n) / 4
    array["c"]["x"] = [[i, i + 1] for i in range(n)]
    array["c"]["y"] = b"abc"
    return array


def arrays():
    """Returns arrays by name: every type, and every order in which elements lie in a file."""
    some = numpy.array([0, 1, 2, 3, 100, 127])
    made = {code: some.astype(code) for code in
            ("b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g",
             ">i2", ">u4", ">i8", ">f2", ">f4", ">f8")}
    made["largest"] = numpy.array([2**64 - 1, 0], "u8")
    made["smallest"] = numpy.array([-2**63, 2**63 - 1], "i8")
    made["c8"] = numpy.array([1 + 2j, -0.5j, 3], "c8")
    made[">c16"] = numpy.array([[1 + 2j, -0.5j], [numpy.nan, 1e10]], ">c16")
    made["special"] = numpy.array([numpy.nan, numpy.inf, -numpy.inf, -0.0, 1])
    made["nan"] = numpy.array([numpy.nan, numpy.inf], "f4")
    made["text"] = numpy.array([b"a", b"bcd", b"", b"\xff'\\"], "S4")
    made["scalar"] = numpy.array(2.5)
    made["empty"] = numpy.zeros((0, 3), "i4")
    made["one"] = numpy.array([[[7]]], "i2")
    made["fortran"] = numpy.asfortranarray(numpy.arange(24, dtype="i4").reshape(2, 3, 4))
    made["structs"] = structs(3)
    made["packed"] = numpy.array([(1, 2.5)], [("a", "i1"), ("b", "<f4")])
    made["deep"] = numpy.arange(2**8, dtype="u1").reshape((2,) * 8)
    return made


def half(first):
    """Returns parameters: the names of all arrays. make check runs every second one from the first (0 or 1)."""
    return [pytest.param(name, marks=() if i % 2 == first else pytest.mark.slow) for i, name in enumerate(arrays())]


def same(a, b):
    """Returns whether type, shape and bytes are equal; of structs the values, because numpy
    leaves their padding undefined."""
    describe = numpy.lib.format.dtype_to_descr
    values = (a == b).all() if a.dtype.names else a.tobytes() == b.tobytes()
    return describe(a.dtype) == describe(b.dtype) and a.shape == b.shape and values


def create(ctl, directory, name, array):
    """Creates a segment whose only view, "array", has the type, shape and values of the array."""
    path = os.path.join(directory, f"{name}.npy")
    numpy.save(path, array)
    ctl("load", "--create", path, name)
    return path


def object_of(daemon, name):
    """Returns the path of the memory of a segment, which every client that may write it can damage."""
    instance = daemon.said().split(", instance ")[1].split(",")[0]
    return f"/dev/shm/shmview.{instance}/{name}"


def cut_off(daemon, name):
    """Truncates the memory of a segment."""
    os.truncate(object_of(daemon, name), 0)


def on_terminal(ctl, *words, status=0, **env):
    """Returns what the program writes to a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen([CTL, *map(str, words)], env=dict(ctl.environment, **env), stdin=slave,
                               stdout=slave, stderr=slave, preexec_fn=end_with_parent)
    os.close(slave)
    out = b""
    while True:
        try:
            out += os.read(master, 65536)
        except OSError:  # no process has the other end any longer
            break
    os.close(master)
    assert process.wait(60) == status
    return out.decode()
