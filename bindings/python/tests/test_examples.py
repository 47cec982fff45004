# SPDX-License-Identifier: Apache-2.0
"""The examples print the lines that their documentation shows."""

import os
import subprocess
import sys
import wave

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
pytest.importorskip("numpy")
FOLDER = os.path.join(os.environ.get("SHMVIEW_SOURCE_DIR", "."), "bindings/python/examples")


def run_example(name, *arguments):
    done = subprocess.run([sys.executable, f"{FOLDER}/{name}", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=150)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return done.stdout.decode().splitlines()


def test_casts():
    said = [line.rsplit("# ", 1)[1].strip() for line in open(f"{FOLDER}/casts.py") if line.startswith("print") and "# " in line]
    lines = run_example("casts.py")
    assert len(lines) == len(said) == 7
    assert [line.replace("[258   2   3   4]", "[258 2 3 4]") for line in lines] == [
        "[258 2 3 4] [258 2 3 4]" if text.endswith("twice") else text for text in said]


def test_phases():
    lines = run_example("phases.py")
    assert lines[0] == "float: 1.0 1999.0 1000000.0" and lines[1].startswith("stale: the view is of phase 1")
    assert lines[2] == "int: [0, 1, 0, 1, 0, 1] 1000.0"


def test_from_c():
    lines = run_example("from_c.py")
    assert lines[-2] == "same memory: True" and lines[0].split()[2] == lines[1].split()[1]


def test_array():
    assert run_example("array.py") == ["before: 0", "after: 262146", "bytes: 0 0 1 0 2 0 3 0 4 0"]


def test_pipeline(tmp_path):
    tones = ["0.1 s: 440 Hz", "1.6 s: 660 Hz", "2.6 s: 880 Hz"]
    assert run_example("pipeline.py") == tones
    path = str(tmp_path / "short.wav")
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, 48000, 0, "NONE", ""))
        file.writeframes(b"\x00\x40\x00\xc0" * 12000 + bytes(2000))
    assert run_example("pipeline.py", path) == ["0.1 s: 24000 Hz"]
