# SPDX-License-Identifier: Apache-2.0
"""The server of the page in the background, and a client of it. The fixture web starts servers."""

import contextlib
import http.client
import json
import re
import signal
import socket
import struct

import pytest


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


class Web:
    """shmviewctl web in the background, and a client of it."""

    def __init__(self, ctl, *words):
        self.process = ctl.start("web", *words)
        self.link = self.read_link()
        self.port = int(re.search(r":(\d+)/", self.link)[1]) if ":" in self.link[7:] else None
        self.cookie = None

    def read_link(self):
        """Returns the next link that the program prints."""
        while True:
            line = self.process.stdout.readline()
            assert line, self.process.stderr.read()
            if found := re.search(r"http://\S+", line):
                return found[0]

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, path, method="GET", body=None, connection=None, **headers):
        """Sends a request. A header that is None is left out; "_" in a name stands for "-"."""
        connection = connection or self.connection()
        sent = {"Host": f"localhost:{self.port}" if self.port else "localhost"}
        if self.cookie:
            sent["Cookie"] = self.cookie
        if method == "POST":
            sent["Origin"] = f"http://{sent['Host']}"
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        connection.putrequest(method, path, skip_host=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.bytes = answer.read()
        answer.text = answer.bytes.decode(errors="replace")
        return answer

    def status(self, path, *args, **headers):
        return self.ask(path, *args, **headers).status

    def json(self, path):
        answer = self.ask(path)
        assert answer.status == 200, answer.text
        assert answer.headers["Content-Type"] == "application/json"
        return json.loads(answer.text)

    def error(self, path, *args, status=400, **headers):
        """Returns the text of an error."""
        answer = self.ask(path, *args, **headers)
        assert answer.status == status, answer.text
        return json.loads(answer.text)["error"]

    def picture(self, path):
        """Returns the text of an answer that is bytes, and the bytes after it."""
        answer = self.ask(path)
        assert answer.status == 200, answer.text
        n, zero = struct.unpack_from("=II", answer.bytes)
        assert (8 + n) % 8 == 0 and zero == 0
        return json.loads(answer.bytes[8:8 + n]), answer.bytes[8 + n:]

    def enter(self):
        """Uses the link."""
        answer = self.ask("/" + self.link.split("/", 3)[3])
        assert answer.status == 200, answer.text
        cookie = answer.headers["Set-Cookie"]
        assert cookie.endswith("; Path=/; HttpOnly; SameSite=Strict")
        self.cookie = cookie.split(";")[0]
        return self

    @contextlib.contextmanager
    def events(self, path="/api/events"):
        """Yields a function that returns the next event."""
        connection = self.connection()
        connection.request("GET", path, headers={"Cookie": self.cookie})
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream"

        def following():
            while not (line := answer.readline().decode()).startswith("data: "):
                assert line, "the stream has ended"
            return json.loads(line[6:])
        yield following
        connection.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        assert err == ""


@pytest.fixture
def web(ctl):
    servers = []

    def start(*words):
        servers.append(Web(ctl, *(words or ["--port", "0"])))
        return servers[-1]
    yield start
    for one in servers:
        one.stop()
