# SPDX-License-Identifier: Apache-2.0
"""metrics: the output as Prometheus' own parser reads it, its figures, and the text file that it
replaces as a whole or not at all."""

import os
import re
import select
import socket
import threading
import time

import pytest

from conftest import Ctl

parser = pytest.importorskip("prometheus_client.parser")


def read(text):
    """Returns families by name, each with its type and {labels: value}."""
    families = {}
    for family in parser.text_string_to_metric_families(text):
        assert family.name not in families, "all samples of a family are together"
        assert family.type in ("gauge", "counter") and family.documentation.endswith(".")
        samples = {}
        for sample in family.samples:
            labels = tuple(sorted(sample.labels.items()))
            key = sample.name, labels
            assert key not in samples, "each sample once"
            samples[key] = sample.value
        families[family.name] = family.type, {labels: v for (_, labels), v in samples.items()}
    return families


def value(families, name, **labels):
    return families[name][1][tuple(sorted(labels.items()))]


def test_of_the_daemon(ctl, daemon, party):
    before = time.time()
    ctl("list", "nope", status=4, err="nope")
    one = party()
    one.do("a = shmview.create('a', 5000)")
    families = read(ctl("metrics").out)
    assert value(families, "shmview_up") == 1
    assert value(families, "shmview_build_info", version=ctl("--version").out.split()[1]) == 1
    assert value(families, "shmview_segments") == 1
    assert value(families, "shmview_allocated_bytes") == 5000
    assert families["shmview_requests"][0] == "counter"
    assert value(families, "shmview_requests") > value(families, "shmview_attachments_made") > 0
    assert before - 600 < value(families, "shmview_start_time_seconds") < time.time()
    assert value(families, "shmview_quota_used", what="segments", of="caller") == 1
    assert value(families, "shmview_memory_limit_bytes") >= \
        value(families, "shmview_memory_free_bytes") > 0
    assert "shmview_quota_limit" not in families  # no quota is set


def test_refusals(ctl, party):
    one = party()
    one.do("try:\n    shmview.attach('nope')\nexcept shmview.Error:\n    pass")
    families = read(ctl("metrics", "--no-segments").out)
    assert value(families, "shmview_refusals", error="io.shmview.SegmentNotFound") >= 1


def test_of_segments(ctl, party):
    one, two = party(), party()
    one.do("a = shmview.create('a', 5000)")
    one.do("b = shmview.create('b', 1, lock=False)")
    two.do("a = shmview.attach('a')")
    one.do("a.lock()")
    one.do("a.notify()")
    families = read(ctl("metrics").out)
    assert value(families, "shmview_segment_size_bytes", segment="a") == 5000
    assert value(families, "shmview_segment_resident_bytes", segment="a") == 8192
    assert value(families, "shmview_segment_attachments", segment="a") == 2
    assert value(families, "shmview_segment_changes", segment="a") == 1
    assert value(families, "shmview_segment_lock_holders", segment="a", mode="exclusive") == 1
    assert value(families, "shmview_segment_lock_holders", segment="a", mode="shared") == 0
    assert value(families, "shmview_segment_lock_waiters", segment="a", mode="exclusive") == 0
    assert value(families, "shmview_segment_info", segment="b", layout="", lifetime="attached",
                 owner=ctl.segment("b")["owner"]) == 1
    assert len(families["shmview_segment_lock_holders"][1]) == 2  # the other segment has no lock
    assert "shmview_segment_changes" in families
    assert ("segment", "b") not in sum(families["shmview_segment_changes"][1], ())
    some = read(ctl("metrics", "b*").out)
    assert list(some["shmview_segment_size_bytes"][1]) == [(("segment", "b"),)]
    assert "shmview_segment_size_bytes" not in read(ctl("metrics", "--no-segments").out)


def test_a_removed_one_is_left_out(ctl, party):
    one = party()
    one.do("a = shmview.create('a', 5000)")
    one.do("shmview.remove('a')")
    one.do("b = shmview.create('a', 6000)")
    families = read(ctl("metrics").out)
    assert value(families, "shmview_segment_size_bytes", segment="a") == 6000
    assert value(families, "shmview_removed_bytes") == 5000


def test_names_are_as_prometheus_wants_them(ctl, party):
    one = party()
    one.do("a = shmview.create('a', 5000)")
    for line in ctl("metrics").out.splitlines():
        if line.startswith("# TYPE"):
            _, _, name, kind = line.split()
            assert re.fullmatch(r"shmview_[a-z_]*[a-z]", name)
            assert name.endswith("_total") == (kind == "counter")
            assert not re.search(r"_(us|ns|ms|kib|milli)(_|$)", name)


def test_textfile(ctl, tmp_path, alone):
    path = tmp_path / "shmview.prom"
    assert ctl("metrics", "--textfile", path).out == ""
    assert path.stat().st_mode & 0o777 == 0o644
    first = path.read_text()
    assert value(read(first), "shmview_up") == 1
    alone("metrics", "--textfile", path, status=3, err="no shmviewd")
    assert value(read(path.read_text()), "shmview_up") == 0
    assert os.listdir(tmp_path) == ["shmview.prom"]


def forward(listener, daemon, end):
    """Connects the client that comes to the daemon, until the client sends `end`: then the client finds
    no daemon. The caller closes the listener."""
    client, _ = listener.accept()
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(daemon.socket)
        while True:
            for source in select.select([client, server], [], [])[0]:
                data, fds, _, _ = socket.recv_fds(source, 65536, 8)
                if not data or source is client and end in data:
                    os.unlink(listener.getsockname())
                    return
                socket.send_fds(server if source is client else client, [data], fds)
                for fd in fds:
                    os.close(fd)


def test_textfile_of_a_daemon_that_ends_after_its_figures(ctl, daemon, tmp_path):
    path = tmp_path / "shmview.prom"
    ctl("stream", "create", "cam", "-m", "latest", "image=u1[4,6]")
    ctl("metrics", "--textfile", path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "proxy"))
        listener.listen()
        proxy = threading.Thread(target=forward, args=(listener, daemon, b"io.shmview.Describe"), daemon=True)
        proxy.start()
        Ctl(daemon.directory, str(tmp_path / "proxy"))("metrics", "--textfile", path, status=3, err="shmviewd")
        proxy.join()
    assert value(read(path.read_text()), "shmview_up") == 0
    assert os.listdir(tmp_path) == ["shmview.prom"]


def test_a_textfile_is_replaced_whole_or_not(ctl, tmp_path):
    directory = tmp_path / "x.prom"
    directory.mkdir()
    ctl("metrics", "--textfile", directory, status=1, err="the old file stays")
    assert os.listdir(tmp_path) == ["x.prom"]
    ctl("metrics", "--textfile", tmp_path / "no" / "x.prom", status=1, err="its directory must exist")


def test_refused(ctl):
    ctl("metrics", "--textfile", "/tmp/x.txt", status=2, err="files that end with .prom")
    ctl("metrics", "--textfile", status=2, err="option --textfile needs a value")
