# SPDX-License-Identifier: Apache-2.0
"""web: streams, their parties, and the views of their frames."""

import json
import os
import struct

import pytest

from conftest import await_
from webclient import web  # noqa: F401

pytestmark = pytest.mark.skipif("SHMVIEW_WEB" not in os.environ, reason="built without libmicrohttpd")


def test_a_stream(web, ctl):
    ctl("stream", "create", "frames", "a=f4[16]", "--slots", "4", "--mode", "latest")
    server = web().enter()
    got = server.json("/api/stream?name=frames")
    assert [slot["state"] for slot in got["slots"]] == ["free"] * 4
    assert got["readers"] == [] and got["stages"] == [{"published": 0, "ended": False}]
    ctl("create", "other", 4096)
    server.error("/api/stream?name=other")
    server.error("/api/stream?name=none", status=404)
    server.error("/api/stream")


def test_the_parties_of_a_stream(web, ctl, party):
    ctl("stream", "create", "frames", "a=f4[16]", "--slots", "4", "--stages", "2", "--mode", "lossless")
    server, writer, reader = web().enter(), party(), party()
    reader.do("s = shmview.open_stream('frames')")
    writer.do("s = shmview.open_stream('frames', 'write')")
    reader.begin("f = s.take(timeout=60)")
    await_(lambda: server.json("/api/stream?name=frames")["readers"], what="the reader")
    for _ in range(2):
        writer.do("s.loan().publish()")
    reader.end()
    got = server.json("/api/stream?name=frames")
    assert (got["mode"], got["sees_readers"]) == ("lossless", True)
    assert [stage["published"] for stage in got["stages"]] == [2, 0]
    one, = got["readers"]
    assert (one["pid"], one["stage"], one["held"], one["lag"], one["missed"], one["has_left"]) == (reader.pid, 0, 1, 1, 0, False)
    assert sorted(slot["state"] for slot in got["slots"]) == ["free", "free", "held", "published"]
    reader.do("f.release()")


TAKE_ALL_SLOTS = """
every = []
try:
    while True:
        every.append(shmview.attach('frames', access='read'))
except shmview.NoSlot:
    pass
"""


def test_a_stream_whose_slots_are_taken(web, ctl, party):
    """The page and show still look at it, but do not see its readers."""
    ctl("stream", "create", "frames", "a=f4[16]", "--slots", "4", "--mode", "latest")
    server, one = web().enter(), party()
    one.do(TAKE_ALL_SLOTS)
    got = server.json("/api/stream?name=frames")
    assert got["sees_readers"] is False and [slot["state"] for slot in got["slots"]] == ["free"] * 4
    assert "its readers are not seen: all slots of its lock are taken" in ctl("show", "frames").out
    one.do("[each.close() for each in every]")
    assert server.json("/api/stream?name=frames")["sees_readers"] is True


VIEW = "segment=frames&layout=frame&view=a"
PUBLISH = "f = s.loan(); f['a'][:] = [{0}] * 16; f.publish()"


def test_a_view_is_that_of_the_newest_frame(web, ctl, party):
    ctl("stream", "create", "frames", "a=f4[16]", "--slots", "4", "--mode", "latest")
    server, writer = web().enter(), party()
    assert "has no frame" in server.error(f"/api/grid?{VIEW}", status=404)
    writer.do("s = shmview.open_stream('frames', 'write')")
    for i in range(1, 9):
        writer.do(PUBLISH.format(i))
        got = server.json(f"/api/grid?{VIEW}")
        assert (got["cells"], got["state"]) == ([[str(i)] * 10, [str(i)] * 6 + [None] * 4], "clean")
    head, data = server.picture(f"/api/line?{VIEW}&columns=1&lock=1")
    assert (head["state"], data) == ("clean", struct.pack("=2d", 8, 8))
    assert server.json(f"/api/histogram?{VIEW}&slice=3:")["n"] == 13
    assert server.ask(f"/api/npy?{VIEW}").bytes.endswith(struct.pack("=16f", *[8] * 16))
    # writers take no lock, so nobody knows whether other bytes are of one moment
    for lock in "", "&lock=1":
        assert server.json(f"/api/grid?segment=frames&as=uint8{lock}")["state"] == "unchecked"
    # the page joins as no reader
    assert server.json("/api/stream?name=frames")["readers"] == []


def test_a_frame_cannot_be_changed(web, ctl, party):
    ctl("stream", "create", "frames", "a=f4[16]", "--slots", "4", "--mode", "latest")
    server, writer, reader = web("--port", "0", "--allow-changes").enter(), party(), party()
    writer.do("s = shmview.open_stream('frames', 'write')")
    reader.do("s = shmview.open_stream('frames'); s.join()")
    for i in 1, 2:
        writer.do(PUBLISH.format(i))
    reader.do("f = s.take(timeout=60)")
    for where in {"layout": "frame", "view": "a"}, {"as": "float32"}:
        body = json.dumps({"segment": "frames", **where, "index": [3], "value": "7"}).encode()
        assert "is a stream" in server.error("/api/set", "POST", body, status=403)
    assert reader.do("str(f['a'].tolist())") == str([1.0] * 16)
    reader.do("f.release()")
