# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/tour.md print what the page shows. This script types them into two shells,
each in a terminal of its own, and compares the output.

A block of ```console belongs to the terminal that the text above it names last. In such a block,
a line that begins with a prompt ($, >>> or ...) is typed, ^C, ^D and "(q)" are keys, and the
other lines are the expected output. If the terminal's next block does not begin with a prompt,
the command continues there. A ```c or ```python block whose text above has "as `NAME`" becomes
that file.

In the expected output, ‹this› matches any text in its place. A … matches the rest of a line or,
alone on a line, any number of lines. The amount of space between words does not matter."""

import ctypes
import difflib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

BUILD = os.environ.get("SHMVIEW_BUILD_DIR")  # without it, the tour uses what is installed
SYSTEM_SOCKET = "/run/shmviewd/io.shmview"
PROMPT = "@tour@$ "
PROMPTS = {"$": PROMPT, ">>>": ">>> ", "...": "... "}
KEYS = {"^C": "\x03", "^D": "\x04", "(q)": "q"}
SECONDS = 30  # the longest time for any step
ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[()][A-Z0-9]|[=>78])|[\x0e\x0f]")
FULL_SCREEN, NO_FULL_SCREEN = "\x1b[?1049h", "\x1b[?1049l"


class Action:
    """A line that is typed into a terminal, if any, and the output expected after it."""

    def __init__(self, line, terminal, prompt=None, typed=None):
        self.line, self.terminal, self.prompt, self.typed = line, terminal, prompt, typed
        self.expected = []
        self.next_prompt = "$"  # None: the command goes on


class File:
    def __init__(self, name, lines):
        self.name, self.lines = name, lines


class Block:
    """A fenced block: where it begins, its language, and the text since the last block or
    heading."""

    def __init__(self, line, language, above):
        self.line, self.language, self.above, self.lines = line, language, above, []

    def named(self, pattern, what):
        """Returns the last match in the text above."""
        found = re.findall(pattern, self.above)
        assert found, f"line {self.line}: the text above names no {what}"
        return found[-1]


def read_blocks(path):
    blocks, above, is_inside = [], "", False
    with open(path) as file:
        for number, text in enumerate(file.read().split("\n"), 1):
            if text.startswith("```"):
                is_inside = not is_inside
                if is_inside:
                    blocks.append(Block(number, text[3:], above))
                above = ""
            elif is_inside:
                blocks[-1].lines.append(text)
            else:
                above = "" if text.startswith("#") else f"{above}{text}\n"
    return blocks


def read_action(number, text, terminal):
    """Returns the action that a line of a console block begins, or None."""
    prompt = re.match(r"(\$|>>>|\.\.\.)( |$)", text)
    if prompt:
        return Action(number, terminal, prompt[1], text[prompt.end():] + "\n")
    if text in KEYS:
        return Action(number, terminal, None, KEYS[text])
    return None


def read_console(block):
    """Returns the actions of a console block. If the block continues a command, the first one
    types nothing."""
    terminal = int(block.named(r"[Tt]erminal (\d)", "terminal"))
    actions = []
    for number, text in enumerate(block.lines, block.line + 1):
        action = read_action(number, text, terminal)
        if action or not actions:
            actions.append(action or Action(number, terminal))
        if not action:
            actions[-1].expected.append(text)
    return actions


def read_tour(path):
    """Returns the actions and files of a tour in order."""
    steps, following = [], {}
    for block in read_blocks(path):
        if block.language == "console":
            steps += read_console(block)
        elif block.language in ("c", "python"):
            steps.append(File(block.named(r"as `([\w.]+)`", "file"), block.lines))
    for action in reversed([step for step in steps if isinstance(step, Action)]):
        after = following.get(action.terminal)
        action.next_prompt = after.prompt if after else "$"
        following[action.terminal] = action
    return steps


