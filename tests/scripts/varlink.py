#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A foreign client: it knows of shmviewd only what the daemon reports about itself.

It parses the interface descriptions that GetInterfaceDescription returns, then uses the daemon,
and checks every request, reply and error against the parsed types.
"""

import array
import fcntl
import glob
import json
import mmap
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # otherwise files appear beside the sources

from parts.interface import Parser, check  # noqa: E402

PATIENCE_S = 20


# --- The client ---------------------------------------------------------------


class VarlinkError(Exception):
    def __init__(self, name, parameters):
        super().__init__(name, parameters)
        self.name = name
        self.parameters = parameters


class Client:
    interfaces = {}
    called = set()
    errors = set()

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)
        self.bytes = b""

    def exchange(self, method, parameters):
        """Sends a call. Returns the reply and the descriptors that came with it."""
        call = {"method": method}
        if parameters is not None:
            call["parameters"] = parameters
        self.socket.sendall(json.dumps(call).encode() + b"\0")
        fds = array.array("i")
        while b"\0" not in self.bytes:
            size = socket.CMSG_SPACE(8 * fds.itemsize)
            got, ancillary, flags, _ = self.socket.recvmsg(65536, size)
            assert got, f"{method}: the daemon hung up"
            assert not flags & socket.MSG_CTRUNC
            for level, kind, data in ancillary:
                assert (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
                fds.frombytes(data)
            self.bytes += got
        text, self.bytes = self.bytes.split(b"\0", 1)
        assert not self.bytes, "a reply without a request"
        return json.loads(text), list(fds)

    def learn(self):
        """Asks for the interfaces and parses them."""
        info, _ = self.exchange("org.varlink.service.GetInfo", None)
        for name in info["parameters"]["interfaces"]:
            reply, _ = self.exchange("org.varlink.service.GetInterfaceDescription",
                                     {"interface": name})
            told, members = Parser(reply["parameters"]["description"]).interface()
            assert told == name, f"{told} is not {name}"
            Client.interfaces[name] = members
        # again, because the types are known now
        self.call("org.varlink.service.GetInfo")

    def call(self, method, **parameters):
        """Calls a method with parameters of the declared types. Returns the reply's
        parameters, with "fds" if descriptors came, or raises VarlinkError."""
        interface, name = method.rsplit(".", 1)
        members = self.interfaces[interface]
        wanted, returned = members["method"][name]
        check(parameters, wanted, members["type"], method)
        Client.called.add(method)
        reply, fds = self.exchange(method, parameters)
        if "error" in reply:
            raise self.error(reply, fds)
        assert set(reply) <= {"parameters"}, reply
        result = reply.get("parameters", {})
        check(result, returned, members["type"], f"reply of {method}")
        if fds:
            result["fds"] = fds
        return result

    def error(self, reply, fds):
        assert not fds, "descriptors with an error"
        assert set(reply) <= {"error", "parameters"}, reply
        interface, name = reply["error"].rsplit(".", 1)
        members = self.interfaces[interface]
        # the daemon adds a reason to errors of org.varlink.service, although that interface does
        # not declare one
        check(reply.get("parameters", {}), members["error"][name], members["type"], reply["error"],
              lenient=interface == "org.varlink.service")
        Client.errors.add(reply["error"])
        return VarlinkError(reply["error"], reply.get("parameters", {}))

    def listen(self, method, **parameters):
        """Calls a method that replies several times. Yields the parameters of each reply."""
        interface, name = method.rsplit(".", 1)
        members = self.interfaces[interface]
        wanted, returned = members["method"][name]
        check(parameters, wanted, members["type"], method)
        Client.called.add(method)
        call = {"method": method, "parameters": parameters, "more": True}
        self.socket.sendall(json.dumps(call).encode() + b"\0")
        while True:
            while b"\0" not in self.bytes:
                got = self.socket.recv(65536)
                assert got, f"{method}: the daemon hung up"
                self.bytes += got
            text, self.bytes = self.bytes.split(b"\0", 1)
            reply = json.loads(text)
            if "error" in reply:
                raise self.error(reply, [])
            assert set(reply) == {"parameters", "continues"} and reply["continues"] is True, reply
            check(reply["parameters"], returned, members["type"], f"reply of {method}")
            yield reply["parameters"]

    def refused(self, error, method, **parameters):
        """Calls a method that must fail with that error. Returns its parameters."""
        try:
            result = self.call(method, **parameters)
        except VarlinkError as e:
            assert e.name == error, f"{method}: {e.name} {e.parameters}, not {error}"
            return e.parameters
        raise AssertionError(f"{method} {parameters}: {result}, not {error}")

    def refused_unchecked(self, error, method, parameters):
        """Like refused(), but for a call that the declared types do not permit."""
        reply, fds = self.exchange(method, parameters)
        e = self.error(reply, fds)
        assert e.name == error, f"{method}: {e.name}, not {error}"


# --- What it does -------------------------------------------------------------

SERVICE = "org.varlink.service."
SHMVIEW = "io.shmview."
SIZE = 10000


def attach(client, access, n_fds):
    result = client.call(SHMVIEW + "Attach", name="foreign", access=access)
    attachment = result["attachment"]
    assert attachment["descriptors"] == len(result["fds"]) == n_fds
    assert attachment["access"] == access
    return attachment, result["fds"]


def share_bytes(client):
    created = client.call(SHMVIEW + "Create", name="foreign", size=SIZE, lifetime="manual")
    assert created["segment"]["size"] == SIZE and created["segment"]["owner"] == os.getuid()
    assert "attachment" not in created and "fds" not in created

    writer, writer_fds = attach(client, "write", 3)
    peeker, peeker_fds = attach(client, "peek", 1)
    assert "control" not in peeker and "slot" not in peeker
    with mmap.mmap(writer_fds[writer["data"]], SIZE) as seen:
        assert seen[:] == bytes(SIZE)
        seen[100:108] = b"foreign!"
    with mmap.mmap(peeker_fds[peeker["data"]], SIZE, prot=mmap.PROT_READ) as seen:
        assert seen[100:108] == b"foreign!"
    try:
        mmap.mmap(peeker_fds[peeker["data"]], SIZE)
        raise AssertionError("peek can be mapped writable")
    except PermissionError:
        pass
    for fd in writer_fds + peeker_fds:
        os.close(fd)

    told = client.call(SHMVIEW + "Describe", name="foreign")
    assert told["segment"]["attachments"] == 2
    assert client.call(SHMVIEW + "List")["segments"] == [told["segment"]]
    client.call(SHMVIEW + "Detach", attachment=peeker["id"])
    client.refused(SHMVIEW + "NotAttached", SHMVIEW + "Detach", attachment=peeker["id"])
    return writer["id"]


def view(**members):
    return {"name": "v", "format": "f", "shape": [10]} | members


def declare_layouts(client):
    matrix = view(name="m", shape=[5, 20], strides=[-80, 4], offset=320, readonly=True)
    first = {"name": "first", "views": [view(), matrix]}
    define = SHMVIEW + "DefineLayout"
    assert client.call(define, name="foreign", layout=first) == {"index": 0}
    client.refused(SHMVIEW + "LayoutExists", define, name="foreign", layout=first)
    told = client.call(SHMVIEW + "Describe", name="foreign")["layouts"]
    assert told[0]["name"] == "first" and len(told[0]["views"]) == 2
    for member, value in matrix.items():
        assert told[0]["views"][1][member] == value

    for error, bad in (
            ("InvalidFormat", view(format="nonsense")),
            ("MisalignedView", view(offset=2)),
            ("ViewOutOfBounds", view(shape=[SIZE])),
            ("ViewOverflow", view(shape=[2**62, 2**62]))):
        facts = client.refused(SHMVIEW + error, define, name="foreign",
                               layout={"name": "bad", "views": [bad]})
        assert facts["view"] == "v", facts
    for i in range(1, 64):
        client.call(define, name="foreign", layout={"name": f"l{i}", "views": [view()]})
    facts = client.refused(SHMVIEW + "LimitExceeded", define, name="foreign",
                           layout={"name": "l64", "views": [view()]})
    assert facts["limit"] == 64


def grant(client):
    """Checks access: members that a request sets change, the others stay."""
    entries = [{"user": 1, "right": "read"}, {"group": 2, "right": "write"}]
    set_access = SHMVIEW + "SetAccess"
    told = client.call(set_access, name="foreign", mode=0o640, acl=entries)["segment"]
    assert told["mode"] == 0o640 and told["acl"] == entries and told["owner"] == os.getuid()
    told = client.call(set_access, name="foreign", mode=0o600)["segment"]
    assert told["mode"] == 0o600 and told["acl"] == entries and told["group"] == os.getgid()
    told = client.call(set_access, name="foreign", acl=[])["segment"]
    assert told == client.call(SHMVIEW + "Describe", name="foreign")["segment"]
    assert told["acl"] == []
    facts = client.refused(SERVICE + "InvalidParameter", set_access, name="foreign", mode=0o111)
    assert facts["parameter"] == "mode"
    facts = client.refused(SERVICE + "InvalidParameter", set_access, name="foreign",
                           acl=[entries[0], entries[0]])
    assert facts["parameter"] == "acl"


def own_memory(client):
    """Hands over memory for a segment."""
    fd = os.memfd_create("own", os.MFD_ALLOW_SEALING)
    os.fchmod(fd, 0o644)
    os.posix_fallocate(fd, 0, 5000)
    fcntl.fcntl(fd, 1033, 0x2 | 0x4)  # F_ADD_SEALS: SHRINK, GROW
    reply = client.call(SHMVIEW + "HandOver")
    assert reply["descriptors"] == len(reply["fds"]) == 1
    with socket.socket(fileno=reply["fds"][reply["socket"]]) as handover:
        socket.send_fds(handover, [b"m"], [fd])
    reply = client.call(SHMVIEW + "Create", name="own", size=5000, access="write", memory="client")
    segment, fds = reply["segment"], reply["fds"]
    assert (segment["backing"], segment["paid_by"]) == ("sealed", os.geteuid())
    assert os.fstat(fds[reply["attachment"]["data"]]).st_ino == os.fstat(fd).st_ino
    for each in [fd, *fds]:
        os.close(each)
    facts = client.refused("org.varlink.service.InvalidParameter", SHMVIEW + "Create", name="other", size=1,
                           memory="client")
    assert facts["parameter"] == "memory"
    client.call(SHMVIEW + "Detach", attachment=reply["attachment"]["id"])  # its last


def watch(client):
    """Checks that a message on the bell makes the descriptors of all watchers of the segment
    readable."""
    reply = client.call(SHMVIEW + "Claim", client=7, held=[], bell=True)
    assert reply["descriptors"] == len(reply["fds"]) == 1
    bell = socket.socket(fileno=reply["fds"][reply["bell"]])
    reply = client.call(SHMVIEW + "Create", name="watched", size=10, access="write")
    attachment = reply["attachment"]["id"]
    fds = reply["fds"]
    for _ in range(2):
        reply = client.call(SHMVIEW + "Watch", attachment=attachment)
        assert reply["descriptors"] == len(reply["fds"]) == 1
        fds += reply["fds"]
    bell.send(attachment.to_bytes(8, sys.byteorder))
    assert select.select([fds[-1]], [], [], 20)[0]
    assert os.read(fds[-1], 8) == (1).to_bytes(8, sys.byteorder)
    bell.close()
    client.call(SHMVIEW + "Detach", attachment=attachment)
    client.refused(SHMVIEW + "NotAttached", SHMVIEW + "Watch", attachment=attachment)
    for fd in fds:
        os.close(fd)


def monitor(client, path):
    """Checks that a monitor receives the events of the segments that it named, and no others."""
    client.refused(SERVICE + "ExpectedMore", SHMVIEW + "Monitor")
    listener = Client(path)
    events = (reply["event"] for reply in listener.listen(SHMVIEW + "Monitor", names=["told"]))
    assert next(events)["kind"] == "subscribed"
    for name in ("untold", "told"):
        reply = client.call(SHMVIEW + "Create", name=name, size=10, access="write")
        client.call(SHMVIEW + "Detach", attachment=reply["attachment"]["id"])
        for fd in reply["fds"]:
            os.close(fd)
    for kind in ("created", "attached", "detached", "removed"):
        event = next(events)
        assert event["kind"] == kind and event["segment"] == "told", event
        assert event["uid"] == os.getuid() and event["pid"] == os.getpid(), event
    listener.socket.close()


def figures(client):
    """Checks the figures of the daemon, of segments by name, and of all segments in pages."""
    for name in ("f1", "f2", "f3"):
        client.call(SHMVIEW + "Create", name=name, size=10000)
    reply = client.call(SHMVIEW + "Create", name="f4", size=5, access="write")
    whole = client.call(SHMVIEW + "Stats")
    assert whole["segments"] == [] and "next" not in whole
    instance = whole["instance"]
    assert instance["segments"] == 4 and instance["attachments"] == 1, instance
    assert instance["allocated_bytes"] == 30005 and instance["removed_bytes"] == 0, instance
    assert instance["connections"] >= 1 and instance["starts"] == 1, instance
    named = client.call(SHMVIEW + "Stats", names=["f4", "none", "f2"])["segments"]
    assert [s["name"] for s in named] == ["f4", "f2"]
    assert named[1]["resident"] == 12288 and named[1]["attached"] == []
    assert [a["pid"] for a in named[0]["attached"]] == [os.getpid()]
    names = []
    page = client.call(SHMVIEW + "Stats", limit=2)
    while True:
        assert len(page["segments"]) <= 2
        names += [s["name"] for s in page["segments"]]
        if "next" not in page:
            break
        page = client.call(SHMVIEW + "Stats", limit=2, after=page["next"])
    assert names == ["f1", "f2", "f3", "f4"], names
    client.call(SHMVIEW + "Remove", name="f4")
    instance = client.call(SHMVIEW + "Stats")["instance"]
    assert instance["removed_bytes"] == 5, instance
    client.call(SHMVIEW + "Detach", attachment=reply["attachment"]["id"])
    for fd in reply["fds"]:
        os.close(fd)
    for name in ("f1", "f2", "f3"):
        client.call(SHMVIEW + "Remove", name=name)
    instance = client.call(SHMVIEW + "Stats")["instance"]
    assert instance["allocated_bytes"] == instance["removed_bytes"] == 0, instance


def be_refused(client, path):
    facts = client.refused(SHMVIEW + "SegmentExists", SHMVIEW + "Create", name="foreign", size=1)
    assert facts["name"] == "foreign"
    facts = client.refused(SHMVIEW + "NoSpace", SHMVIEW + "Create", name="big", size=2**50)
    assert facts["asked"] == 2**50 > facts["free"]
    for method in ("Remove", "Describe"):
        facts = client.refused(SHMVIEW + "SegmentNotFound", SHMVIEW + method, name="none")
        assert facts["name"] == "none"
    invalid = SERVICE + "InvalidParameter"
    facts = client.refused(invalid, SHMVIEW + "Create", name="a/b", size=1)
    assert facts["parameter"] == "name"
    client.refused(invalid, SHMVIEW + "Create", name="n", size=1, lifetime="attached")
    client.refused_unchecked(invalid, SHMVIEW + "Create", {"name": "n", "size": "1"})
    client.refused_unchecked(SERVICE + "MethodNotFound", SHMVIEW + "Nothing", {})
    client.refused_unchecked(SERVICE + "InterfaceNotFound", "org.example.Nothing", {})
    client.refused(SERVICE + "InterfaceNotFound", SERVICE + "GetInterfaceDescription",
                   interface="org.example")
    stranger = Client(path)
    stranger.refused(SERVICE + "PermissionDenied", SHMVIEW + "DefineLayout", name="foreign",
                     layout={"name": "s", "views": []})
    stranger.socket.close()


def freeze(client):
    seal_write = 0x8
    reply = client.call(SHMVIEW + "Create", name="frozen", size=10, access="write", backing="sealed")
    attachment = reply["attachment"]["id"]
    fds = reply["fds"]
    reply = client.call(SHMVIEW + "Attach", name="frozen", access="write")
    fds += reply["fds"]
    facts = client.refused(SHMVIEW + "SegmentBusy", SHMVIEW + "Freeze", attachment=attachment)
    assert (facts["pid"], facts["attachments"]) == (os.getpid(), 1)
    client.call(SHMVIEW + "Detach", attachment=reply["attachment"]["id"])
    reply = client.call(SHMVIEW + "Freeze", attachment=attachment)
    fds += reply["fds"]
    fcntl.fcntl(reply["fds"][reply["write"]], fcntl.F_ADD_SEALS, seal_write)
    assert client.call(SHMVIEW + "Freeze", attachment=attachment, done=True) == {}
    assert client.call(SHMVIEW + "Describe", name="frozen")["segment"]["frozen"] == "all"
    facts = client.refused(SHMVIEW + "SegmentFrozen", SHMVIEW + "Attach", name="frozen", access="write")
    assert facts["name"] == "frozen"
    client.call(SHMVIEW + "Detach", attachment=attachment)
    for fd in fds:
        os.close(fd)


def use_daemon(path):
    client = Client(path)
    client.learn()
    assert {"org.varlink.service", "io.shmview"} <= set(client.interfaces)
    client.call(SHMVIEW + "Ping")
    held = client.call(SHMVIEW + "Claim", client=7, held=[1])
    assert held == {"held": []}
    assert client.call(SHMVIEW + "List") == {"segments": []}
    writer = share_bytes(client)
    declare_layouts(client)
    grant(client)
    be_refused(client, path)
    client.call(SHMVIEW + "Remove", name="foreign")
    client.call(SHMVIEW + "Create", name="left", size=10, lifetime="creator")
    client.call(SHMVIEW + "Entrust", name="left", pid=os.getpid())
    client.call(SHMVIEW + "Remove", name="left")
    assert client.call(SHMVIEW + "List") == {"segments": []}
    client.call(SHMVIEW + "Detach", attachment=writer)

    own_memory(client)
    watch(client)
    freeze(client)
    monitor(client, path)
    figures(client)
    declared = {f"{i}.{m}" for i, members in client.interfaces.items() for m in members["method"]}
    assert client.called >= declared, f"not called: {declared - client.called}"
    client.socket.close()


# --- The daemon ---------------------------------------------------------------


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.005)


def run_daemon(program, directory):
    path = os.path.join(directory, "io.shmview")
    log = os.path.join(directory, "log")

    def instance():
        with open(log, encoding="utf-8") as lines:
            found = re.search(r"instance (\S+), listening on .*\n", lines.read())
        return found and found[1]

    def objects():
        return glob.glob(f"/dev/shm/shmview.{glob.escape(instance())}*")

    with open(log, "w", encoding="utf-8") as output:
        daemon = subprocess.Popen([program, "--socket", path], stderr=output)
    try:
        wait_until(lambda: instance() or daemon.poll() is not None, "the daemon listens")
        use_daemon(path)
        daemon.send_signal(signal.SIGINT)
        status = daemon.wait(PATIENCE_S)
        assert status == 0, f"the daemon ended with {status}"
        assert not os.path.exists(path), "the daemon left its socket"
        assert not objects(), f"the daemon left {objects()}"
    except BaseException:
        daemon.kill()
        daemon.wait()
        with open(log, encoding="utf-8") as lines:
            sys.stderr.write(lines.read())
        for directory in objects() if instance() else []:
            shutil.rmtree(directory)
        raise


def main():
    program = os.environ.get("SHMVIEWD")
    if not program or not os.access(program, os.X_OK):
        print("the daemon is not built: SHMVIEWD")
        return 77
    directory = tempfile.mkdtemp(prefix="shmview-test.", dir="/tmp")
    try:
        run_daemon(program, directory)
    finally:
        shutil.rmtree(directory)
    errors = {f"{i}.{e}" for i, m in Client.interfaces.items() for e in m["error"]}
    print(f"{len(Client.called)} methods called, {len(Client.errors)} of {len(errors)} declared "
          f"errors met; not met: {', '.join(sorted(errors - Client.errors))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
