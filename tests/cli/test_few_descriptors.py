# SPDX-License-Identifier: Apache-2.0
"""A daemon that may open few files starts, or ends with a reason, and leaves no directory in /dev/shm."""

import glob
import os
import resource
import signal
import subprocess

SHMVIEWD = os.environ["SHMVIEWD"]


def objects(socket):
    """The directories in /dev/shm that belong to the daemon of the socket."""
    hashed = 0xcbf29ce484222325
    for byte in str(socket).encode():
        hashed = (hashed ^ byte) * 0x100000001b3 % 2**64
    return glob.glob(f"/dev/shm/shmview.{os.getuid()}-{hashed:016x}*")


def start(folder, n):
    """Starts a daemon with n descriptors. Returns whether it listens, its exit status, and its errors."""
    socket = folder / f"socket-{n}"
    # A daemon that cannot start frees nothing before it ends, which is no leak.
    daemon = subprocess.Popen([SHMVIEWD, "--socket", socket, "--config", "/dev/null"], stderr=subprocess.PIPE,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
    errors = ""
    for line in daemon.stderr:
        errors += line.decode()
        if "listening on" in line.decode():
            daemon.send_signal(signal.SIGTERM)
    status = daemon.wait()
    assert not socket.exists()
    assert objects(socket) == []
    return "listening on" in errors, status, errors


def test_starts_or_tells_why(tmp_path):
    results = {n: start(tmp_path, n) for n in range(5, 44)}
    for n, (listens, status, errors) in results.items():
        lines = errors.splitlines()
        assert status == (0 if listens else 1), (n, status, errors)
        assert lines and all(line.startswith("shmviewd: ") for line in lines), (n, errors)
        if not listens:
            assert "Too many open files" in lines[-1], (n, errors)
    assert not results[5][0] and results[43][0]
    began = [n for n in results if results[n][0]]
    assert began == list(range(began[0], 44))  # and with more it starts too
