# SPDX-License-Identifier: Apache-2.0
"""top in a terminal that this module emulates: rows, keys, sizes, colours and restarts of the
daemon. Without a terminal it prints pages."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from conftest import CTL, Ctl, Daemon, await_, end_with_parent

pyte = pytest.importorskip("pyte")

PATIENCE_S = 60
ENTER, ESC, UP, DOWN, BACKSPACE = "\r", "\033", "\033OA", "\033OB", "\x7f"


class Terminal:
    """shmviewctl top in a terminal; `lines` has the text on the screen."""

    def __init__(self, ctl, *words, rows=24, columns=100, **env):
        self.master, slave = pty.openpty()
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.resize(rows, columns)

        def in_terminal():
            end_with_parent()
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(
            [CTL, "top", "-d", "100ms", *words], stdin=slave, stdout=slave, stderr=slave,
            env=dict(ctl.environment, **{"TERM": "xterm-256color", **env}), preexec_fn=in_terminal)
        os.close(slave)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    def read(self, seconds):
        """Processes the output that comes within that time. Returns whether any came."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # the program has closed the terminal
            return False
        self.written += data
        self.stream.feed(data)
        return bool(data)

    def await_(self, condition, what="it"):
        end = time.monotonic() + PATIENCE_S
        while not condition(self.lines):
            assert time.monotonic() < end, f"{what} is not shown:\n" + "\n".join(self.lines)
            self.read(1)

    def shows(self, text):
        self.await_(lambda lines: any(text in line for line in lines), repr(text))

    def hides(self, text):
        self.await_(lambda lines: not any(text in line for line in lines), f"end of {text!r}")

    def press(self, keys):
        os.write(self.master, keys.encode())

    def rows(self):
        """Returns the first words below the headings."""
        at = next(i for i, line in enumerate(self.lines) if line.startswith("NAME "))
        return [line.split()[0] for line in self.lines[at + 1:-1] if line]

    def await_rows(self, *names):
        self.await_(lambda lines: any(line.startswith("NAME ") for line in lines)
                    and self.rows() == list(names), f"rows {names}")

    def chosen(self):
        """Returns the row that is shown reversed, except the headings."""
        for y in range(4, self.screen.lines - 1):
            if self.screen.buffer[y][0].reverse:
                return self.lines[y].split()[0]

    def end(self):
        while self.read(PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)

    def quit(self):
        self.press("q")
        assert self.end() == 0
        os.close(self.master)


@pytest.fixture
def three(party):
    """Three segments, of 3000, 1000 and 2000 bytes."""
    one = party()
    for name, size in ("apple", 3000), ("banana", 1000), ("cherry", 2000):
        one.do(f"{name} = shmview.create('{name}', {size})")
    return one


def test_segments_holders_waits_and_deaths(ctl, three, party):
    other = party()
    other.do("apple = shmview.attach('apple')")
    top = Terminal(ctl)
    top.shows("3 of 3 segments")
    top.await_rows("apple", "banana", "cherry")
    three.do("apple.lock()")
    top.shows(f" {three.pid} python3 ")
    waiter = ctl.start("lock", "apple", "true")
    top.await_(lambda lines: any(line.startswith("apple ") and line.split()[7] == "1"
                                 for line in lines), "the one who waits")
    three.do("apple.unlock()")
    waiter.communicate(timeout=60)
    other.do("banana = shmview.attach('banana')")
    other.do("banana.lock()")
    other.kill()
    top.shows("inside a lock 1")
    three.do("cherry.close()")
    top.await_rows("apple", "banana")
    top.quit()


def test_sort(ctl, three):
    top = Terminal(ctl, "--sort", "size")
    top.await_rows("apple", "cherry", "banana")
    top.press("r")
    top.await_rows("banana", "cherry", "apple")
    top.shows("by size, reversed")
    top.press("N")
    top.await_rows("cherry", "banana", "apple")
    top.press("r")
    top.press(">")
    top.await_rows("apple", "cherry", "banana")
    top.press("<")
    top.await_rows("apple", "banana", "cherry")
    top.quit()


def test_filter(ctl, three):
    top = Terminal(ctl, "an")
    top.await_rows("banana")
    top.press("/")
    top.shows("Filter: an")
    top.press(BACKSPACE * 2 + "rr")
    top.await_rows("cherry")
    top.press(ESC)
    top.shows("by waiting |")
    top.await_rows("banana")
    top.press("/" + BACKSPACE * 2 + "?[ph]*" + ENTER)
    top.await_rows("apple", "cherry")
    top.shows("filter ?[ph]*")
    top.press("/x")
    top.shows("No segment fits the filter.")
    top.press(ENTER)
    top.quit()


def test_choose_and_look_into(ctl, three, party):
    other = party()
    other.do("a, b = shmview.attach('apple'), shmview.attach('banana')")
    other.do("b.lock()")
    three.do("apple.lock()")
    three.begin("banana.lock()")
    waiter = ctl.start("lock", "apple", "true")
    top = Terminal(ctl, "-s", "name")
    top.await_rows("apple", "banana", "cherry")
    top.await_(lambda lines: top.chosen() == "apple", "the first")
    top.press(DOWN + "j")
    top.await_(lambda lines: top.chosen() == "cherry", "the last")
    top.press("r")  # the choice stays
    top.await_rows("cherry", "banana", "apple")
    top.await_(lambda lines: top.chosen() == "cherry", "the same one")
    top.press("G")
    top.await_(lambda lines: top.chosen() == "apple", "the end")
    top.press(ENTER)
    top.shows("apple, 2.9K, resident 4K")
    top.shows("WHO WAITS FOR WHOM")
    for line in (f"  {three.pid} python3 holds apple, exclusive",
                 f"    {three.pid} python3 waits for banana, exclusive",
                 f"      {other.pid} python3 holds banana, exclusive",
                 f"  {waiter.pid} shmviewctl waits for apple, exclusive"):
        top.await_(lambda lines: any(shown.startswith(line) for shown in lines), line)
    top.press(ESC)
    top.await_rows("cherry", "banana", "apple")
    other.do("b.unlock()")
    three.end()
    three.do("banana.unlock(), apple.unlock()")
    waiter.communicate(timeout=60)
    top.quit()


