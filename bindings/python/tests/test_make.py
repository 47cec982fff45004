# SPDX-License-Identifier: Apache-2.0
"""make(): the size follows from the shape, the shape from the size, and both from an array."""

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


def facts(view):
    return view.format, view.shape, view.segment.size


def test_size_and_format():
    assert facts(shmview.make(4000, "f4")) == ("f", (1000,), 4000)
    assert facts(shmview.make(4096, "f4", (10, 10))) == ("f", (10, 10), 4096)
    assert facts(shmview.make(100)) == ("B", (100,), 100)
    view = shmview.make(64, "i4", (4,), (8,), 16, True)
    assert (view.strides, view.offset, view.readonly) == ((8,), 16, True)


def test_the_size_follows_from_the_shape():
    assert facts(shmview.make(format="f4", shape=(3, 4))) == ("f", (3, 4), 48)
    assert facts(shmview.make(format=float, shape=5)) == ("d", (5,), 40)
    assert facts(shmview.make(format="i2", shape=())) == ("h", (), 2)
    assert facts(shmview.make(shape=7)) == ("B", (7,), 7)
    assert facts(shmview.make(format="f4", shape=(3,), strides=(8,), offset=100)) == ("f", (3,), 120)
    assert facts(shmview.make(format="f4", shape=(0, 4))) == ("f", (0, 4), 1)


def test_an_array_has_format_and_shape():
    numpy = pytest.importorskip("numpy")
    source = numpy.ones((2, 3), "i2")
    view = shmview.make(format=source)
    assert facts(view) == ("h", (2, 3), 12) and view.array.sum() == 0
    assert facts(shmview.make(format=view)) == ("h", (2, 3), 12)
    assert facts(shmview.make(format=source, shape=4)) == ("h", (4,), 8)
    assert facts(shmview.make(format=numpy.float32, shape=2)) == ("f", (2,), 8)
    assert facts(shmview.make(format=numpy.dtype(("f4", (3,))), shape=2)) == ("f", (2, 3), 24)
    assert facts(shmview.make(format=numpy.dtype(("f4", (3,))))) == ("f", (3,), 12)


def test_name_and_options():
    view = shmview.make(format="f4", shape=3, name="kept", lifetime="manual", lock=False)
    view.release()
    assert shmview.stats("kept").lifetime == "manual" and not shmview.stats("kept").has_lock
    with pytest.raises(shmview.Exists):
        shmview.make(10, name="kept")
    shmview.remove("kept")


def test_refusals():
    with pytest.raises(TypeError, match="needs nbytes, or a shape"):
        shmview.make(format="f4")
    with pytest.raises(TypeError, match="number of bytes, not 'f4'"):
        shmview.make("f4", (3, 4))
    with pytest.raises(shmview.Bounds):
        shmview.make(4, "f4", (2,), name="refused", lifetime="manual")
    assert not shmview.exists("refused")
    with pytest.raises(shmview.FormatError):
        shmview.make(format="no format", shape=2, name="refused")
    assert not shmview.exists("refused")
