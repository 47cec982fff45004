# SPDX-License-Identifier: Apache-2.0
"""Streams in top, which nobody has to ask for: their figures, how many are looked into, and that neither a
damaged stream nor the end of one disturbs the others."""

import pytest

from arrays import cut_off
from conftest import await_
from test_metrics_streams import create_many, damage
from test_streams import READ, client, create, frames, looks, replay  # noqa: F401 (client is a fixture)

HEADING = ["STREAM", "MODE", "STG", "FRAMES/S", "BYTES/S", "RDRS", "LAG", "MISSED", "FREE/LOANED/HELD"]


@pytest.fixture
def terminal():
    """Returns the class of terminals that run top."""
    return pytest.importorskip("test_top").Terminal


def on(terminal, ctl, *words, **options):
    """Runs top on a terminal; the model of one does not know how xterm scrolls a part of the screen."""
    return terminal(ctl, *words, TERM="linux", **options)


def page(ctl, *words):
    """Returns the lines that top prints of streams, by their first word."""
    lines = ctl("top", "-b", "-n", "1", *words).out.splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("STREAM ")), len(lines))
    assert at == len(lines) or lines[at].split() == HEADING
    return {line.split(maxsplit=1)[0]: line.split(maxsplit=1)[1] for line in lines[at + 1:]}


def test_streams_are_below_the_segments(ctl, client, tmp_path):
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")
    assert page(ctl) == {}
    create(ctl, "latest", "--slots", "4", "--stages", "2", "image=u1[4,6]")
    reader = client(READ)
    reader.do("lib.shmview_stream_join(s)")
    replay(ctl, tmp_path, frames(3), "cam")
    reader.do("frame_of('shmview_stream_take', s)")
    lines = ctl("top", "-b", "-n", "1", "-s", "name").out.splitlines()
    assert [line.split()[0] for line in lines[3:]] == ["NAME", "cam", "seg", "STREAM", "cam"]
    assert lines[-1].split() == ["cam", "latest", "2", "-", "-", "1", "2", "0", "1/0/1", "of", "4"]
    assert page(ctl, "s*") == {}
    reader.do("drop('shmview_frame_release')")


def test_rates_and_details(ctl, client, tmp_path):
    create(ctl, "latest", "--slots", "4", "image=u1[4,6]")
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")
    reader = client(READ)
    reader.do("lib.shmview_stream_join(s)")
    replay(ctl, tmp_path, frames(3), "cam")
    head, line, stage, behind = ctl("top", "--streams", "-b", "-n", "1").out.splitlines()
    assert head.split() == HEADING and line.split()[:5] == ["cam", "latest", "1", "-", "-"]
    assert stage == "  stage 0: - frames/s, -/s, 3 published, ended"
    assert behind.split() == [str(reader.pid), "python3", "lag", "3,", "missed", "0,", "holds", "0"]
    watcher = ctl.start("top", "--streams", "-b", "-d", "200ms", "cam")
    for _ in range(4):
        watcher.stdout.readline()  # the first page
    replay(ctl, tmp_path, frames(2), "cam")
    rates = []
    while not stage.endswith("/s, 5 published, ended"):
        line = watcher.stdout.readline()
        if line.startswith("cam "):
            stage = watcher.stdout.readline().rstrip()
            rates.append(float(line.split()[3]))
            assert stage.startswith(f"  stage 0: {rates[-1]:.1f} frames/s, ")
    assert 0 < sum(rates) <= 2 / 0.2  # a page is at least that long after the one before
    watcher.terminate()
    watcher.communicate(timeout=60)
    assert ctl("top", "--streams", "-b", "-n", "1", "mic").out == ""


def test_it_lets_go_of_a_stream_that_is_removed(ctl, terminal):
    create(ctl, "latest")
    top = on(terminal, ctl)
    top.shows("cam      latest ")
    assert ctl.segments()[0]["attached"] == 1
    ctl("remove", "cam")
    top.shows("0 of 0 segments")
    top.hides("STREAM")
    top.quit()


