# SPDX-License-Identifier: Apache-2.0
"""Each session has a daemon and drivers of its own. After each test it must have left nothing."""

import ctypes
import os
import signal
import subprocess
import tempfile

import pytest

from peers import PATIENCE_S, Crowd, await_, built

libc = ctypes.CDLL(None)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left to make check-all")


def end_with_parent():
    """Runs in the daemon's process before exec: the kernel kills it when the thread that started
    it ends."""
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Daemon:
    def __init__(self, directory):
        self.socket, self.log = os.path.join(directory, "io.shmview"), os.path.join(directory, "log")
        ready, told = os.pipe()
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [built()["daemon"], "--socket", self.socket, "--ready-fd", str(told)], stdout=log, stderr=log,
                pass_fds=[told], preexec_fn=end_with_parent, env={**os.environ, "SHMVIEW_CONFIG": "/dev/null"})
        os.close(told)
        with open(ready) as pipe:
            assert pipe.read() == "\n", self.said()
        self.instance = self.said().split(", instance ")[1].split(",")[0]

    def said(self):
        with open(self.log) as log:
            return log.read()

    def objects(self):
        """Returns the objects of its segments in /dev/shm."""
        directory = f"/dev/shm/shmview.{self.instance}"
        names = os.listdir(directory) if os.path.exists(directory) else []
        return sorted(name for name in names if name not in ("+daemon", "+presence"))

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) == 0, self.said()
        assert not self.objects(), self.said()


@pytest.fixture(scope="session")
def daemon():
    with tempfile.TemporaryDirectory(prefix="shmview-conformance-") as directory:
        daemon = Daemon(directory)
        yield daemon
        daemon.stop()


@pytest.fixture(scope="session")
def all_peers(daemon):
    crowd = Crowd(daemon.socket)
    yield crowd
    crowd.end()


@pytest.fixture
def crowd(request, all_peers, daemon):
    """Yields the drivers. After the test each holds as much as before, and no segment exists."""
    before = {peer: peer.ask("held") for peer in all_peers.alive()}
    yield all_peers
    if getattr(request.node, "has_failed", False):
        for peer in all_peers.alive():  # their state is unknown
            peer.kill()
        return
    for peer in all_peers.alive():
        assert peer.ask("held") == before.get(peer, peer.ask("held")), peer.language
    # a client that detaches does not wait until the daemon has carried it out
    await_(lambda: not daemon.objects(), "the end of every segment")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if (yield).get_result().failed:
        item.has_failed = True
