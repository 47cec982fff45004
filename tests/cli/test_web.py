# SPDX-License-Identifier: Apache-2.0
"""web: the server of the page, by requests that a browser would make, and by those that it must
refuse."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time

import pytest

from conftest import CTL, await_, end_with_parent, has_ended
from webclient import UnixConnection, Web, web  # noqa: F401

pytestmark = pytest.mark.skipif("SHMVIEW_WEB" not in os.environ, reason="built without libmicrohttpd")
MARKUP = "<img src=x onerror=alert(1)>"


# --- Who is let in -----------------------------------------------------------

def test_nothing_is_shown_without_a_session(web):
    server = web()
    for path in "/", "/app.js", "/api/daemon", "/api/events", "/no/such/path":
        answer = server.ask(path)
        assert answer.status == 401
        assert "Set-Cookie" not in answer.headers
    assert "Open the link" in server.ask("/").text
    assert server.status("/", Cookie=f"shmview-{server.port}=" + "0" * 32) == 401
    assert server.status("/?token=" + "0" * 32) == 401
    assert server.status("/?token=") == 401


def test_a_link_lets_one_browser_in_once(web):
    server = web().enter()
    first, link = server.cookie, server.link
    server.cookie = None
    assert "has been used" in server.ask("/" + link.split("/", 3)[3]).text
    server.link = server.read_link()
    assert server.link != link
    second = server.enter().cookie
    assert second != first
    for cookie in first, second:
        assert server.status("/api/daemon", Cookie=cookie) == 200
    # a bookmark of the used link still leads its own browser to the page
    assert '<main id="main"' in server.ask("/" + link.split("/", 3)[3]).text


def test_servers_do_not_share_a_cookie(web):
    """A browser has one set of cookies for all ports."""
    one, other = web().enter(), web().enter()
    jar = f"{one.cookie}; {other.cookie}"
    for server in one, other:
        assert server.cookie.startswith(f"shmview-{server.port}=")
        assert server.status("/api/daemon", Cookie=jar) == 200


def test_other_sites_are_refused(web):
    server = web().enter()
    for host in "evil.example", f"localhost.evil.example:{server.port}", "127.0.0.1.evil.example", \
            "localhost:", "localhost:8x", "localhost@evil.example", "":
        assert server.status("/api/daemon", Host=host) == 403, host
    secret = server.cookie.split("=")[1]
    for host, name in ("localhost", "shmview"), ("127.0.0.1:1", "shmview-1"), ("[::1]", "shmview"), \
            ("[::1]:8760", "shmview-8760"), ("LOCALHOST:80", "shmview-80"):
        assert server.status("/api/daemon", Host=host, Cookie=f"{name}={secret}") == 200, host
    for origin in "http://evil.example", "null", "http://localhost:1", "https://localhost.evil.example":
        assert server.status("/api/daemon", Origin=origin) == 403, origin
    assert server.status("/api/daemon", Origin=f"http://localhost:{server.port}") == 200
    for site in "cross-site", "same-site":
        assert server.status("/api/daemon", Sec_Fetch_Site=site) == 403
    assert server.status("/api/daemon", Sec_Fetch_Site="same-origin") == 200
    # a link in another page may lead here: it only shows the page
    assert server.status("/", Sec_Fetch_Site="cross-site") == 200
    # each browser names the origin of a POST
    assert server.status("/api/daemon", "POST", b"", Origin=None) == 403


def test_another_host_can_be_permitted(web):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = web("--port", port, "--host", "memory.example")
    assert server.link.startswith("http://memory.example/")
    server.port = port
    secret = server.enter().cookie.split("=")[1]
    server.cookie = f"shmview={secret}"
    assert server.status("/api/daemon", Host="memory.example") == 200
    assert server.status("/api/daemon", Host="memory.example", Origin="https://memory.example") == 200
    assert server.status("/api/daemon", Host="other.example") == 403


def test_methods_and_sizes(web):
    server = web().enter()
    for method in "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW":
        answer = server.ask("/api/daemon", method)
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET, HEAD, POST"
    answer = server.ask("/api/daemon", "POST", b"{}")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    answer = server.ask("/app.js", "POST", b"")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    assert server.ask("/api/daemon", "HEAD").text == ""
    assert server.status("/api/daemon", "POST", b"x" * 65537) == 413
    assert server.status("/api/daemon?" + "x" * 100000) in (414, 431)
    assert server.status("/api/daemon", X="x" * 100000) == 431
    assert server.status("/api/none") == 404
    assert server.status("/../app.js") == 404
    assert server.status("/%2e%2e/app.js") == 404
    for query in "limit=0", "limit=x", "limit=", "limit=1e3", "after=-1", "limit=99999999999999999999":
        answer = server.ask("/api/segments?" + query)
        assert answer.status == 400
        assert "give a number from" in json.loads(answer.text)["error"]


def test_every_answer_has_the_headers_that_protect(web):
    server = web().enter()
    for path in "/", "/app.js", "/api/daemon", "/api/none":
        headers = server.ask(path).headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"


def test_one_origin_may_show_it_in_a_frame(web, ctl):
    server = web("--port", 0, "--frame", "http://localhost:8888")
    assert server.link.startswith(f"http://localhost:{server.port}/?token=")
    server.enter()
    for path in "/", "/app.js", "/api/daemon", "/api/none":
        headers = server.ask(path).headers
        assert "; frame-ancestors http://localhost:8888; " in headers["Content-Security-Policy"]
        assert "X-Frame-Options" not in headers
    # the frame itself is what another port's page asks for, and nothing else is
    assert server.status("/", Sec_Fetch_Site="same-site", Sec_Fetch_Dest="iframe") == 200
    for path in "/app.js", "/api/daemon":
        assert server.status(path, Sec_Fetch_Site="same-site") == 403
        assert server.status(path, Origin="http://localhost:8888") == 403
    for origin in "http://evil.example", "https://localhost:8888", "*", "http://localhost:8888;script-src *":
        ctl("web", "--frame", origin, status=2, err="give its scheme, host and port")
    assert web("--port", 0, "--frame", "http://[::1]:8888").link.startswith("http://[::1]:")


def test_a_link_can_lead_to_one_page(web):
    server = web()
    page = server.ask("/" + server.link.split("/", 3)[3] + "&at=/segment%3Fname%3Da%26b%22%3E%3Cb").text
    assert 'content="0;url=/#/segment?name=a&amp;b&quot;&gt;&lt;b">' in page
    assert 'href="/#/segment?name=a&amp;b&quot;&gt;&lt;b">' in page


def test_it_ends_with_its_parent(ctl):
    """The parent is a shell, which ends when the server has printed its link."""
    program = 'coproc "$0" web --port 0 --parent $$; read -r line <&"${COPROC[0]}"; echo "$COPROC_PID $line"'
    done = subprocess.run(["bash", "-c", program, CTL], env=ctl.environment, capture_output=True, text=True, timeout=60)
    pid, link = done.stdout.split()
    assert "/?token=" in link, done
    await_(lambda: has_ended(pid), what="the end of the server")


def test_a_socket_of_its_own(web, ctl, tmp_path):
    path = str(tmp_path / "web.sock")
    server = web("--listen", path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert server.ask("/api/daemon", connection=UnixConnection(path)).status == 401
    ctl("web", "--listen", path, status=1, err="Address already in use")
    server.process.kill()
    server.process.communicate()
    os.stat(path)  # a killed server leaves it, and the next one replaces it
    again = Web(ctl, "--listen", path)
    again.stop()
    assert not os.path.exists(path)
    server.stop = lambda: None


ACTIVATED = """
import os, sys
for i, fd in enumerate(sys.argv[2].split(",")):
    os.dup2(int(fd), 3 + i)
