# SPDX-License-Identifier: Apache-2.0
"""web(): the page's server as a child of the interpreter, its links, and its end. That a browser shows the frame is
tested in tests/web/browser.mjs."""

import http.client
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

import pytest

import shmview
from conftest import await_, has_ended

PROGRAM = os.path.join(os.environ["SHMVIEW_BUILD_DIR"], "web/shmview-web")
pytestmark = [pytest.mark.usefixtures("daemon"),
              pytest.mark.skipif(not os.path.exists(PROGRAM), reason="built without libmicrohttpd")]


@pytest.fixture
def web(daemon, monkeypatch):
    monkeypatch.setattr(shmview._web, "USE_SECONDS", 0.3)
    yield shmview.web
    shmview._web._end_all()


def ask(page, path, cookie=None):
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    connection.request("GET", path, headers={"Host": f"localhost:{page.port}", **({"Cookie": cookie} if cookie else {})})
    answer = connection.getresponse()
    answer.text = answer.read().decode()
    connection.close()
    return answer


def process(page):
    return page._server._process.pid


def test_a_frame_with_a_link_that_works(web, seg):
    page = web("seg", height=321)
    root = xml.fromstring(f"<div>{page._repr_html_()}</div>")
    frame, link = root.find("iframe"), root.find("p/a")
    assert frame.get("height") == "321" and frame.get("title") == "shmview /segment?name=seg"
    url = frame.get("src")
    assert re.fullmatch(rf"http://localhost:{page.port}/\?token=\w+&at=%2Fsegment%3Fname%3Dseg#/segment\?name=seg", url)
    assert link.get("href") == url
    assert f"ssh -L {page.port}:localhost:{page.port}" in root.find("p/code").text
    answer = ask(page, "/" + url.split("/", 3)[3].split("#")[0])
    assert answer.status == 200 and 'url=/#/segment?name=seg"' in answer.text
    assert "frame-ancestors http://localhost:8888;" in answer.headers["Content-Security-Policy"]
    cookie = answer.headers["Set-Cookie"].split(";")[0]
    assert '"name":"seg"' in ask(page, "/api/segment?name=seg", cookie).text
    await_(lambda: page.url != url)  # the token is used, and the server prints another link
    assert "token" not in repr(page)


def test_one_server_for_all_pages(web, seg):
    one, two = web(), web("seg")
    assert process(one) == process(two) and one.port == two.port
    other = web(origin="http://127.0.0.1:8889")
    assert process(other) != process(one)
    assert other.url.startswith("http://127.0.0.1:")
    # a server that has ended is replaced
    os.kill(process(one), signal.SIGKILL)
    await_(lambda: not one._server.lives())
    await_(lambda: one._server._is_over)
    with pytest.raises(shmview.Error, match="has ended"):
        one.url
    assert process(web()) != process(one)
    other.close()
    assert not other._server.lives()
    other.close()


def test_pages_of_views(web):
    seg = shmview.create("views", 4096, a={"x": ("f4", 10)}, b={"x": ("f8", 5), "y.z": ("i4", 2)})
    place = "#/view?segment=views&layout={}&view={}".format
    assert web(seg, view="x").url.endswith(place("a", "x"))
    with seg.locked():
        seg.switch("b")
    assert web("views", view="x").url.endswith(place("b", "x"))
    assert web("views", view="x", layout="a").url.endswith(place("a", "x"))
    page = web(seg, view="y.z")
    assert page.url.endswith(place("b", "y.z"))
    xml.fromstring(f"<div>{page._repr_html_()}</div>")
    with pytest.raises(shmview.NoLayout, match="'views' has a view 'z'") as caught:
        web("views", view="z")
    assert caught.value.view == "z"
    with shmview.create("bytes", 9, lock=False) as plain, pytest.raises(shmview.NoLayout, match="'bytes' has a view 'x'"):
        web(plain, view="x")  # without a lock it has no phase either
    with pytest.raises(shmview.NotFound):
        web("none", view="x")
    with pytest.raises(TypeError):
        web(view="x")
    with pytest.raises(ValueError):
        web(height="100%")
    seg.close()


def test_what_prevents_it(web, monkeypatch):
    with pytest.raises(shmview.Error, match="did not start: .*give its scheme, host and port"):
        web(origin="https://hub.example")
    taken = web()
    with pytest.raises(shmview.Error, match="did not start: .*choose another --port"):
        web(origin="http://localhost:1", port=taken.port)
    monkeypatch.setenv("SHMVIEW_WEB", "/no/such/program")
    with pytest.raises(shmview.Error, match="install the package shmview-web"):
        web(origin="http://localhost:2")
    monkeypatch.setenv("SHMVIEW_DAEMON", "/no/such/folder/shmviewd")
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(FileNotFoundError, match="shmview-tools"):
        web(origin="http://localhost:3")


def test_a_server_that_does_not_end_is_killed(web, monkeypatch):
    monkeypatch.setattr(shmview._web, "END_SECONDS", 0.1)
    page = web()
    os.kill(process(page), signal.SIGSTOP)
    page.close()
    assert page._server._process.returncode == -signal.SIGKILL


PROGRAM_OF_A_KERNEL = """
import os, shmview, sys, time
page = shmview.web()
print(page._server._process.pid, flush=True)
if os.fork() == 0:
    assert not shmview._web._servers
    page.close()  # it is the parent's
    os._exit(0)
os.wait()
print(page.url, flush=True)
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_it_ends_with_the_interpreter(daemon, is_killed):
    kernel = subprocess.Popen([sys.executable, "-c", PROGRAM_OF_A_KERNEL, "600" if is_killed else "0"],
                              stdout=subprocess.PIPE, text=True)
    pid = int(kernel.stdout.readline())
    assert "/?token=" in kernel.stdout.readline()
    if is_killed:
        os.kill(kernel.pid, signal.SIGKILL)
    kernel.communicate(timeout=60)
    await_(lambda: has_ended(pid), what="the end of the server")


def test_two_frames_at_once_get_links_of_their_own(web):
    page = web()
    first = page.url
    begun = time.monotonic()
    assert page.url == first  # nobody has used it
    assert time.monotonic() - begun >= 0.2
    ask(page, "/" + first.split("/", 3)[3].split("#")[0])
    await_(lambda: page.url != first)