def test_a_stream_ends_with_the_programs_that_use_it(ctl, terminal, party):
    """Watching does not keep a stream that ends with its last attachment: its name is free again."""
    writer, reader = party(), party()
    writer.do("s = shmview.create_stream('cam', a='i4', slots=4)")
    reader.do("s = shmview.open_stream('cam'); s.join()")
    one, other = on(terminal, ctl), on(terminal, ctl)
    for top in one, other:
        top.shows("cam      latest ")
    writer.do("s.close()")
    for top in one, other:
        top.await_(lambda lines: any(line.split()[:6] == ["cam", "latest", "1", "0.0", "0B", "1"]
                                     for line in lines), "a stream that has a reader")
    reader.do("s.close()")
    for top in one, other:
        top.shows("0 of 0 segments")
    writer.do("s = shmview.create_stream('cam', a='i4', slots=4)")
    for top in one, other:
        top.shows("cam      latest ")
    writer.do("s.close()")
    for top in one, other:
        top.shows("0 of 0 segments")
        top.quit()


def test_it_stays_attached_only_if_it_returns_soon(ctl):
    create(ctl, "latest")
    before = len(looks(ctl))
    for delay, attached in ("2s", 1), ("1h", 0):
        watcher = ctl.start("top", "-b", "-d", delay)
        lines = [watcher.stdout.readline() for _ in range(7)]
        assert lines[-1].startswith("cam      latest ")
        await_(lambda: ctl.segments()[0]["attached"] == attached, what=f"{attached} attachments")
        watcher.terminate()
        watcher.communicate(timeout=60)
        await_(lambda: ctl.segments()[0]["attached"] == 0, what="the end of top")
    assert len(looks(ctl)) == before + 4  # one for the header, and one to stay


def test_it_looks_into_so_many(ctl, party):
    create_many(party, 70)
    before = len(looks(ctl))
    rows = page(ctl, "-s", "name")
    assert list(rows) == [f"s{i:02}" for i in range(64)] + ["6"]
    assert rows["6"] == "more segments may be streams; top looks into 64: a filter chooses them"
    assert len(looks(ctl)) - before == 2 * 64
    assert list(page(ctl, "-s", "name", "s6*")) == [f"s{i:02}" for i in range(60, 70)]


def test_what_cannot_be_shown_costs_its_row_only(ctl, daemon, terminal):
    for name in "bad", "cam", "cut":
        ctl("stream", "create", name, "-m", "latest", "image=u1[4,6]")
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")
    damage(daemon, "bad")
    rows = page(ctl)
    assert sorted(rows) == ["bad", "cam", "cut"]
    assert "version 99" in rows["bad"]
    # a handle of memory that is gone cannot be closed, so its bytes stay until the end
    top = on(terminal, ctl, ASAN_OPTIONS="detect_leaks=0")
    top.shows("cut      latest ")
    gone = "cut      its memory is gone: a client has truncated it"

    def is_shown(lines):
        cut_off(daemon, "cut")  # again, because the daemon may give the bytes back before top looks
        return any(gone in line for line in lines)
    top.await_(is_shown, gone)
    top.shows("cam      latest ")
    top.quit()


def test_pages_of_streams(ctl, client, terminal, tmp_path):
    create(ctl, "latest", "--slots", "4", "image=u1[4,6]")
    reader = client(READ)
    reader.do("lib.shmview_stream_join(s)")
    replay(ctl, tmp_path, frames(3), "cam")
    detail = f"    {reader.pid:8} python3          lag 3, missed 0, holds 0"
    top = on(terminal, ctl, "-s", "name")
    top.shows("cam      latest ")
    top.hides(detail)
    top.press("s")
    top.shows(detail)
    top.hides("NAME ")
    top.press("s\r")  # and the page of the segment
    top.shows("nobody holds the lock or waits for it")
    top.shows(detail)
    top.press("q")
    assert top.end() == 0
    top = on(terminal, ctl, "--streams")
    top.shows(detail)
    ctl("remove", "cam")
    top.shows("No streams among these segments.")
    top.quit()


def test_a_small_screen_is_for_both(ctl, party, terminal):
    create_many(party, 20)
    top = on(terminal, ctl, "-s", "name", rows=20)
    top.shows("17 more lines: s shows all streams")
    names = [line.split()[0] for line in top.lines[3:19]]
    assert names == ["NAME"] + [f"s{i:02}" for i in range(10)] + ["STREAM"] + [f"s{i:02}" for i in range(3)] + ["17"]
    top.press("G")  # the list scrolls above the streams
    top.await_(lambda lines: top.chosen() == "s19" and lines[13].startswith("s19"), "the last one")
    top.resize(8, 100)  # no room for a heading and a stream
    top.hides("STREAM")
    top.quit()
