# SPDX-License-Identifier: Apache-2.0
"""Segments: created, attached, closed, removed, and sent to other processes by pickle."""

import ast
import errno
import os
import pickle
import threading

import pytest
from conftest import PATIENCE, await_, descriptors

import shmview

pytestmark = pytest.mark.usefixtures("daemon")


def test_create_attach():
    seg = shmview.create("one", 4000)
    assert (seg.name, seg.size, seg.access, seg.closed) == ("one", 4000, "write", False)
    assert repr(seg) == "<shmview.Segment 'one', 4000 bytes, write>"
    other = shmview.attach("one", readonly=True)
    assert (other.size, other.access) == (4000, "read")
    memoryview(seg)[:3] = b"abc"
    assert bytes(memoryview(other)[:4]) == b"abc\0"
    assert memoryview(other).readonly and not memoryview(seg).readonly
    with pytest.raises(BufferError):
        seg_view = memoryview(seg)
        seg.close()
    seg_view.release()
    seg.close()
    seg.close()
    assert seg.closed and repr(seg) == "<shmview.Segment 'one', closed>" and seg.name == "one"
    for use in (lambda: seg.size, lambda: seg.lock(), lambda: memoryview(seg), seg.remove):
        with pytest.raises(ValueError, match="closed"):
            use()
    assert bytes(memoryview(other)[:3]) == b"abc"


def test_backings():
    sealed = shmview.create("sealed", 5000, backing="sealed")
    shmview.create("file", 10, lifetime="manual", backing="file").close()
    shmview.create("default", 10, lifetime="manual").close()
    assert [shmview.stats(name).backing for name in ("sealed", "file", "default")] == ["sealed", "file", "file"]
    assert shmview.zeros(3, backing="sealed").segment.name in shmview.list()
    with sealed.locked():
        sealed.buf[:3] = b"abc"
    assert bytes(shmview.attach("sealed").buf[:4]) == b"abc\0"
    with pytest.raises(ValueError, match="'file' or 'sealed', not 'wood'"):
        shmview.create("wood", 1, backing="wood")
    with pytest.raises(shmview.NoSpace, match="memory and swap hold"):
        shmview.create("big", 1 << 50, backing="sealed")
    for name in ("file", "default"):
        shmview.remove(name)


def test_own_memory():
    own, other = shmview.create("own", 5000, own_memory=True), shmview.create("other", 1)
    assert [shmview.stats(seg.name).paid_by for seg in (own, other)] == [os.geteuid(), -1]
    assert shmview.stats("own").backing == "sealed"
    with own.locked():
        own.buf[:3] = b"abc"
    assert bytes(shmview.attach("own", readonly=True).buf[:4]) == b"abc\0"
    with pytest.raises(shmview.NoSpace, match="memory and swap hold|control group of this process") as caught:
        shmview.create("big", 1 << 50, own_memory=True)
    assert caught.value.size == 1 << 50 and 0 < caught.value.free < caught.value.limit
    assert shmview.stats(shmview.zeros(3, own_memory=True).segment.name).paid_by == os.geteuid()
    with pytest.raises(shmview.Invalid, match="always sealed"):
        shmview.create("file", 1, backing="file", own_memory=True)


