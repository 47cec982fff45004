# SPDX-License-Identifier: Apache-2.0
"""What all verbs have in common: help, options, refused input, errors without a daemon, and
output that cannot be written."""

import os
import subprocess

import pytest

from conftest import CTL, Ctl, await_

VERBS = subprocess.run([CTL, "--list-verbs"], capture_output=True, text=True,
                       check=True).stdout.split()
SCREEN = 80, 24

# Arguments with which each verb gets as far as connecting to a daemon.
ENOUGH = {
    "list": [],
    "show": ["seg"],
    "define": ["seg", "l: A=f4"],
    "remove": ["seg"],
    "freeze": ["seg"],
    "chmod": ["0600", "seg"],
    "chown": ["0", "seg"],
    "switch": ["seg", "l"],
    "wait": ["seg"],
    "get": ["seg"],
    "set": ["seg/A", "1"],
    "fill": ["seg/A", "1"],
    "save": ["seg/A", "/dev/null"],
    "load": ["/dev/null", "seg"],
    "stats": ["seg"],
    "plot": ["seg"],
    "lock": ["name", "true"],
    "metrics": [],
    "monitor": [],
    "top": ["--batch"],
    "who": [],
    "record": ["seg", "/dev/null"],
    "web": [],
}


def test_overview_names_each_verb(ctl):
    out = ctl("--help").out
    for verb in VERBS:
        assert f"\n  {verb} " in out
    assert all(len(line) <= SCREEN[0] for line in out.splitlines())


def test_version(ctl):
    header = open(os.path.join(os.environ["SHMVIEW_SOURCE_DIR"], "include/shmview/shmview.h")).read()
    numbers = [header.split(f"SHMVIEW_VERSION_{part} ")[1].split()[0]
               for part in ("MAJOR", "MINOR", "PATCH")]
    assert ctl("--version").out == f"shmviewctl {'.'.join(numbers)}\n"


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_screen(ctl, verb):
    out = ctl(verb, "--help").out
    assert out.startswith(f"Usage: shmviewctl {verb} ")
    assert out == ctl(verb, "-h").out
    lines = out.splitlines()
    assert len(lines) <= SCREEN[1], "a screen has 24 lines"
    assert all(len(line) <= SCREEN[0] for line in lines)
    assert "--help" in out and "--socket" in out


@pytest.mark.parametrize("verb", VERBS)
def test_the_man_page_has_an_example(verb):
    with open(os.path.join(os.environ["SHMVIEW_SOURCE_DIR"], "man/shmviewctl.1")) as file:
        sections = [part for part in file.read().split("\n.SS ") if part.split()[0] == verb]
    assert sections, "a section of its own"
    assert any(f"shmviewctl {verb}" in section.partition(".EX")[2] for section in sections)


@pytest.mark.parametrize("verb", VERBS)
def test_unknown_options_are_named(ctl, verb):
    ctl(verb, "--no-such-option", status=2, err=f"shmviewctl: {verb}: there is no option "
        f"--no-such-option\nTry 'shmviewctl {verb} --help'.\n")
    ctl(verb, "--socket", status=2, err="option --socket needs a value")
    ctl(verb, "--help=me", status=2, err="option --help=me takes no value")
    ctl(verb, "--socket=x", "-QA", status=2, err="there is no option -Q")


def test_what_is_no_verb(ctl):
    ctl(status=2, err="the verb is missing")
    ctl("frobnicate", status=2, err="there is no verb 'frobnicate'")
    ctl("--frobnicate", status=2, err="there is no option --frobnicate\nTry 'shmviewctl --help'.")
    ctl("-x", status=2, err="there is no option -x")
    ctl("list", "-Jz=3", status=2, err="there is no option -z")


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_daemon_it_says_how_to_start_one(alone, verb):
    if verb not in ENOUGH:
        pytest.skip("needs none, or has a test of its own")
    socket = alone.environment["SHMVIEW_SOCKET"]
    result = alone(verb, *ENOUGH[verb], status=3, err=f"shmviewctl: {verb}: no shmviewd: tried "
                   f"{socket}")
    assert "start one with 'systemctl --user start shmviewd.socket'" in result.err
    assert result.out == ""


def test_the_socket_is_an_option_before_and_after_the_verb(daemon, alone):
    assert alone("--socket", daemon.socket, "list", "--json").json == {"segments": []}
    assert alone("list", "--socket", daemon.socket, "--json").json == {"segments": []}
    alone("list", "--socket", "/nowhere", status=3, err="/nowhere")
    alone("list", "--socket", "x" * 200, status=1, err="at most 107 bytes")


def test_something_else_listens_there(daemon, directory):
    listener = subprocess.Popen(
        ["/usr/bin/python3", "-c", "import socket, sys; s = socket.socket(socket.AF_UNIX); "
         "s.bind(sys.argv[1]); s.listen(); print(flush=True); c = s.accept()[0]; c.recv(1000);"
         "c.send(b'HTTP/1.0 400\\0'); c.recv(1)", os.path.join(directory, "web")],
        stdout=subprocess.PIPE)
    listener.stdout.readline()
    ctl = Ctl(directory, os.path.join(directory, "web"))
    ctl("list", status=1, err="something else may listen there: look at --socket")
    assert listener.wait(60) == 0
    listener.stdout.close()


def test_output_that_cannot_be_written(ctl):
    with open("/dev/full", "w") as full:
        done = subprocess.run([CTL, "--help"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "standard output cannot be written: No space left on device" in done.stderr
    ctl("create", "seg", "-l", "l: " + " ".join(f"v{i}=u1" for i in range(200)))
    with open("/dev/full", "w") as full:  # more than one buffer
        done = subprocess.run([CTL, "show", "seg", "--json"], env=ctl.environment, stdout=full,
                              stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "standard output cannot be written" in done.stderr


@pytest.mark.skipif(os.path.exists("/run/shmviewd/io.shmview"), reason="the system's is found")
def test_only_create_starts_a_daemon(alone):
    ctl = Ctl(alone.directory)
    for verb in "list", "wait", "remove":
        ctl(verb, *ENOUGH[verb], status=3, err="no shmviewd: tried")
    assert not os.listdir(ctl.directory)
    ctl("create", "seg", "1")
    assert [segment["name"] for segment in ctl.segments()] == ["seg"]
    ctl("remove", "seg")
    session = os.path.join(ctl.directory, "shmviewd/session/io.shmview")
    await_(lambda: not os.path.exists(session), what="the end of the session")
