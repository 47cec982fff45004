# SPDX-License-Identifier: Apache-2.0
"""The daemon under siege: starts, ends and configures it, and observes it from outside."""

import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import struct
import tempfile
import time

from agent import become, close_all_but, die_with_parent

SHM = "/dev/shm"
START_S = 60
HEADER = struct.Struct("=IIIIQQ")
MAGIC = {0x63764D53: "control", 0x6C764D53: "liveness"}
SLOTS = 1000
GENERATIONS_AT = 96
DEAD = 0x80000000
PRESENCE = "/+presence"  # the directory of presence files


class Broken(Exception):
    """The daemon did something that it must not do."""


class Object:
    """A file of the daemon in /dev/shm."""

    def __init__(self, path):
        self.path = path
        st = os.stat(path, follow_symlinks=False)
        self.size, self.inode = st.st_size, st.st_ino
        self.segment, self.kind = None, "presence" if PRESENCE in path else "other"
        if stat.S_ISREG(st.st_mode):
            with open(path, "rb") as f:
                head = f.read(HEADER.size)
            if len(head) == HEADER.size:
                magic, _, _, _, segment, _ = HEADER.unpack(head)
                if magic in MAGIC:
                    self.kind, self.segment = MAGIC[magic], segment


class Server:
    def __init__(self, program, uid, log):
        self.program = program
        self.uid = uid
        self.directory = tempfile.mkdtemp(prefix="shmview-siege.")
        os.chmod(self.directory, 0o755)
        if os.getuid() == 0:
            os.chown(self.directory, uid, uid)
        self.socket = self.directory + "/io.shmview"
        self.config = self.directory + "/c.json"
        self.log = open(log, "ab") if log else open(self.directory + "/log", "ab")
        self.log_path = self.log.name
        self.pid = 0
        self.instance = None
        self.stopped = False
        self.starts = 0

    # --- Its configuration ---

    def configure(self, text):
        with open(self.config + ".new", "w") as f:
            f.write(text)
        os.chmod(self.config + ".new", 0o600)
        if os.getuid() == 0:
            os.chown(self.config + ".new", self.uid, self.uid)
        os.rename(self.config + ".new", self.config)

    # --- Its life ---

    def start(self):
        """Starts the daemon and returns when it listens. Raises Broken if it does not."""
        r, w = os.pipe()
        before = self.log.tell() if self.log.tell() else os.path.getsize(self.log_path)
        self.pid = os.fork()
        if self.pid == 0:
            self._become_daemon(w)
        os.close(w)
        try:
            if not select.select([r], [], [], START_S)[0] or not os.read(r, 1):
                raise Broken("the daemon does not start:\n" + self.said(before))
        finally:
            os.close(r)
        self.starts += 1
        self.stopped = False
        found = re.findall(r", instance ([^,\s]+)", self.said(before))
        if not found:
            raise Broken("the daemon has not logged its instance:\n" + self.said(before))
        self.instance = found[-1]
        os.chmod(self.socket, 0o666)

    def _become_daemon(self, ready):
        try:
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(self.log.fileno(), 1)
            os.dup2(self.log.fileno(), 2)
            close_all_but({ready})
            os.set_inheritable(ready, True)
            become(self.uid, self.uid, [])
            die_with_parent()
            os.environ["SHMVIEW_CONFIG"] = "/dev/null"
            os.execl(self.program, self.program, "--socket", self.socket, "--config", self.config,
                     "--ready-fd", str(ready))
        finally:
            os._exit(127)

    def said(self, from_byte=0, most=6000):
        with open(self.log_path, "rb") as f:
            f.seek(from_byte)
            return f.read()[-most:].decode(errors="replace")

    def check(self):
        """Raises Broken if the daemon has ended by itself."""
        if not self.pid:
            return
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self.pid = 0
            raise Broken(f"the daemon ended by itself with status {status:#x}:\n" + self.said())

    def end(self, number):
        """Ends the daemon by that signal, and waits. A daemon that is asked to leave must return
        0."""
        self.resume()
        os.kill(self.pid, number)
        until = time.monotonic() + START_S
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > until:
                raise Broken(f"the daemon does not end by signal {number}")
            time.sleep(0.002)
        self.pid = 0
        if number != signal.SIGKILL and status:
            raise Broken(f"the daemon ended by signal {number} with status {status:#x}:\n" + self.said())

    def stop(self):
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)
        self.stopped = True

    def resume(self):
        if self.stopped and self.pid:
            os.kill(self.pid, signal.SIGCONT)
        self.stopped = False

    def remove(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = 0
        self.log.close()
        for path in self._paths():
            os.unlink(path)
        for directory in self._directories():
            shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- What it has ---

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def list_descriptors(self):
        directory = f"/proc/{self.pid}/fd"
        fds = sorted(os.listdir(directory), key=int)
        return "\n".join(f"    {fd}: {os.readlink(directory + '/' + fd)}" for fd in fds)

    def reloads(self):
        """Returns how many times SIGHUP has made it read its configuration, or refuse it."""
        with open(self.log_path, "rb") as f:
            return len(re.findall(rb"the configuration was (?:read|not replaced)", f.read()))

    def _directories(self):
        """Yields the directory /dev/shm/shmview.INSTANCE, and the one with a suffix."""
        if not self.instance:
            return []
        return [e.path for e in os.scandir(SHM)
                if e.name.startswith("shmview." + self.instance) and e.is_dir(follow_symlinks=False)]

    def _paths(self):
        if not self.instance:
            return []
        paths = [e.path for e in os.scandir(SHM)
                 if e.name.startswith("shmview." + self.instance) and not e.is_dir(follow_symlinks=False)]
        for directory in self._directories():
            paths += [e.path for e in os.scandir(directory) if not e.is_dir(follow_symlinks=False)]
            if os.path.isdir(directory + PRESENCE):
                paths += [e.path for e in os.scandir(directory + PRESENCE)]
        return paths

    def objects(self):
        """Returns all of its objects, except those that end during the look."""
        found = []
        for path in self._paths():
            try:
                found.append(Object(path))
            except FileNotFoundError:
                pass
        return found

    def registry(self):
        return self.socket + ".registry"


class Auditor:
    """A connection of the driver, over which it asks the daemon for its state."""

    def __init__(self, path, patience):
        self.patience = patience
        self.path = path
        self.sock = None
        self.worst = 0.0

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None

    def call(self, method, parameters=None, may_fail=False, service=False):
        """Calls a method. Returns the reply's parameters. Raises Broken for an error, unless it
        may fail, and for a late reply."""
        began = time.monotonic()
        if not self.sock:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.patience)
            self.sock.connect(self.path)
        interface = "org.varlink.service." if service else "io.shmview."
        request = {"method": interface + method, "parameters": parameters or {}}
        try:
            self.sock.sendall(json.dumps(request).encode() + b"\0")
            data = b""
            while not data.endswith(b"\0"):
                got = self.sock.recv(1 << 20)
                if not got:
                    raise Broken(f"the daemon hung up on a bystander's {method}")
                data += got
        except TimeoutError:
            raise Broken(f"a bystander waits for {method} for more than {self.patience} s") from None
        except OSError as e:
            raise Broken(f"a bystander's {method}: {e}") from None
        self.worst = max(self.worst, time.monotonic() - began)
        reply = json.loads(data[:-1])
        if "error" in reply and may_fail:
            return None
        if "error" in reply:
            raise Broken(f"a bystander's {method} fails: {reply}")
        return reply["parameters"]

    def look(self):
        """Returns all segments by id, and the figures of the instance."""
        segments, after = {}, 0
        while True:
            page = self.call("Stats", {"after": after, "limit": 100})
            for s in page["segments"]:
                segments[s["id"]] = s
            if "next" not in page:
                return segments, page["instance"]
            after = page["next"]
