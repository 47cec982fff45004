# SPDX-License-Identifier: Apache-2.0
"""stream, and streams in show, get, list, metrics and the other verbs."""

import os
import time

import pytest

from conftest import await_

numpy = pytest.importorskip("numpy")

# A client in C, by ctypes: it loans and takes frames, and keeps them.
CLIENT = """
import ctypes, os
lib = ctypes.CDLL(os.environ["SHMVIEW_LIBRARY"])
conn, frames = ctypes.c_void_p(), []
assert lib.shmview_connect(None, 0, ctypes.byref(conn)) == 0
def open_stream(name, access):
    stream = ctypes.c_void_p()
    assert lib.shmview_stream_open(conn, name.encode(), access, ctypes.byref(stream)) == 0
    return stream
def frame_of(call, stream):
    frames.append(ctypes.create_string_buffer(256))
    assert getattr(lib, call)(stream, ctypes.c_int64(0), frames[-1]) == 0
def drop(call):
    getattr(lib, call)(frames.pop())
"""
READ, WRITE = 2, 3


@pytest.fixture
def client(party):
    """Returns a client that has opened the stream 'cam' as s."""
    def make(access):
        one = party()
        one.do(CLIENT)
        one.do(f"s = open_stream('cam', {access})")
        return one
    return make


def stream(ctl, name="cam"):
    return ctl("show", "-J", name).json["stream"]


def create(ctl, mode, *words):
    ctl("stream", "create", "cam", "--mode", mode, *(words or ["image=u1[4,6]"]))


def frames(n=5, shape=(4, 6), dtype="u1"):
    count = n * int(numpy.prod(shape))
    return numpy.arange(count).astype(dtype).reshape(n, *shape)


def replay(ctl, path, array, *words, **options):
    numpy.save(path / "in.npy", array)
    return ctl("replay", path / "in.npy", *words, **options)


# --- stream create ---------------------------------------------------------


def test_backing(ctl):
    create(ctl, "latest", "image=u1[4,6]", "--backing", "sealed")
    assert ctl("show", "-J", "cam").json["backing"] == "sealed"
    ctl("stream", "create", "b", "a=u1", "--mode", "latest", "--backing", "wood", status=2,
        err="backing 'wood' is none of file, sealed")


def test_what_is_created(ctl):
    assert ctl("stream", "create", "cam", "--mode", "lossless", "--slots", "8", "--history", "3",
               "--stages", "2", "--many-writers", "--permissions", "0640", "image=u1[4,6]",
               "gain=f4").out == ""
    facts = ctl("show", "-J", "cam").json
    assert facts["mode"] == "0640" and facts["lifetime"] == "manual"
    assert [layout["name"] for layout in facts["layouts"]] == ["frame"]
    image, gain = facts["layouts"][0]["views"]
    assert (image["name"], image["shape"], gain["name"]) == ("image", [4, 6], "gain")
    assert gain["offset"] - image["offset"] == 64
    is_, slots = facts["stream"], facts["stream"].pop("slots")
    assert slots == 8 * [{"state": "free", "frames": [None, None], "writer": None, "holders": 0}]
    assert is_ == {"mode": "lossless", "frame_bytes": 128, "history": 3, "n_slots": 8,
                   "many_writers": True, "writer": None, "deaths": 0,
                   "stages": 2 * [{"published": 0, "ended": False, "readers": []}]}
    made = ctl("stream", "create", "again", "-m", "latest", "a=i4", "--json").json
    assert made["stream"]["mode"] == "latest" and made["stream"]["n_slots"] == 8


def test_who_may_use_it(ctl):
    ctl("stream", "create", "cam", "--mode", "latest", "image=u1", "--owner", str(os.geteuid()), "--group", str(os.getegid()),
        "--access", "user:65533:r")
    facts = ctl("show", "-J", "cam").json
    assert (facts["uid"], facts["gid"]) == (os.geteuid(), os.getegid())
    assert [(e["kind"], e["id"], e["right"]) for e in facts["access"]] == [("user", 65533, "r")]
    for wrong in ("--owner", "no such user"), ("--group", "no such group"), ("--access", "user:65533:x"):
        ctl("stream", "create", "b", "--mode", "latest", "image=u1", *wrong, status=2, err=wrong[1])
    assert [segment["name"] for segment in ctl.segments()] == ["cam"]


