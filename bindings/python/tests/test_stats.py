# SPDX-License-Identifier: Apache-2.0
"""list(), exists() and stats(): segments by name, without an attachment."""

import os
import time

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


def test_names():
    assert shmview.list() == [] and not shmview.exists("b")
    b, a = shmview.create("b", 10), shmview.create("a", 10)
    assert shmview.list() == ["b", "a"] and shmview.exists("a") and not shmview.exists("c")
    b.remove()
    assert shmview.list() == ["a"] and not shmview.exists("b")
    removed, _ = shmview.stats().segments
    assert (removed.name, removed.is_named, removed.attachments) == ("b", False, 1)
    assert not shmview.exists("no/name") and not shmview.exists("")
    assert shmview.stats("a").attachments == 1  # nothing was attached for it
    a.close()
    b.close()


def test_figures_of_a_segment():
    before = time.time()
    seg = shmview.create("seg", 5000, lifetime="manual", one={"A": "i4"}, phase="one")
    late = shmview.attach("seg", access="read")
    seg.notify()
    with seg.locked():
        found = shmview.stats("seg")
        first, second = found.parties
    assert (found.name, found.size, found.lifetime, found.layouts) == ("seg", 5000, "manual", 1)
    assert (found.phase, found.generation, found.changes, found.owner_deaths) == ("one", seg.generation, seg.change, 0)
    assert (found.owner, found.has_lock, found.is_named, found.mode) == (os.getuid(), True, True, 0o600)
    assert before - 1 < found.created < time.time() + 1 and found.resident >= 5000
    assert (first.pid, first.uid, first.access, first.holds, first.waits) == (os.getpid(), os.getuid(), "write", "exclusive",
                                                                               None)
    assert (second.access, second.holds) == ("read", None) and second.slot != first.slot
    with late.shared():
        assert shmview.stats("seg").parties[0].holds == "shared"
    seg.remove()
    with pytest.raises(shmview.NotFound, match="no segment 'seg'") as caught:
        shmview.stats("seg")
    assert caught.value.name == "seg"
    late.close()
    seg.close()


def test_labels():
    seg = shmview.create("seg", 1, label="of the night run, µ")
    bare = shmview.create("bare", 1)
    assert (shmview.stats("seg").label, shmview.stats("bare").label) == ("of the night run, µ", "")
    for wrong in "", "x" * 64, "a\nb":
        with pytest.raises(shmview.Invalid, match="a label has 1 to 63 bytes"):
            shmview.create("other", 1, label=wrong)
    with pytest.raises(TypeError):
        shmview.create("other", 1, label=5)
    seg.close()
    bare.close()


def test_figures_of_the_daemon(daemon):
    found = shmview.stats()
    assert (found.version, found.pid, found.starts) == (shmview.__version__, daemon.process.pid, 1)
    assert abs(time.time() - found.started - found.uptime) < 5 and found.memory_free > 0 and found.segments == ()


def test_many_segments():
    segments = [shmview.create(f"s{i}", 10, lock=False) for i in range(250)]
    assert shmview.list() == [seg.name for seg in segments]
    for seg in segments:
        seg.close()
