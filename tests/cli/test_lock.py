# SPDX-License-Identifier: Apache-2.0
"""lock runs a command with the lock of a segment. Exit status, output, signals and terminal must be
as without it. If the command is killed, the next owner must get a report."""

import os
import pty
import signal
import subprocess
import sys

import pytest

from conftest import CTL, await_, end_with_parent, has_ended

SHOW_DEATH = "echo died=$SHMVIEW_OWNER_DIED"


@pytest.fixture
def holder(party):
    """Another client, which has attached the segment a."""
    one = party()
    one.do("a = shmview.create('a', 100)")
    return one


def states(ctl, name="a"):
    return sorted(row["lock"] or "" for row in ctl("who", name, "--json").json["attachments"])


def test_status_and_output_are_the_commands(ctl, holder):
    assert ctl("lock", "a", "--", "echo", "-n", "--shared", "x").out == "--shared x"
    assert ctl("lock", "a", "cat", input="through").out == "through"
    assert ctl("lock", "a", "-c", "echo $((6 * 7)); :").out == "42\n"
    for words in (["lock", "a", "sh", "-c", "exit 7"], ["lock", "--", "a", "sh", "-c", "exit 7"],
                  ["lock", "-x", "a", "-w", "5", "--", "sh", "-c", "exit 7"]):
        assert subprocess.run([CTL, *words], env=ctl.environment).returncode == 7


def test_it_holds_the_lock_meanwhile(ctl, holder):
    assert states(ctl) == [""]
    inside = f"{CTL} who a --json -o LOCK,COMMAND"
    assert '"exclusive"' in ctl("lock", "a", "-c", inside).out
    assert '"shared"' in ctl("lock", "--shared", "a", "-c", inside).out
    assert states(ctl) == [""]


def test_shared_beside_shared_only(ctl, holder):
    nested = [CTL, "lock", "-n", "a", "echo", "got it"]
    assert ctl("lock", "-s", "a", "--", *nested[:2], "-s", *nested[2:]).out == "got it\n"
    ctl("lock", "-s", "a", "--", *nested, status=1, err="'a' is held by process ")
    ctl("lock", "a", "--", *nested[:2], "-s", *nested[2:], status=1, err="is held by process ")
    ctl("lock", "a", "--", *nested[:3], "-E", "77", *nested[3:], status=77, err="is held by")


def test_who_is_in_the_way(ctl, holder):
    holder.do("a.lock()")
    said = f"shmviewctl: lock: 'a' is held by process {holder.pid} (python3)"
    ctl("lock", "a", "-n", "--", "false", status=1, err=said)
    result = ctl("lock", "a", "-w", "50ms", "-E", "9", "--", "false", status=9, err=said)
    assert "'shmviewctl who a'" in result.err
    holder.do("a.unlock()")


def test_what_others_call_themselves_reaches_no_terminal(ctl, holder):
    other = subprocess.Popen(["\033[2J", "lock", "a", "cat"], executable=CTL, env=ctl.environment,
                             stdin=subprocess.PIPE, preexec_fn=end_with_parent)
    await_(lambda: "exclusive" in states(ctl), what="the other one")
    ctl("lock", "a", "-n", "true", status=1, err=f"process {other.pid} (?[2J)")
    other.communicate(b"")
    assert other.returncode == 0


def test_it_waits(ctl, holder):
    holder.do("a.lock()")
    waiter = ctl.start("lock", "a", "-w", "1h", "--", "echo", "mine")
    await_(lambda: "waits exclusive" in states(ctl), what="the waiter")
    holder.do("a.unlock()")
    assert waiter.communicate(timeout=60) == ("mine\n", "")
    assert waiter.returncode == 0


def die_inside(party):
    one = party()
    one.do("a = shmview.attach('a')")
    one.do("a.lock()")
    one.kill()
    return one.pid


def test_a_death_is_told_until_it_is_repaired(ctl, holder, party):
    pid = die_inside(party)
    said = f"the last holder of 'a', process {pid}"
    assert ctl("lock", "a", "-c", SHOW_DEATH, err=said).out == f"died={pid}\n"
    said = "the last holder of 'a'"  # the process of a dead owner is not known forever
    assert ctl("lock", "a", "-s", "-c", SHOW_DEATH, err=said).out.startswith("died=")
    assert ctl("lock", "a", "--owner-died", "fail", "-c", SHOW_DEATH, status=5,
               err="nothing was run").out == ""
    ctl("lock", "a", "--owner-died=fail", "--owner-died-exit-code=88", "true", status=88, err=said)
    ctl("lock", "a", "--owner-died=repair", "false", status=1, err=said)
    ctl("lock", "a", "--owner-died=repair", "true", err="its bytes may be half written")
    assert ctl("lock", "a", "--owner-died=fail", "-c", SHOW_DEATH,
               env={"SHMVIEW_OWNER_DIED": "1"}).out == "died=\n"


