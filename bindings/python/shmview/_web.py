# SPDX-License-Identifier: Apache-2.0
"""web(): the live page of shmviewctl in the output of a notebook's cell.

One server runs for each set of options, which all outputs of this interpreter share. It is a child, and ends with the
interpreter: atexit ends it, and so does its own look at its parent, because a kernel may be killed. A thread reads the
links that it prints, one for each browser."""

import atexit
import collections
import ctypes
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from html import escape
from urllib.parse import urlencode, urlsplit

from . import _core
from ._errors import Error, NoLayout, make
from ._open import attach, connect

ORIGIN = "http://localhost:8888"  # of a notebook server as Jupyter starts it
START_SECONDS = 30
END_SECONDS = 5
USE_SECONDS = 2  # in which a browser is expected to use a link that it was given

_servers = {}  # by their options
_mutex = threading.Lock()


def _find_tool():
    """Returns the path of shmviewctl: where the daemon of this library is, or of the same build, or in $PATH."""
    path = ctypes.create_string_buffer(4096)
    if ctypes.CDLL(_core.__file__).shmview_daemon_path(path, ctypes.c_size_t(len(path))) == 0:
        folder = os.path.dirname(os.fsdecode(path.value))
        for place in ("shmviewctl", "../cli/shmviewctl"):
            tool = os.path.join(folder, place)
            if folder and os.access(tool, os.X_OK) and os.stat(tool).st_uid in (0, os.geteuid()):
                return tool
    tool = shutil.which("shmviewctl")
    if not tool:
        raise FileNotFoundError("shmviewctl is not installed, and the wheel does not have it: install the packages "
                                "shmview-tools and shmview-web, or build shmview with libmicrohttpd")
    return tool


class _Server:
    """shmviewctl web as a child of this process."""

    def __init__(self, command):
        self._changed = threading.Condition()
        self._link = None  # of the next browser
        self._is_over = False  # it prints nothing further
        self._given, self._given_at = None, 0
        self._text = collections.deque(maxlen=20)  # lines that are no links
        # In a session of its own, because a notebook interrupts the whole process group of its kernel.
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT, start_new_session=True)
        self._reader = threading.Thread(target=self._read, name="shmview.web", daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            text = line.decode(errors="replace").strip()
            found = re.search(r"http://\S+/\?token=\w+", text)
            with self._changed:
                if found:
                    self._link = found[0]
                else:
                    self._text.append(text)
                self._changed.notify_all()
        with self._changed:
            self._link, self._is_over = None, True
            self._changed.notify_all()

    def lives(self):
        return self._process.poll() is None

    def start(self):
        """Waits for the first link. Raises Error if the program ends instead."""
        with self._changed:
            self._changed.wait_for(lambda: self._link or self._is_over, START_SECONDS)
            if self._link:
                self.port = urlsplit(self._link).port
                return
        self.end()
        text = " ".join(line for line in self._text if line) or "it has printed no link"
        raise Error(f"the page's server did not start: {text}")

    def link(self):
        """Returns a link that no browser has used. If a browser was given the newest one just now, waits for the next:
        two frames that appear at once would use the same one, and the second would be refused."""
        with self._changed:
            left = self._given_at + USE_SECONDS - time.monotonic()
            self._changed.wait_for(lambda: self._link != self._given, max(0, left))
            if not self._link:
                raise Error("the page's server has ended: call shmview.web() again")
            self._given, self._given_at = self._link, time.monotonic()
            return self._link

    def end(self):
        if self.lives():
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(END_SECONDS)
        self._process.stdout.close()


def _end_all():
    with _mutex:
        while _servers:
            _servers.popitem()[1].end()


def _forked_child():
    """The servers are children of the parent, and threads do not survive a fork."""
    global _mutex
    _mutex = threading.Lock()
    _servers.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forked_child)


def _serve(origin, port, allow_changes, connection):
    """Returns the running server with these options, or starts it."""
    key = origin, port, allow_changes, connection.path
    with _mutex:
        server = _servers.get(key)
        if server and server.lives():
            return server
        if server:
            _servers.pop(key).end()
        command = [_find_tool(), "web", "--socket", connection.path, "--port", str(port), "--frame", origin,
                   "--parent", str(os.getpid())] + ["--allow-changes"] * bool(allow_changes)
        server = _Server(command)
        server.start()
        _servers[key] = server
        return server


