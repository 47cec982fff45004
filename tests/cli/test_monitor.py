# SPDX-License-Identifier: Apache-2.0
"""monitor: events as they come, filters, past events, output for people, and restarts of the
daemon."""

import json
import os
import pty
import re
import subprocess

import pytest

from conftest import CTL, Ctl, Daemon, await_


class Monitor:
    """monitor --json in the background; it already receives events when the constructor returns."""

    def __init__(self, ctl, *words):
        self.process = ctl.start("monitor", "--json", *words)
        self.first = self.next()

    def next(self):
        return json.loads(self.process.stdout.readline())

    def rest(self):
        """Returns the events until it ends by itself."""
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def stop(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def monitor(ctl):
    monitors = []

    def make(*words):
        monitors.append(Monitor(ctl, *words))
        return monitors[-1]
    yield make
    for one in monitors:
        one.stop()


def test_events_as_they_come(monitor, party):
    told = monitor()
    assert told.first["kind"] == "subscribed"
    one, two = party(), party()
    one.do("a = shmview.create('a', 4000)")
    event = told.next()
    assert re.fullmatch(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event.pop("time"))
    assert event == {"serial": told.first["serial"] + 1, "kind": "created", "segment": "a",
                     "id": event["id"], "pid": one.pid, "uid": os.getuid(),
                     "command": event["command"], "size": 4000}
    event = told.next()
    assert event["kind"] == "attached" and event["access"] == "write" and event["slot"] == 0
    two.do("a = shmview.attach('a')")
    assert told.next()["pid"] == two.pid
    two.do("a.lock()")
    two.kill()
    events = [told.next(), told.next()]
    assert [event["kind"] for event in events] == ["died", "owner_died"]
    assert [event["held"] for event in events] == ["exclusive", "exclusive"]
    assert {event["pid"] for event in events} == {two.pid}


def test_by_kind_and_name(monitor, party):
    told = monitor("-k", "created,removed,subscribed", "-n", "3", "a", "c")
    by_pattern = monitor("-n", "2", "[bc]?")
    one = party()
    for name in "a", "b1", "c":
        one.do(f"s = shmview.create('{name}', 1, lifetime='manual')")
    one.do("shmview.remove('b1'), shmview.remove('a'), shmview.remove('c')")
    events = told.rest()
    assert [(event["kind"], event["segment"]) for event in events] == \
        [("created", "a"), ("created", "c"), ("removed", "a")]
    assert [(event["kind"], event["segment"]) for event in by_pattern.rest()] == \
        [("created", "b1"), ("attached", "b1")]


def test_the_beginning_is_told_to_who_asks_for_it(ctl):
    assert "subscribed" in ctl("monitor", "-k", "subscribed", "--timeout", "50ms").out
    assert ctl("monitor", "-k", "died", "--timeout", "50ms").out == ""


def test_what_is_remembered(ctl, party):
    one = party()
    one.do("a = shmview.create('remembered', 1)")
    words = ["monitor", "--json", "remembered", "-k", "created"]
    events = [json.loads(line) for line in ctl(*words, "--after=all", "-n1").out.splitlines()]
    assert [event["segment"] for event in events] == ["remembered"]
    serial = events[0]["serial"]
    assert ctl(*words, "-a", serial - 1, "-n", "1").out.count("created") == 1
    assert ctl(*words, "-a", serial, "-n", "1", "-w", "1ms", status=124,
               err="0 of 1 events came in time").out == ""
    for since in "10min", "1h", "@1000000000", "2001-01-01", "2001-01-01 12:00":
        assert ctl(*words, "--since", since, "-n1").out.count("created") == 1
    for since in "0", "2101-01-01", "2101-01-01T12:00:30":
        assert ctl(*words, "--since", since, "-n1", "-w1ms", status=124,
                   err="0 of 1 events").out == ""
    assert ctl(*words, "--timeout", "1ms").out == ""  # nothing waits until there are so many


def test_streams(ctl, monitor, party):
    told = monitor("-k", "subscribed,created,attached,detached,died")
    ctl("stream", "create", "cam", "-m", "latest", "--slots", "5", "image=u1[4,6]")
    events = [told.next() for _ in range(3)]
    assert [event["kind"] for event in events] == ["created", "attached", "detached"]
    stream = {"mode": "latest", "n_slots": 5}
    assert [event.get("stream") for event in events] == [None, None, stream]  # it is made after its creation
    assert "stream" not in events[0]
    writer, reader, idle = party(), party(), party()
    writer.do("s = shmview.open_stream('cam', 'write')")
    assert told.next()["stream"] == stream
    reader.do("s = shmview.open_stream('cam'); s.join()")
    idle.do("s = shmview.open_stream('cam')")
    assert [told.next()["kind"] for _ in range(2)] == ["attached", "attached"]
    for _ in range(2):
        writer.do("with s.loan() as frame: frame['image'][:] = 7")
        reader.do("kept = globals().get('kept', []) + [s.take()]")
    for one, role, held in (reader, "reader", 2), (writer, "writer", 0), (idle, None, 0):
        one.kill()
        event = told.next()
        assert (event["kind"], event["pid"]) == ("died", one.pid)
        assert event["stream"] == dict(stream, role=role, held_frames=held)
    out = ctl("monitor", "-a", "all", "-k", "died,detached", "-n", "4", "cam").out.splitlines()
    assert [line.split(", slot ")[1][1:] for line in out] == [
        ", a latest stream with 5 slots",
        ", a latest stream with 5 slots; it read the stream, and held 2 frames",
        ", a latest stream with 5 slots; it wrote the stream",
        ", a latest stream with 5 slots"]


def test_for_people(ctl, party):
    one = party()
    one.do("a = shmview.create('camera', 4096)")
    line = ctl("monitor", "-a", "all", "-n", "1", "-k", "created", "camera").out
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} created        camera           "
                        rf"4K, by process {one.pid}( \(python3\))? of \w+\n", line)