def test_a_command_that_a_signal_ends_died_inside(ctl, holder):
    kill = "kill -9 $$; :"
    ran = subprocess.run([CTL, "lock", "a", "-c", kill], env=ctl.environment)
    assert ran.returncode == 128 + signal.SIGKILL
    ctl("lock", "a", "--owner-died=repair", "true", err="its bytes may be half written")
    ran = subprocess.run([CTL, "lock", "-s", "a", "-c", kill], env=ctl.environment)
    assert ran.returncode == 128 + signal.SIGKILL
    ctl("lock", "a", "true")  # a reader cannot have damaged anything


def test_killed_it_frees_the_lock_and_takes_the_command_along(ctl, holder):
    locker = ctl.start("lock", "a", "-c", "echo $$; exec cat /dev/zero > /dev/null")
    pid = int(locker.stdout.readline())
    locker.kill()
    locker.communicate()
    await_(lambda: has_ended(pid), what="the command's end")
    ctl("lock", "a", "--owner-died=repair", "true", err=f"process {locker.pid}")


# Prints each signal that it gets until SIGTERM, so that a signal that came twice appears twice.
# Python writes the signals into a pipe: pause() would miss one that arrives just before it sleeps.
COUNTER = """
import os, signal, sys
arrived, other_end = os.pipe()
os.set_blocking(other_end, False)  # as set_wakeup_fd() requires
signal.set_wakeup_fd(other_end)
for number in (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT,
               signal.SIGTERM):
    signal.signal(number, lambda number, frame: None)
print("ready", flush=True)
while (number := os.read(arrived, 1)[0]) != signal.SIGTERM:
    print(signal.Signals(number).name, flush=True)
sys.exit(5)
"""


def test_signals_are_forwarded(ctl, holder):
    locker = ctl.start("lock", "a", "--", sys.executable, "-c", COUNTER)
    assert locker.stdout.readline() == "ready\n"
    for number in "SIGUSR1", "SIGHUP", "SIGINT", "SIGUSR2", "SIGQUIT":
        locker.send_signal(getattr(signal, number))
        assert locker.stdout.readline() == number + "\n"
    locker.terminate()
    assert locker.communicate(timeout=60) == ("", "")
    assert locker.returncode == 5


def test_a_key_reaches_the_command_once(ctl, holder):
    master, slave = pty.openpty()

    def in_terminal():
        end_with_parent()
        os.setsid()
        os.close(os.open(os.ttyname(0), os.O_RDWR))  # opening it makes it the controlling terminal
    locker = subprocess.Popen([CTL, "lock", "a", "--", sys.executable, "-c", COUNTER],
                              env=ctl.environment, stdin=slave, stdout=subprocess.PIPE, text=True,
                              preexec_fn=in_terminal)
    os.close(slave)
    assert locker.stdout.readline() == "ready\n"
    os.write(master, b"\x03")
    assert locker.stdout.readline() == "SIGINT\n"
    locker.send_signal(signal.SIGUSR1)  # arrives after every signal that the key still causes
    assert locker.stdout.readline() == "SIGUSR1\n"
    locker.terminate()
    assert locker.communicate(timeout=60)[0] == ""
    os.close(master)


def test_what_cannot_be_run(ctl, holder):
    ctl("lock", "a", "--", "/no/such", status=127, err="cannot run '/no/such': No such file")
    ctl("lock", "a", "--", "/etc/passwd", status=126, err="Permission denied")
    ctl("lock", "a", "--owner-died=fail", "true")  # no command had begun


def test_refused(ctl, holder, party):
    ctl("lock", status=2, err="the name of a segment is missing")
    ctl("lock", "a", status=2, err="a command to run is missing after 'a'")
    ctl("lock", "a", "--", status=2, err="a command to run is missing after 'a'")
    ctl("lock", "a", "-c", "true", "false", status=2, err="--command takes the place of 'false'")
    ctl("lock", "-w", "soon", "a", "true", status=2, err="--timeout 'soon' is not a time")
    ctl("lock", "-E", "256", "a", "true", status=2, err="'256' is not a number from 0 to 255")
    ctl("lock", "--owner-died=ignore", "a", "true", status=2, err="none of tell, repair, fail")
    ctl("lock", "ghost", "true", status=4, err="'shmviewctl list' shows")
    holder.do("b = shmview.create('b', 1, lock=False)")
    ctl("lock", "b", "true", status=1, err="was created without a lock")
