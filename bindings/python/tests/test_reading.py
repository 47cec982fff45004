# SPDX-License-Identifier: Apache-2.0
"""reading(): reads without the lock, which show afterwards whether somebody wrote."""

import os

import pytest

import shmview
from conftest import await_


def test_nobody_writes(seg):
    view = seg.cast("i4", 4)
    view[:] = [1, 2, 3, 4]
    with seg.reading() as r:
        assert r.valid
        copy = view.tolist()
    assert r.valid and copy == [1, 2, 3, 4]
    with seg.shared():  # readers do not disturb each other
        with r:
            pass
        assert r.valid
    del view


def test_somebody_wrote(seg):
    other = shmview.attach("seg")
    with seg.reading() as r:
        with other.locked():
            other.buf[0] = 1
        assert not r.valid
    assert not r.valid
    with seg.reading() as r:
        pass
    with other.locked():
        pass
    assert r.valid  # the block was over
    other.close()


def test_somebody_is_inside(seg):
    other = shmview.attach("seg", access="read")
    with other.locked():
        with seg.reading() as r:
            assert not r.valid
    assert not r.valid
    with seg.locked():  # this thread itself
        with seg.reading() as r:
            pass
        assert not r.valid
    other.close()


def test_an_owner_died_inside(seg):
    pid = os.fork()
    if pid == 0:
        seg.lock()
        os._exit(0)
    os.waitpid(pid, 0)
    await_(lambda: seg.lock_status().owner_is_dead, what="the death of the owner")
    with seg.reading() as r:
        pass
    assert not r.valid
    with seg.recover():
        pass
    with seg.reading() as r:
        pass
    assert r.valid


def test_an_exception_of_the_block_passes(seg):
    with pytest.raises(ZeroDivisionError):
        with seg.reading() as r:
            1 / 0
    assert r.valid


def test_a_child(seg):
    with seg.reading() as r:
        pid = os.fork()
        if pid == 0:
            with seg.reading() as its:
                ok = its.valid
            with seg.locked():
                pass
            os._exit(0 if ok else 1)
        assert os.waitpid(pid, 0)[1] == 0
        assert not r.valid
    await_(lambda: shmview.stats("seg").attachments == 1, what="the end of the child's attachment")


def test_refusals(daemon):
    plain = shmview.create("plain", 10, lock=False)
    with pytest.raises(shmview.NoLock):
        plain.reading().__enter__()
    plain.close()
    seg = shmview.create("seg", 10)
    peek = shmview.attach("seg", access="peek")
    with pytest.raises(shmview.NoLock):
        peek.reading().__enter__()
    peek.close()
    r = seg.reading()
    assert not r.valid and repr(r).startswith("<shmview.Reading")
    with pytest.raises(TypeError):
        shmview.Reading()
    with pytest.raises(ValueError, match="closed"):
        with r:
            seg.close()
            r.valid
    with pytest.raises(ValueError, match="closed"):
        r.__enter__()


def test_no_leak(seg, no_leak):
    def read():
        with seg.reading() as r:
            return r.valid
    no_leak(read)