def test_offsets_count_within_a_frame(ctl):
    create(ctl, "latest", "a=u1[10]@100", "b=u1[10]")
    a, b = ctl("show", "-J", "cam").json["layouts"][0]["views"]
    assert b["offset"] - a["offset"] == 10
    assert stream(ctl)["frame_bytes"] == 128
    assert a["offset"] % 4096 == 100


@pytest.mark.parametrize("words,why", [
    (["create", "cam", "a=f4"], "--mode is missing: latest, so that writers never wait"),
    (["create", "cam", "-m", "fast", "a=f4"], "mode 'fast' is none of latest, lossless"),
    (["create", "cam", "-m", "latest"], "an argument is missing"),
    (["make", "cam", "-m", "latest", "a=f4"], "'make' is no action"),
    (["create", "cam", "-m", "latest", "--slots", "1", "a=f4"], "--slots '1' is not a number from 2 to 512"),
    (["create", "cam", "-m", "lossless", "--history", "512", "a=f4"], "--history '512' is not a number from 0 to 511"),
    (["create", "cam", "-m", "latest", "a=f4", "b=x9"], "character 2: a type code is missing\n  frame: a=f4 b=x9\n"),
])
def test_what_is_no_stream_to_create(ctl, words, why):
    ctl("stream", *words, status=2, err=why)
    assert ctl.segments() == []


def test_a_history_that_leaves_one_slot(ctl):
    create(ctl, "lossless", "--slots", "4", "--history", "3", "a=f4")
    assert stream(ctl)["history"] == 3
    for words in ("latest", "--history", "3"), ("lossless", "--history", "4"):
        ctl("stream", "create", "b", "--slots", "4", "a=f4", "-m", *words, status=1,
            err="1 stages would keep 4 slots, which leaves none for a writer")


def test_it_exists(ctl):
    create(ctl, "latest")
    ctl("stream", "create", "cam", "-m", "latest", "a=f4", status=1, err="exists already")
    assert stream(ctl)["frame_bytes"] == 128


# --- show ------------------------------------------------------------------


def test_show_draws_the_slots(ctl, client, tmp_path):
    create(ctl, "lossless", "--slots", "5", "image=u1[4,6]")
    lines = ctl("show", "cam").out.splitlines()
    assert "  stream     lossless, 5 slots of 128B, history 0" in lines
    assert "  stage 0    0 published, 0 readers" in lines
    assert "  slots      ....." in lines
    reader = client(READ)
    reader.do("lib.shmview_stream_join(s)")
    replay(ctl, tmp_path, frames(2), "cam")
    writer = client(WRITE)
    writer.do("frame_of('shmview_stream_loan', s)")
    reader.do("frame_of('shmview_stream_take', s)")
    facts = stream(ctl)
    states = sorted(slot["state"] for slot in facts["slots"])
    assert states == ["free", "free", "held", "loaned", "published"]
    (seen,) = facts["stages"][0]["readers"]
    assert (seen["process"]["pid"], seen["next"], seen["lag"]) == (reader.pid, 2, 1)
    assert seen["missed"] == 0 and len(seen["held"]) == 1 and not seen["has_left"]
    held = facts["slots"][seen["held"][0]]
    assert held["frames"] == [1] and held["holders"] == 1
    (loaned,) = (slot for slot in facts["slots"] if slot["state"] == "loaned")
    assert loaned["writer"]["pid"] == facts["writer"]["pid"] == writer.pid
    out = ctl("show", "cam").out
    letters = {"free": ".", "loaned": "L", "published": "#", "held": "H"}
    assert "  slots      " + "".join(letters[s["state"]] for s in facts["slots"]) + "\n" in out
    assert ". 2 free, L 1 loaned, # 1 published, H 1 held" in out
    assert f"  writer     pid {writer.pid} python3" in out
    assert f"    pid {reader.pid} python3, next 2, lag 1, missed 0, holds 1 of 5" in out
    assert f"held by pid {reader.pid} python3" in out
    assert f": loaned by pid {writer.pid} python3" in out
    writer.do("drop('shmview_frame_discard')")
    reader.do("drop('shmview_frame_release')")
    assert {slot["state"] for slot in stream(ctl)["slots"]} == {"free", "published"}


