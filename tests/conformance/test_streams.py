# SPDX-License-Identifier: Apache-2.0
"""Streams between every ordered pair of languages: one writes, the other one reads. The bytes, the numbers,
the deaths and the errors are the same."""

import itertools
import re
import time

import pytest

from peers import DRIVERS, PATIENCE_S, Refused, await_

VIEWS = [{"name": "image", "format": "B", "shape": [3, 2]}, {"name": "points", "format": "T{h:x:d:y:}", "shape": [2]},
         {"name": "gain", "format": "<f"}]
SOON = PATIENCE_S * 1000
pairs = pytest.mark.parametrize("languages", list(itertools.product(DRIVERS, repeat=2)), ids="-".join)


def share(crowd, languages, access="read", **options):
    """The first one creates the stream "t", the second one opens it and joins."""
    writer, reader = crowd.of(languages)
    for peer in (writer, reader):
        if not peer.has_streams:
            pytest.skip(f"{peer.language} has no streams")
    writer.ask("stream_create", stream="t", name="frames", views=VIEWS, **options)
    reader.ask("stream_open", stream="t", name="frames", access=access)
    reader.ask("stream_join", stream="t")
    return writer, reader


def part(*peers):
    for peer in peers:
        peer.ask("stream_close", stream="t")


def write(writer, number, **carried):
    """Publishes a frame whose image has this number everywhere."""
    writer.ask("loan", stream="t", frame="f", timeout_ms=SOON)
    writer.ask("frame_set", frame="f", **carried)
    writer.ask("frame_view", frame="f", name="image")
    rows = carried.get("lengths", [3])[0]
    writer.ask("assign", view="f.image", values=[[number] * 2] * rows)
    return writer.ask("publish", frame="f")


def number_in(reader, frame):
    """Returns the number that the whole image has."""
    reader.ask("frame_view", frame=frame, name="image")
    numbers = {number for row in reader.ask("values", view=f"{frame}.image") for number in row}
    assert len(numbers) == 1
    return numbers.pop()


def read(reader, **how):
    """Takes and releases a frame. Returns its sequence number, how many were missed, and its number."""
    told = reader.ask("take", stream="t", frame="f", timeout_ms=SOON, **how)
    number = number_in(reader, "f")
    reader.ask("release", frame="f")
    return [told["sequence"], told["missed"], number]


def refused(peer, do, **request):
    with pytest.raises(Refused) as e:
        peer.ask(do, **request)
    return e.value


@pairs
def test_a_frame_is_the_same(crowd, languages):
    writer, reader = share(crowd, languages, lossless=True, slots=4, history=1, stages=2)
    info = writer.ask("stream_info", stream="t")
    assert info == reader.ask("stream_info", stream="t")
    assert {key: info[key] for key in info if key != "frame_bytes"} == {
        "lossless": True, "slots": 4, "history": 1, "stages": 2, "stage": 0}
    writer.ask("loan", stream="t", frame="f", timeout_ms=0)
    writer.ask("frame_set", frame="f", user="00ff41", time_ns=123456789012345, lengths=[2, 1])
    values = {"image": [[1, 2], [3, 255]], "points": [[-7, 0.5]], "gain": 1.5}
    for name, value in values.items():
        writer.ask("frame_view", frame="f", name=name)
        writer.ask("assign", view=f"f.{name}", values=value)
    facts = {name: writer.ask("facts", view=f"f.{name}") for name in values}
    assert writer.ask("publish", frame="f") == 1
    assert reader.ask("take", stream="t", frame="g", timeout_ms=SOON) == {
        "sequence": 1, "missed": 0, "time_ns": 123456789012345, "user": "00ff41"}
    for name, value in values.items():
        reader.ask("frame_view", frame="g", name=name)
        assert reader.ask("values", view=f"g.{name}") == value
        seen = reader.ask("facts", view=f"g.{name}")
        assert seen["readonly"] and not facts[name]["readonly"]
        for key in ("format", "shape", "strides", "itemsize"):
            assert seen[key] == facts[name][key]
    reader.ask("release", frame="g")
    before = time.monotonic_ns()
    write(writer, 9)
    told = reader.ask("take", stream="t", frame="g", timeout_ms=SOON)
    assert before <= told["time_ns"] <= time.monotonic_ns() and told["user"] == "" and number_in(reader, "g") == 9
    reader.ask("release", frame="g")
    part(writer, reader)


@pairs
def test_lossless(crowd, languages):
    writer, reader = share(crowd, languages, lossless=True, slots=3)
    for number in range(3):
        assert write(writer, number) == number + 1
    error = refused(writer, "loan", stream="t", frame="f", timeout_ms=1)
    assert error.code == 32 and f"pid {reader.pid} " in error.text and "has not taken 3 frames" in error.text
    writer.tell("loan", stream="t", frame="f", timeout_ms=SOON)
    assert read(reader) == [1, 0, 0]
    writer.answer()
    writer.ask("discard", frame="f")
    assert [read(reader), read(reader)] == [[2, 0, 1], [3, 0, 2]]
    reader.tell("take", stream="t", frame="g", timeout_ms=SOON)
    write(writer, 7)
    assert reader.answer()["sequence"] == 4
    assert number_in(reader, "g") == 7
    reader.ask("release", frame="g")
    writer.ask("stream_finish", stream="t")
    assert reader.ask("take", stream="t", frame="g", timeout_ms=SOON) == "ended"
    part(writer, reader)


