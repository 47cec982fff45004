# SPDX-License-Identifier: Apache-2.0
"""run starts a daemon for one command. When the command ends, in whatever way, no process,
segment or file may be left."""

import json
import os
import signal
import subprocess
import sys

import pytest

from conftest import CTL, Ctl, await_, has_ended

# Prints the socket, the daemon that serves it, and the process that keeps the daemon.
WHO = """
import os, socket, struct
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["SHMVIEW_SOCKET"])
pid = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
keeper = int(open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[1])
print(os.environ["SHMVIEW_SOCKET"], pid, keeper, flush=True)
"""
# Creates a segment that ends only when it is removed, without the library.
CREATE = """
s.send(b'{"method":"io.shmview.Create","parameters":{"name":"leftover","size":1}}\\0')
s.recv(10000)
"""
WAIT = "import sys; sys.stdin.read()\n"


@pytest.fixture
def ctl(tmp_path):
    """The program, with an empty runtime directory and no daemon."""
    runtime = tmp_path / "run"
    runtime.mkdir(0o700)
    ctl = Ctl(str(runtime), None)
    yield ctl
    assert os.listdir(runtime) == []


def start(ctl, program, *options):
    """Runs a Python program that first prints the daemon that serves it (WHO). Returns process,
    socket, pids of daemon and keeper."""
    process = subprocess.Popen([CTL, "run", *options, "--", sys.executable, "-c", program],
                               env=ctl.environment, stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    socket, daemon, keeper = process.stdout.readline().split()
    return process, socket, int(daemon), int(keeper)


def objects(socket):
    """Returns the objects in /dev/shm that belong to the instance of that socket."""
    hashed = 0xcbf29ce484222325
    for byte in socket.encode():
        hashed = (hashed ^ byte) * 0x100000001b3 % 2**64
    directory = f"/dev/shm/shmview.{os.getuid()}-{hashed:016x}"
    return os.listdir(directory) if os.path.exists(directory) else []


def assert_nothing_left(socket, daemon, keeper):
    await_(lambda: has_ended(daemon) and has_ended(keeper), what="their end")
    assert not os.path.exists(os.path.dirname(socket))
    assert objects(socket) == []


def test_a_daemon_of_its_own(ctl):
    process, socket, daemon, keeper = start(ctl, WHO + CREATE + WAIT)
    assert os.path.dirname(os.path.dirname(socket)) == ctl.directory
    assert os.stat(os.path.dirname(socket)).st_mode & 0o777 == 0o700
    await_(lambda: len(objects(socket)) > 1, what="the segment")
    process.communicate("")
    assert process.returncode == 0
    assert_nothing_left(socket, daemon, keeper)  # without waiting, because the program has waited for that


def test_status_is_the_commands(ctl):
    assert ctl("run", "echo", "-c", "x").out == "-c x\n"
    assert ctl("run", "--", "cat", input="in").out == "in"
    assert ctl("run", "--", CTL, "list", "--json").json == {"segments": []}
    for script, status in ("exit 7", 7), ("kill -9 $$", 137):
        done = subprocess.run([CTL, "run", "sh", "-c", script], env=ctl.environment)
        assert done.returncode == status
    ctl("run", "/no/such", status=127, err="cannot run '/no/such'")


def test_the_daemon_gets_no_descriptor_of_ours(ctl):
    ours, other = os.pipe()
    process = subprocess.Popen([CTL, "run", "--", sys.executable, "-c", WHO + WAIT],
                               env=ctl.environment, stdin=subprocess.PIPE, pass_fds=[other],
                               stdout=subprocess.PIPE, text=True)
    daemon = process.stdout.readline().split()[1]
    link = os.readlink(f"/proc/self/fd/{other}")
    fds = f"/proc/{daemon}/fd"
    assert link not in [os.readlink(f"{fds}/{fd}") for fd in os.listdir(fds)]
    process.communicate("")
    os.close(ours)
    os.close(other)


def test_signals_go_to_the_command(ctl):
    process, *rest = start(ctl, WHO + "import signal; signal.pause()")
    process.terminate()
    process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert_nothing_left(*rest)


def test_killed_it_leaves_nothing(ctl):
    process, *rest = start(ctl, WHO + CREATE + "print(os.getpid(), flush=True)\n" + WAIT)
    command = int(process.stdout.readline())
    process.kill()
    process.communicate()
    await_(lambda: has_ended(command), what="the command's end")
    assert_nothing_left(*rest)


def test_a_daemon_that_was_killed_leaves_nothing(ctl):
    kill = "import os; os.kill(pid, 9)\n"
    process, *rest = start(ctl, WHO + CREATE + kill + WAIT)
    process.communicate("")
    assert process.returncode == 0
    assert_nothing_left(*rest)


def test_a_daemon_that_was_stopped_ends(ctl):
    process, *rest = start(ctl, WHO + "os.kill(pid, 19)")
    process.communicate()
    assert process.returncode == 0
    assert_nothing_left(*rest)


def test_a_keeper_that_was_killed_leaves_nothing(ctl):
    process, *rest = start(ctl, WHO + CREATE + "os.kill(keeper, 9)")
    _, err = process.communicate()
    assert process.returncode == 0
    assert "cleaning up" in err
    assert_nothing_left(*rest)


def test_configuration_and_log(ctl, tmp_path):
    config = tmp_path / "c.json"
    config.write_text(json.dumps({"segments": [{"name": "ready", "size": 10}]}))
    listed = ctl("run", "-c", config, "--", CTL, "list", "-rno", "NAME")
    assert listed.out == "ready\n"
    assert ctl("run", "--verbose", "true", err="listening on").out == ""
    config.write_text('{"segmants": []}')
    done = subprocess.run([CTL, "run", "-c", config, "true"], env=ctl.environment,
                          capture_output=True, text=True)
    assert done.returncode == 1
    assert f"{config}:1: " in done.stderr and "its log is above" in done.stderr


def test_refused(ctl, tmp_path):
    ctl("run", status=2, err="a command to run is missing")
    ctl("run", "--", status=2, err="a command to run is missing")
    ctl("run", "--socket", "/x", "true", status=2, err="this verb starts its own")
    ctl("run", "-c", "/no/such", "true", status=1, err="cannot read /no/such")
    done = subprocess.run([CTL, "run", "true"], capture_output=True, text=True,
                          env=dict(ctl.environment, SHMVIEW_DAEMON="/no/such"))
    assert done.returncode == 1
    assert "/no/such: No such file" in done.stderr and "does not start" in done.stderr


def test_a_runtime_directory_that_is_too_long_is_not_used(ctl, tmp_path):
    process, socket, *rest = start(
        Ctl(str(tmp_path / ("x" * 100)), None), WHO)
    process.communicate()
    assert os.path.dirname(os.path.dirname(socket)) != str(tmp_path)
    assert_nothing_left(socket, *rest)
