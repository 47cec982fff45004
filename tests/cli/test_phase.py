# SPDX-License-Identifier: Apache-2.0
"""switch and wait: phases, segments that appear or end, changes, and their time limits. A test
starts `wait`, causes the event, and checks that `wait` ends."""

import contextlib
import os
import signal

import pytest

from conftest import await_

LAYOUTS = ["-l", "float: A=f4[100]", "-l", "int: D=i4[100]"]


def phase(ctl):
    return ctl("show", "seg", "--json").json["phase"]


def ends(process, status=0):
    """Waits until the process ends by itself; returns its output."""
    out, err = process.communicate(timeout=100)
    assert process.returncode == status, err
    return out, err


def waits(ctl, *words):
    """Starts `wait`, and returns when it waits."""
    process = ctl.start("wait", *words)
    if "--removed" in words or not ctl.segments():
        # it queries the daemon after it has its monitor, which is its second socket, and before it
        # sleeps
        await_(lambda: sockets(process.pid) > 1, what="its monitor")
    else:
        await_(lambda: ctl.segment("seg")["attached"], what="its attachment")
    return process


def sockets(pid):
    n = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # the process has closed it
            n += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    return n


# --- switch

def test_switch(ctl):
    ctl("create", "seg", *LAYOUTS)
    assert ctl("switch", "seg", "int").out == ""
    assert phase(ctl) == {"layout": "int", "generation": 1}
    told = ctl("switch", "seg", "float", "--json").json
    assert told["phase"] == {"layout": "float", "generation": 2}
    assert told["attachments"] == 0


def test_switch_refused(ctl):
    ctl("create", "seg", *LAYOUTS)
    ctl("create", "bare", "4", "--no-lock")
    ctl("switch", "seg", "none", status=4, err="segment 'seg' has no layout 'none': 'shmviewctl "
        "show' shows the layouts")
    ctl("switch", "ghost", "int", status=4, err="no segment 'ghost'")
    ctl("switch", "bare", "int", status=1, err="create it without --no-lock")
    ctl("switch", "seg", status=2, err="an argument is missing: switch NAME LAYOUT")
    ctl("switch", "seg", "int", "--timeout", "soon", status=2, err="write it like 10, 0.5")
    assert phase(ctl) == {"layout": None, "generation": 0}


def test_switch_waits_for_the_lock(ctl, party):
    ctl("create", "seg", *LAYOUTS)
    one = party()
    one.do("s = shmview.attach('seg')")
    one.do("s.lock()")
    ctl("switch", "seg", "int", "--timeout", "0.01", status=124, err="or give --timeout more")
    process = ctl.start("switch", "seg", "int")
    await_(lambda: ctl.segment("seg")["waiting"], what="it waits")
    one.do("s.unlock()")
    ends(process)
    assert phase(ctl)["layout"] == "int"


def test_switch_after_a_death(ctl, party):
    """The next owner gets the report too."""
    ctl("create", "seg", *LAYOUTS)
    one, two = party(), party()
    one.do("s = shmview.attach('seg')")
    one.do("s.lock()")
    one.kill()
    assert "died inside" in ctl("switch", "seg", "int", err="the next one gets this report too").err
    two.do("s = shmview.attach('seg')")
    two.do("try:\n s.lock()\nexcept shmview.OwnerDied:\n with s.recover(): told = 1")
    assert two.do("told") == 1
    ctl("switch", "seg", "float")


# --- wait

def test_wait_for_what_is_there(ctl):
    ctl("create", "seg", *LAYOUTS)
    assert ctl("wait", "seg").out == ""
    assert ctl("wait", "seg", "--timeout", "0", "--json").json["name"] == "seg"
    ctl("switch", "seg", "int")
    assert ctl("wait", "seg", "--phase", "int", "-J").json["phase"]["layout"] == "int"
    ctl("wait", "ghost", "--removed")


def test_wait_for_a_segment(ctl):
    process = waits(ctl, "seg")
    ctl("create", "other", "1")
    assert process.poll() is None
    ctl("create", "seg", "1")
    assert ends(process) == ("", "")


def test_wait_for_its_end(ctl):
    ctl("create", "seg", "1")
    process = waits(ctl, "seg", "--removed")
    ctl("chmod", "0640", "seg")
    assert process.poll() is None
    ctl("remove", "seg")
    assert ends(process) == ("", "")


def test_wait_for_a_phase(ctl):
    """Also for a phase that is not declared yet."""
    ctl("create", "seg", *LAYOUTS)
    first, second = waits(ctl, "seg", "--phase", "int"), ctl.start("wait", "seg", "-p", "late")
    await_(lambda: ctl.segment("seg")["attached"] == 2)
    ctl("switch", "seg", "float")
    assert first.poll() is None
    ctl("switch", "seg", "int")
    assert ends(first) == ("", "")
    ctl("define", "seg", "late: A=u1")
    ctl("switch", "seg", "late")
    ends(second)


def test_wait_for_a_segment_and_its_phase(ctl):
    process = waits(ctl, "seg", "--phase", "int", "--json")
    ctl("create", "seg", *LAYOUTS)
    ctl("switch", "seg", "int")
    out, _ = ends(process)
    assert '"layout": "int"' in out


def test_wait_for_a_change(ctl, party):
    ctl("create", "seg", "1")
    process = waits(ctl, "seg", "--change")
    one = party()
    one.do("s = shmview.attach('seg')")
    # it misses a change that comes before its first look: repeat until it ends
    await_(lambda: one.do("s.notify()") is None and process.poll() is not None)
    assert ends(process) == ("", "")


def test_removed_meanwhile(ctl):
    ctl("create", "seg", *LAYOUTS)
    process = waits(ctl, "seg", "--phase", "int")
    ctl("remove", "seg")
    _, err = ends(process, 4)
    assert "segment 'seg' was removed" in err


@pytest.mark.parametrize("words,says", [
    ([], "'seg' is in another phase"), (["--change"], "'seg' has not changed"),
    (["--removed"], "'seg' still exists"),
])
def test_time_is_up(ctl, words, says):
    ctl("create", "seg", *LAYOUTS)
    words = words or ["--phase", "int"]
    for timeout in "0", "20ms":
        ctl("wait", "seg", "--timeout", timeout, *words, status=124, err=says)
    ctl("wait", "ghost", "-t", "20ms", status=124, err="'ghost' does not exist")


def test_wait_refused(ctl):
    ctl("create", "bare", "1", "--no-lock")
    ctl("wait", "bare", "--phase", "int", status=1, err="create it without --no-lock")
    ctl("wait", "bare", "--change", status=1, err="create it without --no-lock")
    ctl("wait", status=2, err="an argument is missing: wait NAME")
    ctl("wait", "bare", "--change", "--removed", status=2, err="give one of them")
    ctl("wait", "bare", "--removed", "--json", status=2, err="cannot describe a segment")
    ctl("wait", "bare", "--timeout", "-1", status=2, err="--timeout '-1' is not a time")
    ctl("wait", "no name", status=1, err="'no name'")


def test_interrupted(ctl):
    process = waits(ctl, "seg")
    process.send_signal(signal.SIGINT)
    ends(process, -signal.SIGINT)