def present(segment):
    """How many pages of the segment are in the page table of this process."""
    n = segment.size // 4096
    with open("/proc/self/pagemap", "rb") as f:
        f.seek(segment.buf.address // 4096 * 8)
        return sum(entry >> 63 for entry in memoryview(f.read(n * 8)).cast("Q"))


@pytest.mark.parametrize("threads", [1, 3, 64])
def test_populate(threads):
    with shmview.create("populate", 1 << 20) as seg:
        assert present(seg) == 0
        seg.populate(threads=threads)
        assert present(seg) >= 240  # of 256: the kernel may take some out again, when it looks for unused memory
        assert not any(seg.buf)
        for wrong in (0, 65):
            with pytest.raises(ValueError, match=f"threads: 1 to 64, not {wrong}"):
                seg.populate(wrong)
    with shmview.create("small", 1) as seg:
        seg.populate(threads)
    with pytest.raises(ValueError, match="closed"):
        seg.populate()


def test_placement():
    nothing = {"huge": None, "huge_by": None, "huge_missing": None, "huge_bytes": 0, "numa": None, "nodes": []}
    with shmview.create("none", 1) as seg:
        assert seg.placement == nothing
    with shmview.create("small", 1, huge=True) as seg:
        assert seg.placement == {**nothing, "huge": "wanted", "huge_missing": "small"}
    for numa in ("local", "interleaved", 0):
        with shmview.create("numa", 1, numa=numa) as seg:
            assert seg.placement["numa"] == (numa if numa else "node")
    with pytest.raises(shmview.NoSpace, match="requires huge pages: it is smaller than a huge page"):
        shmview.create("small", 1, huge="required")
    with pytest.raises(ValueError, match="huge: False, True or 'required', not 'yes'"):
        shmview.create("small", 1, huge="yes")
    with pytest.raises(ValueError, match="numa: 'local', 'interleaved' or the number of a node, not 'far'"):
        shmview.create("small", 1, numa="far")
    for node in (-1, 63, 1 << 80):
        with pytest.raises(shmview.Invalid, match="placement"):
            shmview.create("small", 1, numa=node)


class Closes:
    """Closes the segment when a call converts this object: as a watch, as a time, as a number."""

    def __init__(self, segment):
        self.segment = segment

    def close(self):
        self.segment.close()

    def pause(self):
        del self.segment._watch  # otherwise close() calls pause() again
        self.close()

    def __float__(self):
        self.close()
        return 1.0

    def __index__(self):
        self.close()
        return 1


@pytest.mark.parametrize("call", ["close", "wait", "define", "populate"])
def test_closed_by_what_the_call_calls(call):
    connection = shmview.Connection()
    seg, other = (shmview.create(name, 100, connection=connection) for name in ("seg", "other"))
    if call == "close":
        seg._watch = Closes(seg)
        seg.close()
    else:
        calls = {"wait": lambda: seg.wait(timeout=Closes(seg)),
                 "define": lambda: seg._define("one", (("A", "i", 0, Closes(seg), None, None, False),)),
                 "populate": lambda: seg.populate(Closes(seg))}
        with pytest.raises(ValueError, match="closed"):
            calls[call]()
    assert seg.closed
    with pytest.raises(shmview.Busy, match="^1 segments"):
        connection.close()
    other.close()
    connection.close()  # nothing was counted twice


def sockets():
    return sum(target == "socket" for _, target in descriptors())


def test_attach_waits():
    found, before = [], sockets()

    def wait(n):
        found.append(shmview.attach("late", timeout=PATIENCE, readonly=n % 2 == 0))
    for n_threads in 1, 70:  # more than the daemon permits to monitor
        threads = [threading.Thread(target=wait, args=(n,)) for n in range(n_threads)]
        for thread in threads:
            thread.start()
        await_(lambda: sockets() > before, what="a subscriber")
        made = shmview.create("late", 10)
        for thread in threads:
            thread.join()
        assert [seg.name for seg in found] == ["late"] * n_threads
        for seg in [*found, made]:
            seg.close()
        found.clear()
        assert sockets() == before
    for timeout in 0, 0.001, 0.06:
        with pytest.raises(shmview.NotFound) as e:
            shmview.attach("late", timeout=timeout)
        assert e.value.name == "late"
    for wrong in -1, float("nan"):
        with pytest.raises(ValueError, match="timeout"):
            shmview.attach("late", timeout=wrong)
    with pytest.raises(ValueError, match="access='write' is not readonly"):
        shmview.attach("late", readonly=True, access="write")


def test_errors():
    seg = shmview.create("one", 10)
    with pytest.raises(shmview.Exists) as e:
        shmview.create("one", 10)
    assert isinstance(e.value, FileExistsError) and isinstance(e.value, shmview.Error)
    assert (e.value.name, e.value.size, e.value.code) == ("one", 10, 4)
    with pytest.raises(FileNotFoundError) as e:
        shmview.attach("nobody")
    assert (e.value.name, e.value.access) == ("nobody", "write")
    for size in (0, -1, 1 << 64, 1 << 63):
        with pytest.raises(ValueError):
            shmview.create("two", size)
    with pytest.raises(shmview.Invalid):
        shmview.create("a b", 1)
    with pytest.raises(ValueError, match="lifetime"):
        shmview.create("two", 1, lifetime="long")
    with pytest.raises(TypeError):
        shmview.Segment()
    again = pickle.loads(pickle.dumps(e.value))
    assert (type(again), str(again), again.name) == (type(e.value), str(e.value), "nobody")
    assert seg.lock_status().held is False


def test_errors_have_the_attributes_of_their_stubs():
    stubs = os.path.join(os.path.dirname(shmview.__file__), "_errors.pyi")
    with open(stubs) as file:
        classes = [node for node in ast.parse(file.read()).body if isinstance(node, ast.ClassDef)]
    attributes = [(node.name, member.target.id) for node in classes for member in node.body
                  if isinstance(member, ast.AnnAssign)]
    assert len(attributes) > 20
    for name, attribute in attributes:
        assert hasattr(getattr(shmview, name)(), attribute), (name, attribute)


def test_no_space():
    with pytest.raises(shmview.NoSpace) as e:
        shmview.create("one", 1 << 50)
    assert isinstance(e.value, MemoryError) and e.value.errno == errno.ENOSPC
    assert e.value.size == 1 << 50 and 0 <= e.value.free <= e.value.limit < 1 << 50


def test_lock():
    seg = shmview.create("one", 10)
    with seg.locked() as same:
        assert same is seg
        with seg.locked():
            assert seg.lock_status().held
        assert seg.trylock()
        seg.unlock()
        with pytest.raises(shmview.Busy):
            seg.close()
    with pytest.raises(shmview.NotOwner):
        seg.unlock()
    with seg.shared() as same:
        assert same is seg
        with pytest.raises(shmview.Deadlock):
            seg.lock()
    other = shmview.attach("one")
    with seg.locked():
        assert not other.trylock()
        with pytest.raises(TimeoutError):
            other.lock(timeout=0.01)
        status = seg.lock_status()
        assert [party.role for party in status.parties] == ["holds"]


def test_pickle(run):
    seg = shmview.create("one", 10)
    memoryview(seg)[:2] = b"hi"
    copy = pickle.loads(pickle.dumps(seg))
    assert copy is not seg and copy.name == "one" and bytes(copy)[:2] == b"hi"
    text = run("import pickle, sys; s = pickle.loads(bytes.fromhex(sys.argv[1]));"
               "memoryview(s)[2:4] = b'ho'; print(s)", pickle.dumps(seg).hex())
    assert text == "<shmview.Segment 'one', 10 bytes, write>\n"
    assert bytes(seg)[:4] == b"hiho"


def test_remove():
    seg = shmview.create("one", 10, lifetime="manual")
    seg.close()
    seg = shmview.attach("one")
    seg.remove()
    with pytest.raises(FileNotFoundError):
        shmview.remove("one")


def test_no_leak(no_leak):
    seg = shmview.create("one", 10)

    def errors():
        try:
            shmview.create("one", 10)
        except shmview.Exists:
            pass
    no_leak(errors)

    def locks():
        with seg.locked(), seg.shared(), shmview.attach(seg.name):
            seg.lock_status()
    no_leak(locks)
    no_leak(lambda: memoryview(seg).release())
    no_leak(lambda: shmview.create("two", 10).close(), 50)
    no_leak(lambda: shmview.create("two", 10), 50)
