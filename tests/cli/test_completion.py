# SPDX-License-Identifier: Apache-2.0
"""Completion by bash and by zsh: each test gives the shell a line, and compares the words that
it offers with verbs, options and what the daemon has now."""

import os
import shutil
import subprocess

import pytest

from conftest import CTL

SCRIPTS = os.path.join(os.environ["SHMVIEW_SOURCE_DIR"], "cli/completion")
VERBS = subprocess.run([CTL, "--list-verbs"], capture_output=True, text=True,
                       check=True).stdout.split()

BASH = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
_shmviewctl
[ ${#COMPREPLY[@]} = 0 ] || printf '%s\\n' "${COMPREPLY[@]}"
"""

# Replaces the function that completion calls: it prints what it would offer.
ZSH = """
autoload -U is-at-least
compadd() { shift; local word; for word; do [[ $word == ${words[CURRENT]}* ]] && print -r -- $word; done; return 0 }
_files() { print :files }
_command_names() { print :commands }
_users() { print :users }
_groups() { print :groups }
words=("${(@s: :)2}")
CURRENT=${#words}
source "$1"
"""


@pytest.fixture(params=["bash", "zsh"])
def complete(request, ctl):
    """Returns a function: the words that the shell offers for a line."""
    shell = request.param
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    script = os.path.join(SCRIPTS, "shmviewctl.bash" if shell == "bash" else "_shmviewctl")
    program, options = (BASH, ["--norc"]) if shell == "bash" else (ZSH, ["-f"])
    path = os.path.dirname(CTL) + ":" + ctl.environment["PATH"]

    def complete(line):
        done = subprocess.run([shell, *options, "-c", program, "complete", script, line],
                              capture_output=True, text=True, timeout=100, cwd=ctl.directory,
                              env=dict(ctl.environment, PATH=path))
        assert done.stderr == ""
        offered = done.stdout.split()
        if shell == "bash" and ":" in line.split()[-1]:
            # readline already has the part before the colon
            offered = [line.split()[-1].rpartition(":")[0] + ":" + word for word in offered]
        return sorted(offered)
    complete.shell = shell
    return complete


def test_verbs(complete):
    assert complete("shmviewctl ") == sorted(VERBS)
    assert complete("shmviewctl sh") == ["show"]
    assert complete("shmviewctl --socket /nowhere sh") == ["show"]
    assert complete("shmviewctl --") == ["--help", "--socket"]


def test_words_are_not_run(ctl, complete):
    complete("shmviewctl list -o $(touch${IFS}ran),N")
    complete("shmviewctl list -o `touch${IFS}ran`,N")
    assert not os.path.exists(os.path.join(ctl.directory, "ran"))


def test_names_that_are_there_now(ctl, complete):
    assert complete("shmviewctl show ") == []
    for name in "cam.1", "cam.2", "mic":
        ctl("create", name, "1")
    for verb in "show", "remove", "freeze", "wait", "list", "who", "lock", "define", "top", "monitor", "metrics":
        assert complete(f"shmviewctl {verb} ") == ["cam.1", "cam.2", "mic"]
    assert complete("shmviewctl show cam") == ["cam.1", "cam.2"]
    assert complete("shmviewctl remove mic ca") == ["cam.1", "cam.2"]
    assert complete("shmviewctl show mic ") == []
    assert complete("shmviewctl chmod 0600 m") == ["mic"]
    assert complete("shmviewctl wait --timeout 3 --phase x m") == ["mic"]
    assert complete("shmviewctl wait -t 3 m") == ["mic"]
    ctl("remove", "mic")
    assert complete("shmviewctl show m") == []


def test_the_daemon_that_the_line_names(ctl, complete, alone):
    ctl("create", "seg", "1")
    nowhere = alone.environment["SHMVIEW_SOCKET"]
    assert complete(f"shmviewctl --socket {nowhere} show ") == []
    assert complete(f"shmviewctl show --socket={nowhere} ") == []
    ours = ctl.environment["SHMVIEW_SOCKET"]
    assert complete(f"shmviewctl --socket {nowhere} show --socket {ours} ") == ["seg"]


def test_layouts_and_views(ctl, complete):
    ctl("create", "seg", "-l", "float: A=f4[3] B=f4[3]", "-l", "int: D=i4[6]")
    assert complete("shmviewctl switch seg ") == ["float", "int"]
    assert complete("shmviewctl switch seg i") == ["int"]
    assert complete("shmviewctl switch ghost ") == []
    assert complete("shmviewctl switch seg int ") == []
    assert complete("shmviewctl wait seg --phase ") == ["float", "int"]
    assert complete("shmviewctl define seg ") == []
    for verb in set(VERBS) & {"get", "stats", "plot", "fill", "set", "save"}:
        assert complete(f"shmviewctl {verb} s") == ["seg"]
        assert complete(f"shmviewctl {verb} seg/") == sorted(
            ["seg/A", "seg/B", "seg/D", "seg/float:A", "seg/float:B", "seg/int:D"])
        assert complete(f"shmviewctl {verb} seg/float:") == ["seg/float:A", "seg/float:B"]


def test_options(complete):
    offered = complete("shmviewctl list --")
    assert {"--json", "--noheadings", "--output", "--socket", "--help"} <= set(offered)
    assert complete("shmviewctl list --no") == ["--noheadings"]
    assert complete("shmviewctl create x --lifetime ") == ["attached", "creator", "manual"]
    assert complete("shmviewctl create x --lifetime m") == ["manual"]
    assert complete("shmviewctl create x --backing ") == ["file", "sealed"]
    assert complete("shmviewctl create x --huge ") == ["required", "wanted"]
    assert complete("shmviewctl create x --numa ") == ["interleaved", "local"]


def test_words_of_options(complete):
    assert complete("shmviewctl lock --owner-died ") == ["fail", "repair", "tell"]
    assert complete("shmviewctl top -s a") == ["age", "attached"]
    assert complete("shmviewctl monitor --kind ow") == ["owner_died"]
    assert complete("shmviewctl monitor -k died,re") == ["died,recovered", "died,removed"]


def test_columns(complete):
    assert complete("shmviewctl list -o LA") == ["LABEL", "LAYOUTS"]
    assert complete("shmviewctl list --output NAME,LAY") == ["NAME,LAYOUTS"]
    assert complete("shmviewctl list --output +LAY") == ["+LAYOUTS"]
    assert complete("shmviewctl show seg --views -o BE") == ["BEGIN"]


def test_what_the_shell_knows_itself(ctl, complete):
    open(os.path.join(ctl.directory, "file.npy"), "w").close()
    if complete.shell == "bash":
        assert complete("shmviewctl --socket fi") == ["file.npy"]
        assert "root" in complete("shmviewctl chown ro")
        assert "root" in complete("shmviewctl create x --group ro")
        assert "true" in complete("shmviewctl lock seg -- tru")
        assert complete("shmviewctl run cat fi") == ["file.npy"]
    else:
        assert complete("shmviewctl --socket fi") == [":files"]
        assert complete("shmviewctl chown ro") == [":users"]
        assert complete("shmviewctl create x --group ro") == [":groups"]
        assert complete("shmviewctl lock seg -- tru") == [":commands"]
        assert complete("shmviewctl run cat fi") == [":files"]


def test_nothing_sensible(complete):
    for line in ("shmviewctl frobnicate ", "shmviewctl frobnicate seg x", "shmviewctl wait -t ",
                 "shmviewctl create "):
        assert complete(line) in ([], sorted(VERBS))


def test_bash_knows_where_it_begins():
    """bash-completion finds the script by the program's name."""
    said = subprocess.run(["bash", "--norc", "-c", f"source {SCRIPTS}/shmviewctl.bash; "
                           "complete -p shmviewctl"], capture_output=True, text=True, check=True)
    assert said.stdout == "complete -F _shmviewctl shmviewctl\n"


def test_streams(ctl, complete):
    ctl("stream", "create", "cam", "-m", "latest", "image=u1[4]")
    assert complete("shmviewctl stream ") == ["create"]
    assert complete("shmviewctl stream create x --mode ") == ["latest", "lossless"]
    assert complete("shmviewctl record ca") == ["cam"]
    assert complete("shmviewctl record cam/") == ["cam/frame:image", "cam/image"]
    assert complete("shmviewctl replay x.npy ") == ["cam"]
