# SPDX-License-Identifier: Apache-2.0
"""web: the descriptors and the memory of the server over 100,000 requests. SHMVIEW_WEB_REQUESTS sets
another number. The server answers 500 requests in a second, so this takes about four minutes."""

import contextlib
import json
import os
import time

import pytest

from conftest import await_
from webclient import web  # noqa: F401

pytestmark = pytest.mark.skipif("SHMVIEW_WEB" not in os.environ, reason="built without libmicrohttpd")
SANITIZED = "SHMVIEW_PRELOAD" in os.environ  # the sanitizer looks for leaks, and keeps freed memory
REQUESTS = int(os.environ.get("SHMVIEW_WEB_REQUESTS", "5000" if SANITIZED else "100000"))
PER_SECOND = 480  # LIMIT_REQUESTS_PER_S is 500
CONNECTIONS = 6   # as many as a browser opens
GROWTH = 4 << 20  # bytes: about 44 for each request, and the allocator's arenas differ by 2 MiB
AT = "segment=seg&layout=l&view="
PATHS = {
    "/": 200, "/app.js": 200, "/none": 404, "/api/none": 404, "/api/daemon": 200,
    "/api/segments": 200, "/api/segments?limit=x": 400, "/api/segment?name=seg": 200,
    "/api/segment?name=none": 404, "/api/stream?name=frames": 200, "/api/stream?name=small": 400,
    f"/api/line?{AT}a": 200, f"/api/line?{AT}m": 400, f"/api/image?{AT}m&rows=20": 200,
    f"/api/image?{AT}m&low=0&high=1&lock=1": 200, f"/api/grid?{AT}a&lock=1": 200,
    f"/api/grid?{AT}none": 404, f"/api/grid?{AT}a&slice=x": 400, f"/api/histogram?{AT}m": 200,
    f"/api/npy?{AT}m": 200, "/api/grid?segment=none": 404,
}


def figures(server):
    """Returns descriptors, threads, and bytes of private memory of the server."""
    pid = server.process.pid
    with open(f"/proc/{pid}/status") as status:
        facts = dict(line.split(":", 1) for line in status)
    return (len(os.listdir(f"/proc/{pid}/fd")), int(facts["Threads"]),
            int(facts["RssAnon"].split()[0]) * 1024)


class Client:
    """Sends requests over connections that stay open, and waits before it exceeds the limit."""

    def __init__(self, server):
        self.server = server
        self.connections = [server.connection() for _ in range(CONNECTIONS)]
        self.body = json.dumps({"segment": "seg", "layout": "l", "view": "a", "index": [3], "value": "2"}).encode()
        self.begun = self.next = time.monotonic()
        self.n = 0

    def ask(self, path, status, **more):
        answer = self.server.ask(path, connection=self.connections[self.n % CONNECTIONS], **more)
        assert answer.status == status, (path, answer.status, answer.text)
        self.count()

    def count(self):
        self.n += 1
        if self.n % 100 == 0:
            time.sleep(max(0, self.next - time.monotonic()))
            self.next = time.monotonic() + 100 / PER_SECOND

    def run(self, n):
        """Sends n requests: of each kind; some change an element, some come over a connection of
        their own, and some follow events for a moment."""
        paths = list(PATHS.items())
        end = self.n + n
        while self.n < end:
            self.ask(*paths[self.n % len(paths)])
            if self.n % 50 == 0:
                self.ask("/api/set", 200, method="POST", body=self.body)
                self.ask("/api/set", 400, method="POST", body=b"{")
            if self.n % 100 == 7:
                with contextlib.closing(self.server.connection()) as other:
                    self.server.ask("/api/daemon", connection=other)
                self.count()
            if self.n % 500 == 11:
                with self.server.events() as following:
                    following()
                self.count()

    def settle(self, ctl, idle):
        """Closes the connections. Returns the figures after everything was given back."""
        for one in self.connections:
            one.close()
        await_(lambda: ctl.segment("seg")["attached"] == 0, what="the end of the attachments")
        await_(lambda: figures(self.server)[0] <= idle, what="the end of the connections")
        return figures(self.server)


def test_nothing_is_lost_over_many_requests(web, ctl):
    ctl("create", "seg", 1 << 20, "--layout", "l: a=f4[1000] m=f8[200,300]")
    ctl("create", "small", 64)
    ctl("stream", "create", "frames", "a=f4[16]", "--slots", "4", "--mode", "latest")
    server = web("--port", "0", "--allow-changes", "--work", "6400").enter()
    idle = figures(server)[0]
    client = Client(server)
    client.run(REQUESTS // 10)
    first = client.settle(ctl, idle)
    client.run(REQUESTS - client.n)
    last = client.settle(ctl, idle)
    print(f"{client.n} requests in {time.monotonic() - client.begun:.0f} s: descriptors {first[0]} -> {last[0]}, "
          f"threads {first[1]} -> {last[1]}, private memory {first[2] >> 10} -> {last[2] >> 10} KiB")
    assert last[0] <= first[0] and last[1] <= first[1]
    assert last[2] - first[2] <= GROWTH or SANITIZED