def test_other_segments_are_no_streams(ctl):
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")
    assert stream(ctl, "seg") is None
    assert "stream" not in ctl("show", "seg").out


def test_show_of_a_damaged_stream(ctl, client):
    create(ctl, "latest")
    writer = client(WRITE)
    writer.do("lib.shmview_stream_segment.restype = lib.shmview_data.restype = ctypes.c_void_p")
    writer.do("at = lib.shmview_data(ctypes.c_void_p(lib.shmview_stream_segment(s)))")
    writer.do("ctypes.memset(at + 12, 9, 4)")  # the mode
    shown = ctl("show", "cam", err="the slots of 'cam' are not shown: segment 'cam': the header of the "
                "stream is damaged")
    assert "image" in shown.out and "slots  " not in shown.out
    ctl("get", "cam/image", status=1, err="damaged")
    ctl("record", "cam", "/dev/null", status=1, err="damaged")


# --- get and the like ------------------------------------------------------


def test_get_prints_the_latest_frame(ctl, tmp_path):
    create(ctl, "latest", "image=u1[2,3]", "gain=f4")
    ctl("get", "cam/image", status=1, err="stream 'cam' has no frame")
    replay(ctl, tmp_path, frames(3, (2, 3)), "cam/image")
    assert ctl("get", "cam/image").out == "[[12 13 14]\n [15 16 17]]\n"
    assert ctl("get", "cam/image[1]").out == "[15 16 17]\n"
    assert ctl("get", "-J", "cam/image").json["data"] == [[12, 13, 14], [15, 16, 17]]
    assert ctl("get", "cam").out.startswith("image  B[2,3]\n  [[12 13 14]\n")
    ctl("save", "cam/image", tmp_path / "one.npy")
    assert numpy.load(tmp_path / "one.npy").tolist() == [[12, 13, 14], [15, 16, 17]]
    assert "max       17" in ctl("stats", "cam/image").out
    assert stream(ctl)["stages"][0]["readers"] == []


def test_get_of_a_short_frame(ctl, tmp_path):
    create(ctl, "latest", "image=u1[9,3]")
    replay(ctl, tmp_path, frames(1, (2, 3)), "cam")
    assert ctl("get", "cam/image").out == "[[0 1 2]\n [3 4 5]]\n"
    assert ctl("get", "cam").out.startswith("image  B[2,3]\n")


def test_what_get_refuses(ctl, tmp_path):
    create(ctl, "latest")
    replay(ctl, tmp_path, frames(), "cam")
    ctl("get", "cam:1/image", status=1, err="stage 1 of stream 'cam', which has 1")
    ctl("get", "cam/imag", status=4, err="'cam' has no view 'imag'")
    ctl("set", "cam/image", "1", status=1, err="'cam' is a stream")
    ctl("fill", "cam/image", "1", status=1, err="shmviewctl replay FILE cam")
    ctl("create", "seg", "10")
    ctl("get", "seg:1", status=2, err="'seg' is no stream, and has no stages")


# --- list and metrics -----------------------------------------------------------


def test_list_marks_streams(ctl):
    create(ctl, "latest")
    ctl("stream", "create", "mic", "-m", "lossless", "a=i2[480]")
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")
    ctl("create", "bare", "8K", "--no-lock", "-l", "frame: image=u1[4,6]")
    found = {s["name"]: s["stream"] for s in ctl("list", "-J", "-o", "NAME,STREAM").json["segments"]}
    assert found == {"cam": "latest", "mic": "lossless", "seg": None, "bare": None}
    assert ctl("list", "-n", "-r", "-o", "STREAM", "m*").out == "lossless\n"


