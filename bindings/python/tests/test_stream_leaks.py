# SPDX-License-Identifier: Apache-2.0
"""Frames leave no object and no memory behind."""

import gc
import os
import sys

import pytest

import shmview
from test_stream import create, opened

pytestmark = pytest.mark.usefixtures("daemon")


def test_nothing_leaks(no_leak):
    with create(slots=4, lossless=True) as stream, opened() as reader:
        def one():
            with stream.loan(0) as frame:
                frame["numbers"][0] = 5
            for each in reader:
                assert memoryview(each["numbers"])[0] == 5
                break
        no_leak(one)

        def failing():
            with pytest.raises(shmview.TimedOut):
                reader.take(0)
            with pytest.raises(shmview.NoLayout), stream.loan(0) as frame:
                frame["x"]
            stream.status(), stream.info, stream.death
        no_leak(failing)
        before = sys.getrefcount(reader), sys.getrefcount(shmview.Frame), sys.getrefcount(stream)
        for _ in range(10000):
            one()
        assert (sys.getrefcount(reader), sys.getrefcount(shmview.Frame), sys.getrefcount(stream)) == before
        assert stream.status().readers[0].holds == ()
    no_leak(lambda: create().close())
    gc.collect()


def test_memory_of_ten_thousand_frames(run):
    """The memory that is not Python's own: that of frames and of their views."""
    if "SHMVIEW_SANITIZE" in os.environ:
        pytest.skip("a sanitizer keeps freed memory for a while")
    run("""
import shmview
stream = shmview.create_stream(numbers=("i8", 10), slots=4, lossless=True)
reader = shmview.open_stream(stream.name)
reader.join()
def rounds(n):
    for _ in range(n):
        with stream.loan(0) as frame:
            frame["numbers"][0] = 5
        with reader.take(0) as frame:
            memoryview(frame["numbers"]), frame["numbers"].__dlpack__(max_version=(1, 0))
    return int(open("/proc/self/statm").read().split()[1]) * 4096
first = rounds(2000)
assert rounds(10000) - first < 400000  # less than 40 bytes of each frame
""")
