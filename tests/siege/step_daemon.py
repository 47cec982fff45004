# SPDX-License-Identifier: Apache-2.0
"""Steps that configure, stop, end and restart the daemon."""

import os
import signal
import struct

import oracle
from step_clients import exec_client, holders, kill_client_quietly, lock_word, write_data
from step_requests import close, send_some


def reload(siege):
    """Writes another configuration and sends SIGHUP, sometimes several in a row, sometimes a
    broken one."""
    rng = siege.rng
    for _ in range(rng.choice([1, 1, 2, 5])):
        if rng.random() < 0.25:
            siege.server.configure(rng.choice(["{", "[]", '{"quotas": 5}', '{"nothing": 1}', "{}x",
                                               '{"segments": [{"name": "../x", "size": 1}]}', ""]))
            before = siege.server.reloads()
            os.kill(siege.server.pid, signal.SIGHUP)
            siege.note("SIGHUP with a broken configuration", "*")
            siege.await_reload(before)
    siege.new_config()
    siege.await_config()
    oracle.settle(siege)


def end_daemon(siege):
    """Ends the daemon by some signal, while clients go on, and starts another one."""
    rng = siege.rng
    for conn in rng.sample(siege.conns(), min(len(siege.conns()), rng.randrange(3))):
        if rng.random() < 0.6:
            send_some(siege, conn)
    siege.end_daemon(rng.choice([signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]))
    between = rng.randrange(4)
    for _ in range(between):
        rng.choice([write_data, kill_client_quietly, lock_word, exec_client])(siege)
    siege.start_daemon()


def damage_registry(siege):
    """Damages the registry between two daemons. The next one must serve, whatever it keeps, and
    nothing of it may remain for good."""
    siege.end_daemon(siege.rng.choice([signal.SIGTERM, signal.SIGKILL]))
    kind = damage(siege.rng, siege.server)
    siege.note(f"the registry is damaged: {kind}", "*")
    siege.server.start()
    siege.note("another daemon starts", "*")
    siege.ping()
    oracle.start_over(siege)


def damage(rng, server):
    """Damages the registry. Returns how."""
    path = server.registry()
    if not os.path.exists(path):
        return "it is not there"
    size = os.path.getsize(path)
    kind = rng.choice(["bytes", "bytes", "words", "words", "words", "page", "swap", "cut", "grown", "rubbish", "none",
                       "directory", "link", "open", "foreign"])
    if kind in ("none", "directory", "link"):
        os.unlink(path)
        if kind == "directory":
            os.mkdir(path)
        elif kind == "link":
            os.symlink("/etc/passwd", path)
    elif kind == "open":
        os.chmod(path, 0o666)
    elif kind == "foreign" and os.getuid() == 0:
        os.chown(path, 65503, 65503)
    elif kind == "cut":
        os.truncate(path, rng.choice([0, 1, 100, 4096, 8192, rng.randrange(size + 1)]))
    elif kind == "grown":
        os.truncate(path, size * 2 + rng.randrange(5000))
    else:
        harm(rng, path, kind, size)
    return kind


def harm(rng, path, kind, size):
    pages = max(size // 4096, 1)
    with open(path, "r+b") as f:
        for _ in range(rng.choice([1, 1, 3, 20])):
            at = rng.randrange(pages) * 4096
            if kind == "bytes":
                f.seek(rng.randrange(size))
                f.write(rng.randbytes(1))
            elif kind == "words":  # like page numbers, counts and flags
                f.seek(at + 2 * rng.choice([rng.randrange(0, 100), rng.randrange(0, 2048)]))
                word = rng.choice([0, 1, 2, 3, 4, 5, 9, 255, 4096, 65535])
                f.write(struct.pack(rng.choice(["=H", "=I", "=Q"]), word))
            elif kind == "page":
                f.seek(at)
                f.write(rng.choice([bytes(4096), rng.randbytes(4096)]))
            elif kind == "swap":
                f.seek(at)
                page = f.read(4096)
                f.seek(rng.randrange(pages) * 4096)
                f.write(page)
            else:
                f.seek(0)
                f.write(rng.randbytes(size))


def stop_daemon(siege):
    """Stops the daemon while clients send, hang up and die."""
    rng = siege.rng
    siege.note("the daemon is stopped", "*")
    siege.server.stop()
    for _ in range(rng.randrange(1, 6)):
        conns = siege.conns()
        kind = rng.randrange(4)
        if kind == 0 and conns:
            send_some(siege, rng.choice(conns))
        elif kind == 1 and conns:
            close(siege, rng.choice(conns))
        elif kind == 2:
            kill_client_quietly(siege)
        else:
            rng.choice([write_data, lock_word])(siege)
    siege.note("the daemon goes on", "*")
    siege.server.resume()


def check(siege):
    """Waits for everything under way, and compares."""
    for conn in [c for c in siege.model.conns if c.ops or c.unread]:
        for holder in holders(conn):
            close(siege, conn, holder)
    oracle.settle(siege)
    oracle.check_users(siege)
