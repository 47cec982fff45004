# SPDX-License-Identifier: Apache-2.0
"""metrics of streams, which nobody has to ask for: how many are looked into, and that a damaged one is
omitted."""

from arrays import object_of
from test_streams import create, looks


def create_many(party, n):
    """Creates the streams s00, s01 ..., which end with the test."""
    one = party()
    one.do(f"made = [shmview.create_stream(f's{{i:02}}', a='i4', slots=2) for i in range({n})]")


def damage(daemon, name):
    """Changes the version in the header of a stream."""
    with open(object_of(daemon, name), "r+b") as memory:
        memory.seek(4)
        memory.write((99).to_bytes(4, "little"))


def stream_metrics(ctl, *words):
    lines = ctl("metrics", *words).out.splitlines()
    return dict(line.rsplit(" ", 1) for line in lines if line.startswith("shmview_stream"))


def test_metrics_look_into_so_many(ctl, party):
    create_many(party, 70)
    before = len(looks(ctl))
    found = stream_metrics(ctl)
    assert len([name for name in found if name.startswith("shmview_stream_published_total")]) == 64
    assert found["shmview_streams_omitted"] == "6"
    assert len(looks(ctl)) - before == 2 * 64
    found = stream_metrics(ctl, "--streams")
    assert len([name for name in found if name.startswith("shmview_stream_published_total")]) == 70
    assert found["shmview_streams_omitted"] == "0"
    before = len(looks(ctl))
    assert stream_metrics(ctl, "--no-streams") == stream_metrics(ctl, "--no-segments") == {}
    assert len(looks(ctl)) == before
    ctl("metrics", "--streams", "--no-streams", status=2, err="--no-streams omits")
    ctl("metrics", "--streams", "--no-segments", status=2, err="--no-segments omits")


def test_metrics_omit_a_damaged_stream(ctl, daemon):
    create(ctl, "latest")
    ctl("stream", "create", "bad", "-m", "latest", "image=u1[4,6]")
    damage(daemon, "bad")
    found = stream_metrics(ctl)
    assert 'shmview_stream_published_total{segment="cam",stage="0"}' in found
    assert found["shmview_streams_omitted"] == "1"
    assert not any('"bad"' in name for name in found)