def pattern_of(line):
    parts = re.split(r"(‹[^›]*›|…)", " ".join(line.split()))
    return "".join(r".*" if part == "…" else r"\S.*?" if part.startswith("‹") else re.escape(part)
                   for part in parts)


def fits(expected, printed):
    """Returns whether all printed lines match."""
    pattern = "".join("(?:.*\n)*?" if line.strip() == "…" else pattern_of(line) + "\n"
                      for line in expected)
    text = "".join(" ".join(line.split()) + "\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


def shows(expected, text):
    """Returns whether a full screen shows these words in this order, anywhere."""
    words = [word for line in expected for part in re.split(r"‹[^›]*›|…", line)
             for word in part.split()]
    return re.search(".*?".join(map(re.escape, words)), text, re.DOTALL) is not None


class Terminal:
    """A shell in a terminal of 80 columns that echoes nothing."""

    def __init__(self, folder, environment):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        mode = termios.tcgetattr(slave)
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        libc = ctypes.CDLL(None)

        def begin():
            libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.shell = subprocess.Popen(["bash", "--norc", "--noprofile", "--noediting", "-i"],
                                      stdin=slave, stdout=slave, stderr=slave, cwd=folder,
                                      env=environment, preexec_fn=begin)
        os.close(slave)
        self.unread = ""
        self.full_screen = False
        self.until(lambda: self.unread.endswith(PROMPT), "its first prompt")
        self.unread = ""

    def until(self, condition, what):
        """Reads until the condition is true. Raises TimeoutError."""
        end = time.monotonic() + SECONDS
        pending = b""
        while not condition():
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError(what)
            pending += os.read(self.master, 65536)
            try:
                self.unread, pending = self.unread + pending.decode(), b""
            except UnicodeDecodeError:  # the rest of a character has not come yet
                pass

    def printed(self):
        """Returns the printed lines, without the prompts before and after."""
        text = ESCAPES.sub("", self.unread).replace("\r\n", "\n").replace("\r", "\n")
        for prompt in PROMPTS.values():
            text = text.removeprefix(prompt).removesuffix(prompt)
        lines = [line.rstrip() for line in text.split("\n")]
        if lines[-1] == "":
            lines.pop()
        return lines

    def do(self, action):
        """Types the line and waits. Returns the output if it differs from the expected one,
        otherwise None."""
        if action.typed:
            os.write(self.master, action.typed.encode())

        def is_all():
            if action.next_prompt:
                return self.unread.endswith(PROMPTS[action.next_prompt])
            if self.full_screen or FULL_SCREEN in self.unread:
                return shows(action.expected, ESCAPES.sub("", self.unread))
            return fits(action.expected, self.printed())
        try:
            self.until(is_all, "output")
        except TimeoutError:
            return [*self.printed(), f"(and no more in {SECONDS} s)"]
        printed = self.printed()
        if action.typed in KEYS.values() and printed[:1] == [""]:
            printed.pop(0)  # the line with the key, which is not echoed
        full_screen = self.full_screen or FULL_SCREEN in self.unread
        self.full_screen = full_screen and NO_FULL_SCREEN not in self.unread
        self.unread = ""
        return None if full_screen or fits(action.expected, printed) else printed

    def close(self):
        self.shell.kill()
        self.shell.wait()
        os.close(self.master)


def environment_of(folder):
    """Returns the environment of a new user of this machine, with an own home."""
    home = os.path.join(folder, "home")
    os.mkdir(home)
    # The interpreter of the tour must not edit lines, because it would echo the input: Python
    # before 3.13 imports readline for that, later ones have an editor of their own.
    with open(os.path.join(folder, "readline.py"), "w") as file:
        file.write("raise ImportError\n")
    return {"PATH": "/usr/bin:/bin", "HOME": home, "PYTHONPATH": folder,
            "PYTHON_BASIC_REPL": "1", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8",
            "TERM": "xterm", "PS1": PROMPT, "PS2": ""}


def install_build(folder, environment):
    """Installs the build below the folder, and sets the environment so that programs find it.
    Daemons that it starts use no other instance."""
    run, prefix = os.path.join(folder, "run"), os.path.join(folder, "usr")
    os.mkdir(run, 0o700)
    subprocess.run([os.environ["CMAKE"], "--install", BUILD, "--prefix", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    place = {found: parent for parent, folders, files in os.walk(prefix) for found in files}
    package = os.path.dirname(place["_open.py"])
    environment.update(
        PATH=f"{prefix}/bin:{environment['PATH']}", PYTHONPATH=f"{package}:{folder}",
        LD_LIBRARY_PATH=place["libshmview.so"], PKG_CONFIG_PATH=place["shmview.pc"],
        XDG_RUNTIME_DIR=run, SHMVIEW_DAEMON=f"{prefix}/bin/shmviewd", SHMVIEW_IDLE_EXIT=str(10 * SECONDS),
        SHMVIEW_CONFIG="/dev/null")


def keep_off(environment):
    """If the machine has a system daemon, starts one for the tour, so that the tour does not use
    it."""
    if os.path.exists(SYSTEM_SOCKET):
        environment["SHMVIEW_SOCKET"] = f"{environment['XDG_RUNTIME_DIR']}/io.shmview"
        subprocess.run([environment["SHMVIEW_DAEMON"], "--session", "--socket",
                        environment["SHMVIEW_SOCKET"]], env=environment, check=True)


def processes_of(folder):
    """Returns {pid: name} of the processes whose environment has a home in the folder."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if f"HOME={folder}/".encode() in file.read():
                    with open(f"/proc/{pid}/comm") as name:
                        found[int(pid)] = name.read().strip()
        except OSError:
            pass
    return found


def end_daemon(folder):
    """Ends the daemon, and with it its segments. Returns the names of other processes that were
    left."""
    left = processes_of(folder)
    for pid, name in left.items():
        os.kill(pid, signal.SIGINT if name == "shmviewd" else signal.SIGKILL)
    end = time.monotonic() + SECONDS
    while processes_of(folder):
        assert time.monotonic() < end, f"{processes_of(folder)} do not end"
        time.sleep(0.05)
    return [name for name in left.values() if name != "shmviewd"]


def follow(path, terminals, home):
    """Carries out all steps. Returns whether each printed what the page shows."""
    for step in read_tour(path):
        if isinstance(step, File):
            with open(os.path.join(home, step.name), "w") as file:
                file.write("\n".join(step.lines) + "\n")
            continue
        printed = terminals[step.terminal].do(step)
        if printed is not None:
            print(f"{path}:{step.line}: terminal {step.terminal}, {step.typed!r}:")
            print("\n".join(difflib.ndiff(step.expected, printed)))
            return False
    return True


def tour(path):
    folder = tempfile.mkdtemp(prefix="shmview-tour-")
    terminals = {}
    try:
        environment = environment_of(folder)
        if BUILD:
            install_build(folder, environment)
            keep_off(environment)
        for number in (1, 2):
            terminals[number] = Terminal(environment["HOME"], environment)
        went_well = follow(path, terminals, environment["HOME"])
    finally:
        for terminal in terminals.values():
            terminal.close()
        left = end_daemon(folder)
        shutil.rmtree(folder)
    if went_well and left:
        print(f"left running: {', '.join(left)}")
    return went_well and not left


if __name__ == "__main__":
    if os.environ.get("SHMVIEW_SANITIZE_FLAGS"):
        print("skipped: the tour's own programs have no sanitizers in them")
        sys.exit(77)
    # A shell that runs this script in the background ignores Ctrl-C, and so would the terminals.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    where = sys.argv[1] if len(sys.argv) > 1 else f"{os.environ['SHMVIEW_SOURCE_DIR']}/docs/tour.md"
    sys.exit(not tour(where))
