# SPDX-License-Identifier: Apache-2.0
"""For each module a daemon of its own, the program as a function, and other clients."""

import ctypes
import functools
import json
import os
import pathlib
import pty
import signal
import subprocess
import sys
import tempfile
import time

import pytest

CTL = os.environ["SHMVIEWCTL"]
libc = ctypes.CDLL(None)


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left to make check-all")


def end_with_parent():
    """Runs in a new process before exec: the kernel kills it when the thread that started it
    ends."""
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def await_(condition, seconds=60, what="it"):
    """Waits until condition() is true, and returns its value."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} has not come in {seconds} s"
        time.sleep(0.005)
    return value


def has_ended(pid):
    """Whether the process has ended. It may still be a zombie, because PID 1 of a container may wait for nobody."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


class Daemon:
    """A shmviewd in a directory of its own."""

    def __init__(self, directory):
        self.directory = directory
        self.socket = os.path.join(directory, "io.shmview")
        self.log = os.path.join(directory, "log")
        self.process = None

    def start(self, config=None):
        command = [os.environ["SHMVIEWD"], "--socket", self.socket]
        if config is not None:
            path = os.path.join(self.directory, "shmviewd.json")
            with open(path, "w") as file:
                json.dump(config, file)
            command += ["--config", path]
        with open(self.log, "ab") as log:
            before = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            preexec_fn=end_with_parent)

        def listens():
            assert self.process.poll() is None, self.said()
            return ", listening on " in self.said()[before:]
        await_(listens, what="the daemon")

    def said(self):
        with open(self.log) as log:
            return log.read()

    def stop(self):
        instance = self.said().split(", instance ")[1].split(",")[0]
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0, self.said()
        assert not os.path.exists(f"/dev/shm/shmview.{instance}"), "the daemon left objects"


@pytest.fixture(scope="module")
def directory():
    """Returns a runtime directory without a daemon."""
    with tempfile.TemporaryDirectory(prefix="shmview-cli-") as path:
        yield path


@pytest.fixture
def tmp_path():
    """Replaces pytest's own, which keeps the last ones."""
    with tempfile.TemporaryDirectory(prefix="shmview-cli-tmp-") as path:
        yield pathlib.Path(path)


@pytest.fixture(scope="module")
def daemon(directory):
    daemon = Daemon(directory)
    daemon.start()
    yield daemon
    daemon.stop()


def environment(directory, **more):
    env = dict(os.environ, XDG_RUNTIME_DIR=directory, HOME=directory, TERM="xterm",
               SHMVIEW_DAEMON=os.environ["SHMVIEWD"], SHMVIEW_IDLE_EXIT="1")
    for name in "NO_COLOR", "COLUMNS", "SHMVIEW_SOCKET":
        env.pop(name, None)
    env.update(more)
    return {name: value for name, value in env.items() if value is not None}


class Result:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def rows(self):
        """Returns the words of each line."""
        return [line.split() for line in self.out.splitlines()]


@functools.cache
def columns():
    """Returns the names of all columns of list, with commas between them."""
    told = subprocess.run([CTL, "list", "-o", "help"], capture_output=True, text=True, check=True).stdout
    return ",".join(line.split()[0] for line in told.splitlines())