os.environ.update(LISTEN_PID=sys.argv[1] if sys.argv[1] != "own" else str(os.getpid()), LISTEN_FDS=str(1 + i))
os.execv(sys.argv[3], sys.argv[3:])
"""


def activate(ctl, *sockets, pid="own"):
    """Starts the server as systemd does, with sockets from descriptor 3 on."""
    held = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 20) for one in sockets]  # not one of those that they become
    words = [sys.executable, "-c", ACTIVATED, pid, ",".join(map(str, held)), os.environ["SHMVIEW_WEB"], "--port", "0"]
    server = object.__new__(Web)
    server.process = subprocess.Popen(words, env=ctl.environment, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, pass_fds=held, preexec_fn=end_with_parent)
    for fd in held:
        os.close(fd)
    server.cookie = None
    return server


def bound(*address, family=socket.AF_INET, backlog=5):
    one = socket.socket(family)
    one.bind(address if family != socket.AF_UNIX else address[0])
    if backlog:
        one.listen(backlog)
    return one


def test_sockets_of_systemd(ctl, tmp_path):
    """It serves those that it gets, and no others."""
    path = str(tmp_path / "page")
    with bound(path, family=socket.AF_UNIX) as unix, bound("127.0.0.1", 0) as inet:
        server = activate(ctl, unix, inet)
        server.link = server.read_link()
        server.port = None
        assert server.ask("/api/daemon", connection=UnixConnection(path)).status == 401
        server.port = inet.getsockname()[1]
        assert server.status("/api/daemon") == 401
        server.stop()
        assert os.path.exists(path)  # it is systemd's
    with bound("127.0.0.1", 0) as inet:  # those of another process are not used
        server = activate(ctl, inet, pid="1")
        assert f":{inet.getsockname()[1]}/" not in server.read_link()
        server.stop()


def test_a_socket_of_systemd_is_served_without_a_daemon(alone):
    """Otherwise systemd would start the server again and again, and then close the socket."""
    with bound("127.0.0.1", 0) as inet:
        server = activate(alone, inet)
        server.link = server.read_link()
        server.port = inet.getsockname()[1]
        server.enter()
        assert server.status("/api/daemon") == 503
        server.stop()


def test_sockets_that_other_machines_reach_are_refused(ctl):
    for address, family, backlog in ((("0.0.0.0", 0), socket.AF_INET, 5), (("::", 0), socket.AF_INET6, 5),
                                     (("127.0.0.1", 0), socket.AF_INET, 0)):
        if family == socket.AF_INET6 and not socket.has_dualstack_ipv6():
            continue
        with bound("127.0.0.1", 0) as good, bound(*address, family=family, backlog=backlog) as wrong:
            out, err = activate(ctl, good, wrong).process.communicate(timeout=60)
        assert out == "" and err.startswith("shmviewctl: web: systemd has passed a socket that does not listen, or that other"), err


def test_options(ctl):
    ctl("web", "--port", "65536", status=2)
    ctl("web", "--port", "1", "--listen", "x", status=2, err="exclude each other")
    ctl("web", "extra", status=2)
    ctl("web", "--listen", "/no/such/folder/socket", status=1, err="No such file or directory")
    ctl("web", "--listen", "x" * 108, status=1, err="File name too long")
    ctl("web", env={"SHMVIEW_WEB": "/no/such/program"}, status=1, err="install the package shmview-web")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ctl("web", "--port", taken.getsockname()[1], status=1, err="choose another --port")


def test_each_file_of_the_page_has_its_type(web):
    server = web().enter()
    types = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
             ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
    folder = os.path.join(os.environ["SHMVIEW_SOURCE_DIR"], "web/page")
    for name in os.listdir(folder):
        answer = server.ask("/" + name)
        assert (answer.status, answer.headers["Content-Type"]) == (200, types[os.path.splitext(name)[1]]), name
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            assert answer.text == file.read(), name


def test_uplot_is_served_if_the_build_has_it(web):
    server = web().enter()
    script, style = server.ask("/uplot.js"), server.ask("/uplot.css")
    if "SHMVIEW_UPLOT" not in os.environ:
        assert (script.status, style.status) == (404, 404)
        return
    assert (script.status, script.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert (style.status, style.headers["Content-Type"]) == (200, "text/css; charset=utf-8")
    assert "var uPlot=" in script.text and ".u-wrap" in style.text
    server.cookie = None
    assert server.status("/uplot.js") == 401


# --- The overview ------------------------------------------------------------

def rows(answer):
    """The rows of an answer, whose columns are lists, or the value that all rows have."""
    lists = [values if isinstance(values, list) else [values] * answer["n"] for values in answer["columns"].values()]
    assert all(len(values) == answer["n"] for values in lists)
    return [dict(zip(answer["columns"], row)) for row in zip(*lists)]


def test_figures_of_the_daemon(web, ctl):
    ctl("create", "a", "8K")
    daemon = web().enter().json("/api/daemon")
    assert daemon["segments"] == 1
    assert daemon["allocated_bytes"] == 8192
    assert daemon["allow_changes"] is False
    assert {quota["what"] for quota in daemon["quotas"]} >= {"bytes", "segments"}


def test_segments_come_in_parts(web, ctl):
    for i in range(5):
        ctl("create", f"s{i}", 4096, "--label", MARKUP if i == 3 else "text")
    server = web().enter()
    got, after = [], 0
    while True:
        answer = server.json(f"/api/segments?limit=2&after={after}")
        assert answer["n"] <= 2
        got += rows(answer)
        if not (after := answer["next"]):
            break
    assert [row["name"] for row in got] == [f"s{i}" for i in range(5)]
    assert got[3]["label"] == MARKUP
    assert got[0]["size"] == 4096
    # a column of which all rows have the same value is that value
    columns = server.json("/api/segments")["columns"]
    assert (columns["size"], columns["label"]) == (4096, ["text"] * 3 + [MARKUP, "text"])
    assert server.json("/api/segments?name=none")["columns"]["size"] == []
    assert answer["users"][str(os.geteuid())]
    # no markup crosses the wire as such
    assert "<" not in server.ask("/api/segments").text
    named = rows(server.json("/api/segments?name=s1&name=none&name=s4"))
    assert [row["name"] for row in named] == ["s1", "s4"]


def test_a_brief_list_has_what_the_daemon_need_not_look_for(web, ctl):
    ctl("create", "plain", 4096)
    for name in "idle", "held":
        ctl("create", name, 4096, "--layout", "l: A=f4")
        ctl("switch", name, "l")
    holder = ctl.start("lock", "held", "sleep", "60")
    server = web().enter()
    await_(lambda: rows(server.json("/api/segments?name=held"))[0]["holder"])
    full, brief = (rows(server.json(f"/api/segments?brief={n}")) for n in (0, 1))
    # the phase is left out where the daemon would have to look for it, and is not there without layouts
    assert [row["layout"] for row in full] == ["", "l", "l"]
    assert [row["layout"] for row in brief] == ["", None, "l"]
    assert brief[2]["holder"] == f"shmviewctl ({holder.pid})"
    for one, other in zip(full, brief):
        assert set(one) - set(other) == {"generation", "changes", "resident", "created_us"}
        assert {**one, "layout": other["layout"]}.items() >= other.items()
    assert "brief" in server.error("/api/segments?brief=2")
    holder.send_signal(signal.SIGTERM)
    holder.communicate()


def test_the_holder_of_a_lock_is_named(web, ctl):
    ctl("create", "held", 4096)
    server = web().enter()
    holder = ctl.start("lock", "held", "sleep", "60")

    def who():
        return rows(server.json("/api/segments?name=held"))[0]["holder"]
    assert await_(who) == f"shmviewctl ({holder.pid})"
    holder.send_signal(signal.SIGTERM)
    holder.communicate()
    await_(lambda: who() is None)


def test_events_arrive_and_continue(web, ctl):
    server = web().enter()
    with server.events() as following:
        assert following()["kind"] == "subscribed"
        ctl("create", "seen", 4096, "--label", MARKUP)
        event = following()
        assert (event["kind"], event["segment"], event["size"]) == ("created", "seen", 4096)
    ctl("remove", "seen")
    with server.events(f"/api/events?after={event['serial']}&name=seen") as following:
        kinds = []
        while "removed" not in kinds:
            kinds.append(following()["kind"])
    assert "created" not in kinds and "detached" in kinds


def test_too_many_streams_of_events(web):
    server = web().enter()
    with contextlib.ExitStack() as stack:
        for _ in range(16):
            stack.enter_context(server.events())
        answer = server.ask("/api/events")
        assert answer.status == 429
        assert "Retry-After" in answer.headers
    with contextlib.closing(server.connection()) as other:
        await_(lambda: server.status("/api/events", "HEAD", connection=other) == 200,
               what="the end of a stream that was left")


def test_the_server_survives_the_daemon(web, daemon, ctl):
    server = web().enter()
    with server.events() as following:
        following()
        daemon.process.kill()
        daemon.process.wait()
        assert following()["kind"] == "away"
        answer = server.ask("/api/daemon")
        assert answer.status == 503 and json.loads(answer.text)["error"]
        daemon.start()
        assert following()["kind"] in ("subscribed", "recovered")
        assert server.json("/api/daemon")["starts"] >= 2


# --- Limits ------------------------------------------------------------------

def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def test_no_descriptor_is_lost(web, ctl):
    ctl("create", "a", 4096)
    server = web().enter()
    connection = server.connection()
    paths = ["/", "/api/daemon", "/api/segments", "/api/none", "/api/segments?limit=x"]
    for path in paths:
        server.ask(path, connection=connection)
    before = descriptors(server.process.pid)
    for i in range(400):
        server.ask(paths[i % len(paths)], connection=connection)
    for i in range(10):
        with contextlib.closing(server.connection()) as other:
            server.ask("/", connection=other)
        with server.events() as following:
            following()
    await_(lambda: descriptors(server.process.pid) <= before + 2, what="the end of the streams")


def use_up(server, connection, **headers):
    """Sends requests until there are too many. Returns the answer."""
    end = time.monotonic() + 10
    while (answer := server.ask("/", connection=connection, **headers)).status != 429:
        if time.monotonic() > end:
            pytest.skip("this machine is too slow for too many requests")
    return answer


def test_too_many_requests_are_refused(web):
    server = web().enter()
    connection = server.connection()
    assert use_up(server, connection).headers["Retry-After"] == "1"
    await_(lambda: server.status("/app.js", connection=connection) == 200)


def test_strangers_do_not_use_up_the_requests_of_the_page(web):
    server = web().enter()
    for headers in {"Cookie": None}, {"Cookie": "shmview=0"}, {"Sec_Fetch_Site": "same-site"}:
        use_up(server, server.connection(), **headers)
        assert server.status("/app.js") == 200
