# SPDX-License-Identifier: Apache-2.0
"""record and replay."""

import os
import resource
import signal
import time

import pytest

from arrays import cut_off
from conftest import await_
from test_streams import READ, WRITE, client, create, frames, replay, stream  # noqa: F401 (client is a fixture)

numpy = pytest.importorskip("numpy")


def joined(ctl, n=1):
    await_(lambda: len(stream(ctl)["stages"][0]["readers"]) == n, what="the reader")


def test_record_all_frames(ctl, tmp_path):
    create(ctl, "lossless", "image=u1[4,6]", "gain=f4")
    out = tmp_path / "out.npy"
    recorder = ctl.start("record", "cam/image", out, "--json")
    joined(ctl)
    replay(ctl, tmp_path, frames(20), "cam/image")
    said, err = recorder.communicate(timeout=60)
    assert recorder.returncode == 0 and err == ""
    assert f'"file": "{out}"' in said and '"frames": 20' in said and '"missed": 0' in said
    assert numpy.array_equal(numpy.load(out), frames(20))


@pytest.mark.parametrize("options,n", [(["--count", "3"], 3), (["--seconds", "0.3"], 4)])
def test_record_ends(ctl, tmp_path, options, n):
    create(ctl, "latest", "--history", "4", "--slots", "8", "image=u1[4,6]")
    replay(ctl, tmp_path, frames(6), "cam")
    ctl("record", "cam", tmp_path / "out.npy", *options)
    assert numpy.array_equal(numpy.load(tmp_path / "out.npy"), frames(6)[2:2 + n])


def test_record_ends_by_a_signal(ctl, client, tmp_path):
    create(ctl, "latest", "--history", "4", "image=u1[4,6]")
    publish(client(WRITE), 2)
    recorder = ctl.start("record", "cam[::2]", tmp_path / "out.npy")
    await_(lambda: any(r["next"] == 3 for r in stream(ctl)["stages"][0]["readers"]), what="it")
    recorder.send_signal(signal.SIGINT)
    assert recorder.wait(60) == 0
    assert numpy.load(tmp_path / "out.npy").shape == (2, 2, 6)


def test_record_waits_for_another_writer(ctl, client, tmp_path):
    """The death of a writer does not end it."""
    create(ctl, "latest")
    writer = client(WRITE)
    recorder = ctl.start("record", "cam", tmp_path / "out.npy", "--count", "2")
    await_(lambda: stream(ctl)["stages"][0]["readers"], what="the reader")
    writer.do("frame_of('shmview_stream_loan', s)")
    writer.kill()
    assert f"the writer {writer.pid} " in (line := recorder.stderr.readline())
    assert line.endswith("has died: waiting for another one\n")
    replay(ctl, tmp_path, frames(2), "cam")
    assert recorder.communicate(timeout=60) == ("", "") and recorder.returncode == 0
    assert (numpy.load(tmp_path / "out.npy") == frames(2)).all()


def test_record_of_frames_that_differ(ctl, tmp_path):
    create(ctl, "latest", "--history", "4", "image=u1[4,6]")
    replay(ctl, tmp_path, frames(2), "cam")
    replay(ctl, tmp_path, frames(1, (3, 6)), "cam")
    ctl("record", "cam", tmp_path / "out.npy", status=1,
        err="out.npy has the 2 frames before that")
    ctl("record", "cam", tmp_path / "out.npy", status=1,
        err="frame 3 has the shape [3,6] and the first one [4,6]")
    assert numpy.array_equal(numpy.load(tmp_path / "out.npy"), frames(2))


def test_record_of_a_frame_that_is_too_short_for_the_slice(ctl, tmp_path):
    create(ctl, "latest", "--history", "4", "v=f4[4]")
    replay(ctl, tmp_path, frames(1, (4,), "f4"), "cam")
    replay(ctl, tmp_path, frames(1, (2,), "f4"), "cam")
    ctl("record", "cam/v[3]", tmp_path / "out.npy", status=1, err="cam/v[3]: ")
    assert numpy.load(tmp_path / "out.npy").tolist() == [3]


def publish(writer, n):
    for _ in range(n):
        writer.do("frame_of('shmview_stream_loan', s)")
        writer.do("drop('shmview_frame_publish')")


def record_two(ctl, writer, out):
    """Starts record, and returns it when it has written two frames."""
    publish(writer, 2)
    recorder = ctl.start("record", "cam", out)
    await_(lambda: any(r["next"] == 3 and not r["held"]
                       for r in stream(ctl)["stages"][0]["readers"]), what="the second frame")
    return recorder


def test_record_at_a_limit_of_the_file(ctl, client, tmp_path):
    """As on a full disk. The part of the third frame is cut off."""
    create(ctl, "latest", "--history", "4", "image=u1[1000]")
    writer = client(WRITE)
    recorder = record_two(ctl, writer, tmp_path / "out.npy")
    resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (2600, 2600))
    publish(writer, 1)
    err = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 1
    assert f"{tmp_path}/out.npy cannot be written: File too large" in err
    assert f"{tmp_path}/out.npy has the 2 frames before that" in err
    assert numpy.load(tmp_path / "out.npy").shape == (2, 1000)
    assert os.path.getsize(tmp_path / "out.npy") == 128 + 2 * 1000