class Ctl:
    """shmviewctl as a function: ctl("list", "--json").json. The call checks the exit status, and
    that standard error is empty unless status or err are given."""

    def __init__(self, directory, socket=None):
        self.directory = directory
        self.environment = environment(directory, SHMVIEW_SOCKET=socket)

    def __call__(self, *words, status=0, err=None, binary=False, input=None, env=None, cwd=None):
        done = subprocess.run([CTL, *map(str, words)], capture_output=True, text=not binary,
                              env=dict(self.environment, **(env or {})), timeout=100,
                              input=input, stdin=subprocess.DEVNULL if input is None else None,
                              cwd=cwd)
        assert done.returncode == status, done
        said = done.stderr.decode() if binary else done.stderr
        if err is None:
            assert said == "" or status != 0, done
        else:
            assert err in said, said
        if status != 0:
            assert said.startswith("shmviewctl: "), done
        return Result(done)

    def start(self, *words, **options):
        """Like a call, but in the background. Returns a Popen with pipes."""
        return subprocess.Popen([CTL, *map(str, words)], env=self.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=end_with_parent, **options)

    def on_a_terminal(self, *words, **env):
        """Returns what the program writes to a terminal, to standard output and error. It must
        succeed."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([CTL, *map(str, words)], stdin=subprocess.DEVNULL,
                                   stdout=theirs, stderr=theirs, env=dict(self.environment, **env),
                                   preexec_fn=end_with_parent)
        os.close(theirs)
        out = b""
        try:
            while more := os.read(ours, 65536):
                out += more
        except OSError:
            pass  # a terminal reports its end in this way
        os.close(ours)
        assert process.wait(100) == 0, out
        return out.decode()

    def segments(self):
        return self("list", "--json").json["segments"]

    def segment(self, name):
        """Returns all columns of one segment, by their names in JSON."""
        return self("list", "--json", "-o", columns(), name).json["segments"][0]


@pytest.fixture
def ctl(daemon):
    """The program, with a daemon that has no segments before and after the test."""
    ctl = Ctl(daemon.directory, daemon.socket)
    yield ctl
    left = []

    def stays():
        left[:] = ctl.segments()
        return all(segment["lifetime"] == "manual" for segment in left)
    await_(stays, what="their end")
    if left:
        ctl("remove", *(segment["name"] for segment in left))


@pytest.fixture
def alone(directory):
    """The program in a place where no daemon runs."""
    with tempfile.TemporaryDirectory(prefix="shmview-cli-none-") as path:
        yield Ctl(path, os.path.join(path, "io.shmview"))


class Party:
    """Another client: a Python program that executes the lines it receives."""

    PROGRAM = """
import json, sys, traceback
import shmview
names = {"shmview": shmview}
for line in sys.stdin:
    try:
        try:
            answer = eval(json.loads(line), names)
        except SyntaxError:
            answer = exec(json.loads(line), names)
        print(json.dumps({"is": answer if isinstance(answer, (int, float, str)) else None}),
              flush=True)
    except BaseException:
        print(json.dumps({"failed": traceback.format_exc()}), flush=True)
"""

    def __init__(self, ctl):
        env = dict(ctl.environment, PYTHONPATH=os.path.join(os.environ["SHMVIEW_BUILD_DIR"],
                                                            "python"))
        if "SHMVIEW_PRELOAD" in env:
            env.update(LD_PRELOAD=env["SHMVIEW_PRELOAD"], PYTHONMALLOC="malloc",
                       ASAN_OPTIONS="detect_leaks=0")
        self.process = subprocess.Popen([sys.executable, "-c", self.PROGRAM], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        preexec_fn=end_with_parent)
        self.pid = self.process.pid

    def begin(self, code):
        """Sends code and does not wait."""
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def end(self):
        """Waits until the code has run. Returns its value."""
        answer = json.loads(self.process.stdout.readline())
        assert "failed" not in answer, answer["failed"]
        return answer["is"]

    def do(self, code):
        self.begin(code)
        return self.end()

    def kill(self):
        self.process.kill()
        self.leave()

    def leave(self):
        """Returns False if the program had to be killed: it waits for something that does not come."""
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        finally:
            self.process.stdout.close()
        return True


@pytest.fixture
def party(ctl):
    """Starts other clients, which end after the test: party().do("s = shmview.attach('a')")."""
    if not os.path.isdir(os.path.join(os.environ["SHMVIEW_BUILD_DIR"], "python")):
        pytest.skip("the Python package is not built")
    parties = []

    def make():
        parties.append(Party(ctl))
        return parties[-1]
    yield make
    # Those of a test that has failed may wait for each other. One that is killed lets others continue.
    assert all([one.leave() for one in parties if one.process.returncode is None]), "a client does not end"