@pairs
def test_the_latest(crowd, languages):
    writer, reader = share(crowd, languages, slots=5, history=2)
    for number in range(9):
        write(writer, number)
    reader.ask("take", stream="t", frame="held", timeout_ms=0)
    held = number_in(reader, "held")
    for number in range(20, 29):
        write(writer, number)
    assert number_in(reader, "held") == held  # a frame that is held is never overwritten
    assert "held" in writer.ask("stream_status", stream="t")["slots"]
    assert read(reader, latest=True) == [18, 17 - held - 1, 28]
    assert refused(reader, "take", stream="t", frame="g", timeout_ms=0).code == 32
    status = writer.ask("stream_status", stream="t")
    assert status == reader.ask("stream_status", stream="t")
    assert status["published"] == [18] and status["writer"] == writer.pid and status["deaths"] == 0
    assert status["readers"] == [[reader.pid, 0, 19, 0, 16]]
    reader.ask("release", frame="held")
    part(writer, reader)


@pairs
def test_stages(crowd, languages):
    writer, reader = share(crowd, languages, access="write", lossless=True, slots=4, stages=2)
    writer.ask("stream_open", stream="end", name="frames:1")
    writer.ask("stream_create", stream="idle", name="idle", views=VIEWS)
    for stream in ("end", "idle"):
        writer.ask("stream_join", stream=stream)
    for number in range(6):
        write(writer, number)
        reader.ask("take", stream="t", frame="g", timeout_ms=SOON)
        if number % 2:
            assert reader.ask("pass", frame="g", stage=1) == number // 2 + 1
            assert refused(reader, "pass", frame="g", stage=1).code == 4
            assert writer.ask("stream_wait", streams=["idle", "end"], timeout_ms=SOON) == 1
        reader.ask("release", frame="g")
        if number % 2:
            told = writer.ask("take", stream="end", frame="h", timeout_ms=SOON)
            assert told["sequence"] == number // 2 + 1 and number_in(writer, "h") == number
            writer.ask("release", frame="h")
    for stream in ("end", "idle"):
        writer.ask("stream_close", stream=stream)
    part(writer, reader)


@pairs
def test_a_writer_is_killed(crowd, languages):
    writer, reader = share(crowd, languages, access="write", lossless=True, slots=3)
    write(writer, 1)
    writer.ask("loan", stream="t", frame="f", timeout_ms=0)
    writer.ask("frame_view", frame="f", name="image")
    writer.ask("assign", view="f.image", values=[[66, 66]] * 3)
    with open(f"/proc/{writer.pid}/comm") as comm:
        command = comm.read().strip()
    before = time.monotonic_ns()
    writer.die()
    assert read(reader) == [1, 0, 1]
    died = reader.ask("take", stream="t", frame="g", timeout_ms=SOON)
    assert died["pid"] == writer.pid and died["command"] == command
    assert before <= died["when_ns"] + 1000 and died["when_ns"] <= time.monotonic_ns()
    assert refused(reader, "take", stream="t", frame="g", timeout_ms=0).code == 32  # it is reported once
    next_one = crowd.of(languages)[0]
    next_one.ask("stream_open", stream="t", name="frames", access="write")
    assert write(next_one, 2) == 2
    assert read(reader) == [2, 0, 2]
    assert reader.ask("stream_status", stream="t")["deaths"] == 1
    part(reader, next_one)


@pairs
def test_a_reader_is_killed(crowd, languages):
    writer, reader = share(crowd, languages, lossless=True, slots=2)
    for number in range(2):
        write(writer, number)
        reader.ask("take", stream="t", frame=f"g{number}", timeout_ms=SOON)
    error = refused(writer, "loan", stream="t", frame="f", timeout_ms=1)
    assert error.code == 32 and f"pid {reader.pid} " in error.text
    writer.tell("loan", stream="t", frame="f", timeout_ms=SOON)
    reader.die()
    writer.answer()
    assert writer.ask("publish", frame="f") == 3
    await_(lambda: "held" not in writer.ask("stream_status", stream="t")["slots"], "the frames of the dead reader")
    part(writer)


TOLD = {}  # texts, from the pair that was asked first


@pairs
def test_what_is_refused(crowd, languages):
    writer, reader = share(crowd, languages, slots=3)
    write(writer, 1)
    reader.ask("take", stream="t", frame="g", timeout_ms=0)
    writer.ask("loan", stream="t", frame="f", timeout_ms=0)
    reader.ask("stream_open", stream="second", name="frames", access="write")
    cases = [
        (reader, 36, ("loan", {"stream": "t", "frame": "x", "timeout_ms": 0})),
        (reader, 36, ("stream_finish", {"stream": "t"})),
        (reader, 41, ("loan", {"stream": "second", "frame": "x", "timeout_ms": 0})),
        (reader, 32, ("take", {"stream": "t", "frame": "x", "timeout_ms": 0})),
        (reader, 32, ("stream_wait", {"streams": ["t", "t"], "timeout_ms": 0})),
        (reader, 36, ("pass", {"frame": "g", "stage": 0})),
        (reader, 3, ("stream_open", {"stream": "x", "name": "none"})),
        (reader, 1, ("stream_open", {"stream": "x", "name": "frames:1"})),
        (writer, 4, ("stream_create", {"stream": "x", "name": "frames", "views": VIEWS})),
        (writer, 1, ("stream_create", {"stream": "x", "name": "other", "views": VIEWS, "slots": 1})),
        (writer, 14, ("frame_set", {"frame": "f", "lengths": [4]})),
    ]
    for peer, code, (do, request) in cases:
        error = refused(peer, do, **request)
        assert error.code == code, error.text
        text = re.sub(r"[0-9]+|\([^)]*\)", "N", error.text)
        assert text and text == TOLD.setdefault((do, str(request)), text)
    reader.ask("stream_close", stream="second")
    writer.ask("discard", frame="f")
    reader.ask("release", frame="g")
    part(reader, writer)
