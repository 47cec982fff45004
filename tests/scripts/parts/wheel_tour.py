# SPDX-License-Identifier: Apache-2.0
"""The steps of docs/tour.md with nothing but an installed wheel: no numpy, no shmviewctl, no compiler.

Two sections are left out, C, which needs a compiler, and Files, which needs shmviewctl and numpy. In the others Python does
the work of shmviewctl, without its live display, metrics and doctor.

wheel.sh and tools/matrix.sh run it with the interpreter of an empty virtual environment. The second
terminal of the tour is a process here."""

import atexit
import glob
import os
import signal
import subprocess
import sys

import shmview


def other(code):
    """Starts another Python. It prints a line when it has come to the point that the caller waits for."""
    program = subprocess.Popen([sys.executable, *(["-I"] if sys.flags.isolated else []), "-c",
                                f"import shmview\nseg = shmview.attach('tour')\n{code}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(program.kill)
    return program


segment = shmview.create("tour", lifetime="manual", float={"A": ("f4", 8), "B": ("f4", 8)}, int={"D": ("i2", 32)})
assert shmview.list() == ["tour"] and segment.size == 64 and segment.phase is None

# The daemon and the libraries are those of the wheel, if this is one.
here = os.path.dirname(shmview.__file__)
if os.path.exists(f"{here}/native"):
    commands = set()  # in an emulated root, the link exe of each process leads to the emulator
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path) as command:
                commands.update(command.read().split("\0"))
        except OSError:
            pass
    assert f"{here}/native/shmviewd" in commands, commands
    with open("/proc/self/maps") as maps:
        foreign = [line for line in maps if any(name in line for name in ("shmview.so", "jansson")) and here not in line]
    assert not foreign, foreign

# Elements
with segment.locked():
    segment.switch("float")
    segment["B"][:] = 0.5
    segment["A"][:3] = [1, 2.5, -3]
done = other("print(seg['A'][2::-1].tolist(), seg['B'].tolist()[:2])").communicate()[0]
assert done == "[-3.0, 2.5, 1.0] [0.5, 0.5]\n", done
try:
    segment.view("D")
    sys.exit("a view of another layout than the current one was opened")
except shmview.NoLayout as error:
    assert "float" in str(error), error

# Another process writes, and is listed.
writer = other("with seg.locked():\n    seg['A'][:] = [i / 2 for i in range(8)]\n"
               "print('written', flush=True)\ninput()")
assert writer.stdout.readline() == "written\n"
assert segment["A"].tolist() == [i / 2 for i in range(8)]
assert writer.pid in [party.pid for party in shmview.stats("tour").parties], shmview.stats("tour")
writer.kill()
writer.wait()

# A holder is killed.
holder = other("seg.lock()\nprint('it is mine', flush=True)\nimport time; time.sleep(1000)")
assert holder.stdout.readline() == "it is mine\n"
try:
    segment.lock(timeout=0.2)
    sys.exit("two processes hold the lock")
except shmview.TimedOut:
    assert holder.pid in [party.pid for party in segment.lock_status().parties], segment.lock_status()
holder.send_signal(signal.SIGKILL)
holder.wait()
with segment.recover() as died:
    assert died.pid == holder.pid, died
with segment.locked():
    pass

# From floats to integers
floats = segment["A"]
waiter = other("seg.wait(phase='int', timeout=30)\nprint(seg['D'][:8].tolist())")
with segment.locked():
    segment.switch("int")
done = waiter.communicate()[0]
assert done == "[0, 0, 0, 16128, 0, 16256, 0, 16320]\n", done
try:
    floats.tolist()
    sys.exit("a view of a past phase was read")
except shmview.StaleViewError:
    pass

# A stream. Each frame has six numbers.
film = shmview.create_stream("film", image=("u1", (2, 3)), lossless=True, slots=4, lifetime="manual")
reader = other("film = shmview.open_stream('film')\nfilm.join()\nprint('joined', flush=True)\ninput()\n"
               "frame = film.take()\nprint(frame['image'].tolist(), flush=True)\ninput()\n"
               "frame.release()\nprint([sum(map(sum, frame['image'].tolist())) for frame in film])")
assert reader.stdout.readline() == "joined\n"


def publish(first):
    with film.loan(timeout=0.2) as frame:
        frame["image"][:] = [[first, first + 1, first + 2], [first + 3, first + 4, first + 5]]


for first in 0, 6, 12:
    publish(first)
film.end()
print(file=reader.stdin, flush=True)
assert reader.stdout.readline() == "[[0, 1, 2], [3, 4, 5]]\n"
status = film.status()
held = [(each.pid, each.next, each.lag, each.missed, len(each.holds)) for each in status.readers]
assert status.published == (3,) and status.ended == (True,) and held == [(reader.pid, 2, 2, 0, 1)], status
assert sorted(slot.state for slot in status.slots) == ["free", "held", "published", "published"], status

# A second film gets the free slot for its first frame; then the reader is in the way.
publish(0)
try:
    publish(6)
    sys.exit("the writer of a lossless stream did not wait for its reader")
except shmview.TimedOut as error:
    assert f"pid {reader.pid} " in str(error) and "holds 1 of 4 slots" in str(error), error
film.end()
done = reader.communicate("\n")[0]
assert done == "[51, 87, 15]\n", done
shmview.remove("film")
film.close()

# Watching, and the end
with shmview.events("tour", kinds=["created", "owner_died", "removed"], after=0) as events:
    shmview.remove("tour")
    kinds = []
    for event in events:
        kinds.append(event.kind)
        if event.kind == "removed":
            break
assert [kind for kind in kinds if kind != "subscribed"] == ["created", "owner_died", "removed"], kinds
floats.release()
segment.close()
assert shmview.list() == []
print("the tour is complete, with", here)