def test_list_has_the_column_if_there_is_a_stream(ctl):
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")  # the layout of a stream, and no stream
    without = ctl("list").rows[0]
    assert "STREAM" not in without and without[-1] == "AGE"
    create(ctl, "latest")
    ctl("stream", "create", "mic", "-m", "lossless", "a=i2[480]")
    heading, *rows = ctl("list").rows
    assert heading == without + ["STREAM"]
    assert {row[0]: row[-1] for row in rows} == {"cam": "latest", "mic": "lossless", "seg": "-"}
    assert [row[-1] for row in ctl("list", "-n", "c*", "m*").rows] == ["latest", "lossless"]
    assert ctl("list", "seg").rows[0] == without  # none of these is one
    assert ctl("list", "-o", "+ID").rows[0] == without + ["ID", "STREAM"]
    assert ctl("list", "-o", "+STREAM,ID", "seg").rows[0] == without + ["STREAM", "ID"]
    assert ctl("list", "-o", "NAME").rows == [["NAME"], ["seg"], ["cam"], ["mic"]]
    # programs get the same columns each time
    names = list(ctl("list", "-J", "seg").json["segments"][0])
    assert list(ctl("list", "-J", "cam").json["segments"][0]) == names and "stream" not in names
    assert ctl("list", "-r").rows[0] == without
    assert ctl("list", "-r", "-o", "NAME,STREAM", "cam").rows[1] == ["cam", "latest"]


def looks(ctl):
    """Returns the segments that were attached until now, as monitors see it: each look is an attachment."""
    last = f"last-{time.monotonic_ns()}"
    ctl("create", last, "1")
    ctl("remove", last)

    def attached():
        lines = ctl("monitor", "-k", "attached", "-a", "all", "-w", "0.1").out.splitlines()
        names = [line.split()[3] for line in lines]
        return names if last in names else None  # a slow monitor has not come to the end
    return [name for name in await_(attached) if not name.startswith("last-")]


def test_list_looks_into_streams_only(ctl):
    create(ctl, "latest")
    ctl("create", "seg", "8K", "-l", "one: image=u1[4,6]")
    before = looks(ctl)
    for words in ["-J"], ["-r"], ["-o", "NAME,SIZE"], ["seg"], ["s*", "-o", "+STREAM"]:
        ctl("list", *words)
    ctl("metrics", "--no-streams")
    assert looks(ctl) == before
    ctl("list")
    ctl("list", "-J", "-o", "+STREAM")
    assert looks(ctl) == before + ["cam", "cam"]


def values(ctl, *words):
    lines = ctl("metrics", *words).out.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if line.startswith("shmview_stream_"))


def test_metrics_of_streams(ctl, client, tmp_path):
    create(ctl, "latest", "--slots", "4", "--stages", "2", "image=u1[4,6]")
    ctl("create", "seg", "8K", "-l", "frame: image=u1[4,6]")
    reader = client(READ)
    reader.do("lib.shmview_stream_join(s)")
    replay(ctl, tmp_path, frames(9), "cam")
    reader.do("frame_of('shmview_stream_take', s)")
    found = values(ctl)
    assert found['shmview_stream_published_total{segment="cam",stage="0"}'] == "9"
    assert found['shmview_stream_published_total{segment="cam",stage="1"}'] == "0"
    assert found['shmview_stream_readers{segment="cam",stage="0"}'] == "1"
    (taken,) = (r["next"] - 1 for r in stream(ctl)["stages"][0]["readers"])
    assert found['shmview_stream_lag_frames{segment="cam",stage="0"}'] == str(9 - taken)
    assert found['shmview_stream_missed_frames{segment="cam",stage="0"}'] == str(taken - 1)
    assert taken > 1
    assert found['shmview_stream_slots{segment="cam",state="held"}'] == "1"
    assert found['shmview_stream_writer_deaths_total{segment="cam"}'] == "0"
    assert not any("seg\"" in name for name in found)
    assert values(ctl, "seg") == {}
    reader.do("drop('shmview_frame_release')")