def test_a_segment_that_goes_while_it_is_looked_into(ctl, three):
    top = Terminal(ctl, "-s", "name")
    top.await_rows("apple", "banana", "cherry")
    top.press(ENTER)
    top.shows("nobody holds the lock or waits for it")
    three.do("apple.close()")
    top.shows("The segment is gone.")
    top.await_rows("banana", "cherry")
    top.quit()


def test_resize(ctl, party):
    one = party()
    one.do("s = [shmview.create(f's{i:02}', 1) for i in range(30)]")
    top = Terminal(ctl, "-s", "name", rows=24)
    top.await_rows(*(f"s{i:02}" for i in range(19)))
    top.press("G")
    top.await_rows(*(f"s{i:02}" for i in range(11, 30)))
    top.resize(14, 40)
    top.await_rows(*(f"s{i:02}" for i in range(21, 30)))
    assert all(len(line) <= 40 for line in top.lines)
    top.resize(40, 120)
    top.await_rows(*(f"s{i:02}" for i in range(30)))
    top.shows("AGE")
    for rows in 5, 2, 1:
        top.resize(rows, 10)
        top.press(" ")
    top.resize(24, 80)
    top.shows("by name |")
    top.quit()


def test_help(ctl):
    top = Terminal(ctl, columns=80)
    top.shows("No segments.")
    top.press("?")
    top.shows("show the segment")
    top.press(ENTER)
    top.shows("No segments.")
    top.press(ENTER)  # no segment is left to show
    top.quit()


def test_the_daemon_is_away_and_comes_back(tmp_path):
    daemon = Daemon(str(tmp_path))
    daemon.start({"segments": [{"name": "kept", "size": 4096}]})
    top = Terminal(Ctl(str(tmp_path), daemon.socket))
    top.await_rows("kept")
    daemon.process.kill()
    daemon.process.wait()
    top.shows("old figures: ")
    top.await_rows("kept")
    top.press(ENTER)
    top.shows("old figures: ")
    daemon.start()
    top.hides("old figures")
    top.press(ESC)
    top.await_rows("kept")
    top.quit()
    daemon.stop()


def test_nothing_flickers(ctl, three):
    """A new page does not clear the screen first, and contains only what has changed."""
    top = Terminal(ctl)
    top.await_rows("apple", "banana", "cherry")
    top.written = b""
    three.do("apple.notify()")
    before = top.lines
    top.await_(lambda lines: lines != before, "another figure")
    top.await_(lambda lines: len(top.written) > 0, "what was sent")
    assert b"\033[2J" not in top.written and b"\033[H\033[J" not in top.written
    assert b"apple" not in top.written
    top.quit()


@pytest.mark.parametrize("env, colored", [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours(ctl, three, env, colored):
    three.do("apple.lock()")
    waiter = ctl.start("lock", "apple", "true")
    top = Terminal(ctl, **env)
    top.await_(lambda lines: any(line.startswith("apple ") and line.split()[7] == "1"
                                 for line in lines), "the one who waits")
    top.press(DOWN)  # the chosen row looks different
    top.await_(lambda lines: top.chosen() == "banana", "the next one")
    color = top.screen.buffer[4][0].fg
    assert (color == "brown") == colored, color
    three.do("apple.unlock()")
    waiter.communicate(timeout=60)
    top.quit()


def test_the_terminal_is_as_it_was(ctl):
    for end in (lambda top: top.press("q"), lambda top: top.press("\x03"),
                lambda top: top.process.send_signal(signal.SIGTERM)):
        top = Terminal(ctl)
        top.shows("No segments.")
        end(top)
        top.end()
        assert b"\033[?1049l" in top.written  # it has left the other screen
        os.close(top.master)


def test_a_terminal_that_is_gone_ends_it(ctl):
    top = Terminal(ctl)
    top.shows("No segments.")
    os.close(top.master)
    await_(lambda: top.process.poll() is not None, what="its end")


def test_batch(ctl, three):
    lines = ctl("top", "--batch", "-n", "2", "-d", "50ms", "-s", "size", "--bytes").out.split("\n")
    assert len(lines) == 2 * 7 + 1 + 1  # a page, an empty line, a page
    assert lines[7] == "" and lines[0].startswith("shmviewd ")
    assert [line.split()[0] for line in lines[3:7]] == ["NAME", "apple", "cherry", "banana"]
    assert lines[4].split()[1] == "3000"
    out = ctl("top", "-b", "-n1", "-r", "-s", "name", "*a*").out
    assert [line.split()[0] for line in out.splitlines()[4:]] == ["banana", "apple"]


def test_refused(ctl, daemon):
    ctl("top", status=2, err="are not a terminal: use --batch")
    ctl("top", "-n", "3", status=2, err="--count is for --batch")
    ctl("top", "-b", "-d", "1ms", status=2, err="--delay '1ms' is less than 50ms")
    ctl("top", "-s", "weight", status=2, err="none of name, size, resident")
    ctl("top", "-b", "x" * 129, status=2, err="at most 128 characters")
    ctl("top", "-b", "a", "b", status=2, err="one argument too many")
    top = Terminal(ctl, TERM="no-such-terminal")
    assert top.end() == 1
    assert b"terminal type 'no-such-terminal' is unknown" in top.written
    os.close(top.master)
