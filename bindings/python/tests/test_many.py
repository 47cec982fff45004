# SPDX-License-Identifier: Apache-2.0
"""attach() with many names."""

import threading
import time

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


def make(n):
    return [shmview.create(None, 4096) for _ in range(n)]


def names_of(segments):
    return [segment.name for segment in segments]


def test_all():
    made = make(70)
    names = names_of(made)
    for argument in names, tuple(names):
        segments = shmview.attach(argument)
        assert names_of(segments) == names
        for i, segment in enumerate(segments):
            made[i].buf[0] = i
            with segment.locked():
                assert segment.buf[0] == i
        for segment in segments:
            segment.close()
    assert shmview.attach([]) == []


def test_options():
    kept = make(2)
    names = names_of(kept)
    for segment in shmview.attach(names, readonly=True):
        assert segment.access == "read"
    for segment in shmview.attach([names[0]] * 2, access="peek", populate=True):
        with pytest.raises(shmview.NoLock):
            segment.lock()
    with pytest.raises(ValueError, match="'peek', 'read' or 'write', not 'all'"):
        shmview.attach(names, access="all")


def test_one_that_is_missing_undoes_all():
    kept = make(3)
    names = names_of(kept)
    with pytest.raises(shmview.NotFound, match="missing"):
        shmview.attach([names[0], "missing", names[2]])
    assert [shmview.stats(name).attachments for name in names] == [1, 1, 1]
    for wrong in [names[0], 7], [names[0], None]:
        with pytest.raises(TypeError):
            shmview.attach(wrong)
    for wrong in [names[0], "a\0b"], [names[0], ""]:
        with pytest.raises(ValueError):
            shmview.attach(wrong)


def test_waits_for_each():
    kept = make(1)
    first = kept[0].name

    def create():
        time.sleep(0.1)
        kept.append(shmview.create("late", 4096))

    thread = threading.Thread(target=create)
    thread.start()
    segments = shmview.attach([first, "late"], timeout=60)
    thread.join()
    assert names_of(segments) == [first, "late"]
    with pytest.raises(shmview.NotFound, match="never"):
        shmview.attach([first, "never"], timeout=0.05)
