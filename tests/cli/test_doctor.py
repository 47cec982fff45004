# SPDX-License-Identifier: Apache-2.0
"""doctor on this machine: with a daemon, without one, after a kill, and at a quota. The unit
test check_cli_doctor imitates sick machines."""

import os
import subprocess

import pytest

from conftest import CTL, Ctl, Daemon


def by_check(result, check):
    return [finding for finding in result.json["findings"] if finding["check"] == check]


def test_a_daemon_that_answers(ctl, daemon):
    result = ctl("doctor", "--json")
    assert result.json["level"] in ("ok", "warn")
    one, = by_check(result, "daemon")
    assert one["level"] == "ok" and daemon.socket in one["found"]
    assert one["used"] is None and one["limit"] is None
    for finding in result.json["findings"]:
        assert finding["means"]
        assert finding["level"] == "ok" or finding["advice"]
    size, = by_check(result, "shm-size")
    assert 0 <= size["used"] <= size["limit"]
    assert any(f["check"] == "socket" and f["level"] == "ok" and f["found"] == daemon.socket
               for f in result.json["findings"])


def test_for_people(ctl):
    lines = ctl("doctor").out.splitlines()
    assert any(line.startswith("ok    daemon             version ") for line in lines)
    assert " warnings, 0 failures." in lines[-2]
    assert lines[-1].startswith("Closest to its limit: ")
    assert not any(line.startswith("ok ") for line in ctl("doctor", "-q").out.splitlines())
    assert "      means: " in ctl("doctor", "--verbose").out
    assert "\033" not in ctl("doctor").out


def test_without_a_daemon(alone):
    result = alone("doctor", "--json")
    one, = by_check(result, "daemon")
    assert one["level"] == "warn" and "no shmviewd: tried " in one["found"]
    assert "shmviewd.socket" in one["advice"]


def test_a_daemon_that_was_killed(tmp_path):
    daemon = Daemon(str(tmp_path))
    daemon.start({"segments": [{"name": "kept", "size": 4096}]})
    ctl = Ctl(str(tmp_path), daemon.socket)
    instance = daemon.said().split(", instance ")[1].split(",")[0]
    left = f"of instance {instance}"
    assert not any(left in f["found"] for f in by_check(ctl("doctor", "-J"), "objects"))
    daemon.process.kill()
    daemon.process.wait()
    result = ctl("doctor", "--json", "--quiet")
    stale = [f for f in by_check(result, "socket") if f["found"] == f"nobody serves {daemon.socket}"]
    assert len(stale) == 1 and stale[0]["level"] == "warn"
    assert [f["level"] for f in by_check(result, "objects") if left in f["found"]] == ["warn"]
    daemon.start()
    daemon.stop()


@pytest.mark.skipif(os.geteuid() == 0, reason="quotas of a user are not for root")
def test_a_quota_of_this_user_is_reached(tmp_path):
    check_quota(tmp_path, "user", "this user: 1 of 1")


def test_a_quota_of_all_is_reached(tmp_path):
    check_quota(tmp_path, "total", "all users: 1 of 1")


def check_quota(tmp_path, whose, found):
    daemon = Daemon(str(tmp_path))
    daemon.start({"segments": [{"name": "only", "size": 4096}],
                  "quotas": {whose: {"segments": 1}}})
    ctl = Ctl(str(tmp_path), daemon.socket)
    done = subprocess.run([CTL, "doctor", "-q"], env=ctl.environment, capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (1, "")
    assert f"fail  quota-segments     {found}" in done.stdout
    assert "      do:    remove or detach" in done.stdout
    assert "Closest to its limit: quota-segments, 100.0% used" in done.stdout
    daemon.stop()


def test_refused(ctl):
    ctl("doctor", "segment", status=2, err="one argument too many")