@pytest.mark.parametrize("env, colored", [({}, True), ({"NO_COLOR": "1"}, False),
                                          ({"TERM": "dumb"}, False)])
def test_colours_on_a_terminal(ctl, party, env, colored):
    one = party()
    one.do("a = shmview.create('camera', 4096)")
    master, slave = pty.openpty()
    words = [CTL, "monitor", "-a", "all", "-n", "1", "-k", "created", "camera"]
    subprocess.run(words, env=dict(ctl.environment, **env), stdout=slave, check=True)
    os.close(slave)
    shown = os.read(master, 1000).decode()
    os.close(master)
    assert ("\033[32mcreated" in shown) == colored
    assert ("\033" in shown) == colored


def test_the_daemon_is_away_and_comes_back(tmp_path):
    daemon = Daemon(str(tmp_path))
    daemon.start()
    told = Monitor(Ctl(str(tmp_path), daemon.socket))
    for _ in range(2):  # it reports each restart once
        daemon.process.kill()
        daemon.process.wait()
        assert "the daemon is gone; waiting for the next one" in told.process.stderr.readline()
        daemon.start()
        while told.next()["kind"] != "subscribed":
            pass
    told.stop()
    daemon.stop()


def test_the_daemon_knows_its_restart(tmp_path):
    daemon = Daemon(str(tmp_path))
    daemon.start()
    daemon.process.kill()
    daemon.process.wait()
    daemon.start()
    ctl = Ctl(str(tmp_path), daemon.socket)
    event = json.loads(ctl("monitor", "-J", "-a", "all", "-n1", "-k", "recovered").out)
    assert (event["segments"], event["deaths"], event["lost"]) == (0, 0, 0)
    assert "0 deaths were noticed" in ctl("monitor", "-aall", "-n1", "-k", "recovered").out
    daemon.stop()


def test_a_reader_that_leaves_ends_it(ctl, party):
    one = party()
    one.do("a = shmview.create('a', 1)")
    process = ctl.start("monitor", "-a", "all")
    process.stdout.readline()
    process.stdout.close()
    for _ in range(20):  # it writes into a closed pipe
        one.do("b = shmview.create('b', 1)")
        one.do("b.close()")
    await_(lambda: process.poll() is not None, what="its end")
    process.stderr.close()


def test_refused(ctl):
    ctl("monitor", "-k", "dead", status=2, err="--kind 'dead' is none of created, attached, ")
    ctl("monitor", "-k", "died,", status=2, err="--kind '' is none of")
    ctl("monitor", "-a", "0", status=2, err="'0' is not a number")
    ctl("monitor", "-a", "-1", status=2, err="'-1' is not a number")
    ctl("monitor", "-n", "0", status=2, err="'0' is not a number")
    ctl("monitor", "-w", "never", status=2, err="--timeout 'never' is not a time")
    for since in "tomorrow", "12:61", "2026-13-01", "@", "-5":
        ctl("monitor", "--since", since, status=2, err=f"'{since}' is not a time")
    ctl("monitor", *"x" * 65, status=2, err="one argument too many")