def test_record_of_memory_that_goes(ctl, client, daemon, tmp_path):
    create(ctl, "latest", "--history", "4", "image=u1[1000]")
    recorder = record_two(ctl, client(WRITE), tmp_path / "out.npy")
    daemon.process.send_signal(signal.SIGSTOP)  # or it would give the bytes back
    cut_off(daemon, "cam")
    err = recorder.communicate(timeout=60)[1]
    daemon.process.send_signal(signal.SIGCONT)
    assert recorder.returncode == 1
    assert "the stream's memory is gone: a client has truncated it" in err
    assert numpy.load(tmp_path / "out.npy").shape == (2, 1000)


def test_what_record_refuses(ctl, tmp_path):
    create(ctl, "latest", "--history", "4", "image=u1[4,6]", "gain=f4")
    out = tmp_path / "out.npy"
    ctl("record", "none", out, status=4, err="none")
    ctl("record", "cam", out, status=2, err="'cam' has 2 views, image, gain: name one, as in 'cam/image'")
    ctl("record", "cam/imag", out, status=4, err="Did you mean 'image'?")
    ctl("record", "cam/other:image", out, status=2, err="the layout of a stream is 'frame'")
    ctl("record", "cam/image", out, "--seconds", "0", status=1, err="no frame of 'cam' was published")
    ctl("create", "seg", "10")
    ctl("record", "seg", out, status=1, err="'seg' is no stream")
    replay(ctl, tmp_path, frames(1), "cam/image")
    ctl("record", "cam/image", "-", status=2, err="is no regular file")
    ctl("record", "cam/image[0,0,0]", out, status=1, err="cam/image[0,0,0]")
    assert not out.exists()


def test_replay_at_a_rate(ctl, tmp_path):
    """Five frames at 25 Hz take at least four periods."""
    create(ctl, "latest")
    started = time.monotonic()
    replay(ctl, tmp_path, frames(5), "cam", "--rate", "25")
    assert time.monotonic() - started >= 4 / 25
    assert stream(ctl)["stages"] == [{"published": 5, "ended": True, "readers": []}]


def test_replay_in_a_loop(ctl, tmp_path):
    create(ctl, "latest", "--history", "6", "image=u1[4,6]")
    replay(ctl, tmp_path, frames(2), "cam", "--loop", "--count", "5")
    ctl("record", "cam", tmp_path / "out.npy", "--seconds", "0.2")
    assert numpy.array_equal(numpy.load(tmp_path / "out.npy"), frames(2)[[0, 1, 0, 1, 0]])


def test_replay_in_another_byte_order(ctl, tmp_path):
    create(ctl, "latest", "a=i4[3]")
    replay(ctl, tmp_path, frames(2, (3,), ">i4"), "cam")
    assert ctl("get", "cam/a").out == "[3 4 5]\n"


def test_replay_names_who_is_in_the_way(ctl, client, tmp_path):
    create(ctl, "lossless", "--slots", "2", "image=u1[4,6]")
    reader = client(READ)
    reader.do("lib.shmview_stream_join(s)")
    result = replay(ctl, tmp_path, frames(5), "cam", "--timeout", "0.1", status=124,
                    err="has not taken 2 frames")
    assert f"pid {reader.pid} (python3)" in result.err
    assert stream(ctl)["stages"][0]["published"] == 2


def test_what_replay_refuses(ctl, tmp_path):
    create(ctl, "latest", "image=u1[4,6]", "gain=f4")
    replay(ctl, tmp_path, frames(2), "none", status=4, err="none")
    replay(ctl, tmp_path, frames(2), "cam", status=2, err="'cam' has 2 views")
    replay(ctl, tmp_path, frames(2), "cam/image[0]", status=2, err="whole frames are published")
    replay(ctl, tmp_path, frames(2), "cam:0/image", status=2, err="whole frames are published")
    replay(ctl, tmp_path, frames(2, (5, 6)), "cam/image", status=1,
           err="has rows of shape [5,6], and the frames of cam/image have [4,6]")
    replay(ctl, tmp_path, frames(2, dtype="f8"), "cam/image", status=1, err="astype()")
    replay(ctl, tmp_path, numpy.asfortranarray(frames(2)), "cam/image", status=1,
           err="Fortran order")
    replay(ctl, tmp_path, numpy.uint8(1), "cam/image", status=1, err="no dimension that counts")
    replay(ctl, tmp_path, frames(0), "cam/image", status=1, err="has no frame")
    replay(ctl, tmp_path, frames(2), "cam/image", "--count", "3", status=2, err="add --loop")
    replay(ctl, tmp_path, frames(2), "cam/image", "--rate", "0", status=2, err="rate '0'")
    assert stream(ctl)["stages"][0] == {"published": 0, "ended": False, "readers": []}


def test_another_writer_is_named(ctl, client, tmp_path):
    create(ctl, "latest")
    writer = client(WRITE)
    writer.do("frame_of('shmview_stream_loan', s)")
    result = replay(ctl, tmp_path, frames(1), "cam", status=1, err="cam")
    assert str(writer.pid) in result.err
    writer.do("drop('shmview_frame_discard')")