def _find_layout(segment, view):
    """Returns the layout that has a view: the current one, or else the first."""
    layouts = segment.layouts
    try:
        phase = segment.phase
    except Error:  # a segment without a lock has no phases
        phase = None
    for layout in sorted(layouts, key=lambda layout: layout != phase):
        if view in layouts[layout]:
            return layout
    raise make(NoLayout.code, f"no layout of '{segment.name}' has a view '{view}'", {"view": view})


def _place(segment, view, layout, connection):
    """Returns the part of the page's address after "#"."""
    if segment is None:
        if view is not None or layout is not None:
            raise TypeError("a view or a layout needs a segment")
        return "/"
    name = segment if isinstance(segment, str) else segment.name
    if view is None:
        return "/segment?" + urlencode({"name": name})
    if layout is None and isinstance(segment, str):
        with attach(name, access="read", connection=connection) as found:
            layout = _find_layout(found, view)
    elif layout is None:
        layout = _find_layout(segment, view)
    return "/view?" + urlencode({"segment": name, "layout": layout, "view": view})


class WebPage:
    """A page of shmviewctl web, which web() returns. A notebook shows it in a frame. Attributes: url, port, height."""

    def __init__(self, server, place, height, origin):
        self._server, self._place, self._origin, self.height = server, place, origin, height

    @property
    def port(self):
        """The port of the server, for a tunnel."""
        return self._server.port

    @property
    def url(self):
        """A link that lets one browser in, once. The next look at this attribute gives a new one, if it was used."""
        # The server does not get what is after "#". The page that takes the token needs it as a parameter.
        return f"{self._server.link()}&{urlencode({'at': self._place})}#{self._place}"

    def close(self):
        """Ends the server, which other pages of this process may use too. A closed page shows nothing."""
        with _mutex:
            for key in [key for key, server in _servers.items() if server is self._server]:
                _servers.pop(key).end()

    def __repr__(self):
        return f"<shmview.WebPage {self._place} on port {self.port}>"

    def _repr_html_(self):
        """Returns the page in a frame, and a link to it."""
        url = escape(self.url)
        return (f'<iframe src="{url}" width="100%" height="{self.height}" title="shmview {escape(self._place)}" '
                'style="border:1px solid #9995"></iframe>'
                f'<p><a href="{url}" target="_blank" rel="noreferrer">Open the page in a tab</a>. If the frame is empty, '
                f'this notebook has another address than {escape(self._origin)}: give the right one as origin=. If the '
                "kernel runs on another machine, forward the port from the machine of the browser: "
                f"<code>ssh -L {self.port}:localhost:{self.port} MACHINE</code></p>")


def web(segment=None, *, view=None, layout=None, height=600, origin=ORIGIN, port=0, allow_changes=False, connection=None):
    """Starts the page of `shmviewctl web`, and returns a WebPage, which a notebook shows live in a frame.

        shmview.web()                                   all segments
        shmview.web("camera")                           one segment: its memory, its lock, its processes
        shmview.web("camera", view="image", height=800)     one view, as it changes

    segment: a Segment or a name. view, layout: the names of a view and of its layout. layout None: the current
    layout if it has the view, or else the first one that has it.
    height: of the frame, in pixels.
    origin: the scheme, host and port at which the browser has the notebook. Only its pages can show the frame. The
    kernel cannot know it, so give it if it differs from http://localhost:8888. The host is localhost, 127.0.0.1
    or [::1], and the scheme http, because a browser sends no session from a page of another site.
    port: of localhost; 0: any free one. Give one if the kernel runs on another machine, and forward that port.
    allow_changes: whether the page can set elements.
    connection: a Connection. None: the default connection of the process.

    The server is a child of this process, and shows what this user may see. Calls with the same origin, port,
    allow_changes and connection share it. It ends with this process, or with WebPage.close(). Blocks until it
    listens. Any thread may call; a forked child gets a server of its own.

    Raises FileNotFoundError if shmviewctl is not installed, Error if the server does not start (the text has its reason:
    shmview-web is not installed, a wrong origin, a port that is in use), NotFound, NoLayout if no layout has the view."""
    if not isinstance(height, int) or height < 1:
        raise ValueError(f"height is a number of pixels, not {height!r}")
    if connection is None:
        connection = connect()
    place = _place(segment, view, layout, connection)
    return WebPage(_serve(origin, port, bool(allow_changes), connection), place, height, origin)
