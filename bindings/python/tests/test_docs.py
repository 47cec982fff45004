# SPDX-License-Identifier: Apache-2.0
"""The examples on the pages run and give the results that the pages show, and each name on them
exists."""

import ast
import asyncio
import builtins
import inspect
import os
import re
import subprocess
import sys
import threading

import pytest

import shmview

pytestmark = pytest.mark.usefixtures("daemon")
DOCS = os.path.join(os.environ.get("SHMVIEW_SOURCE_DIR", "."), "docs")


def page(name):
    with open(os.path.join(DOCS, name)) as text:
        return text.read()


def run_block(source, names):
    """Runs a block of code, also one with an await outside of a function."""
    code = compile(source, "PYTHON.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(code, names)
    if inspect.isawaitable(result):
        asyncio.run(asyncio.wait_for(result, 60))


def test_blocks_of_code(capsys):
    pytest.importorskip("numpy")
    first, recovery, reading, waiting, streams, *_ = re.findall(r"```python\n(.*?)```", page("PYTHON.md"), re.S)
    names = {}
    run_block(first, names)
    assert capsys.readouterr().out == "Summary(n=1000, n_nan=0, min=0.0, max=3.0, sum=6.0)\n"
    run_block(recovery, names)
    run_block(reading, names)
    assert names["r"].valid and names["copy"][:3] == [1, 2, 3]
    seg = names["seg"]

    def switch():
        with seg.locked():
            seg.switch("int")
    thread = threading.Thread(target=switch)
    thread.start()
    run_block(waiting, names)
    thread.join()
    assert names["seen"] == seg.change and seg.phase == "int"
    names.update(pixels=[[[3] * 3] * 640] * 480, means=[])
    run_block(streams, names)
    assert names["means"] == [3] and names["frame"].user == b"exposure 7"
    names.clear()


def test_program(tmp_path):
    """The program with several processes runs from a file, because its child imports it."""
    program = re.findall(r"```python\n(.*?)```", page("PYTHON.md"), re.S)[-1]
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, str(tmp_path / "program.py")], stdout=subprocess.PIPE,
                          timeout=100, check=True)
    assert done.stdout == b"49\n"


def test_module_text():
    """The example of help(shmview) runs."""
    names = {"numpy": pytest.importorskip("numpy")}
    block = re.search(r"((?:    .*\n|\n)+)", shmview.__doc__).group(1)
    source = inspect.cleandoc(block).replace("print(", "total = (")
    run_block(source, names)
    assert names["total"] == 6
    names.clear()


def test_names():
    """Every name that the pages use exists."""
    seen = 0
    owners = {"shmview": shmview, "seg": shmview.Segment, "v": shmview.View, "view": shmview.View,
              "stream": shmview.Stream, "reader": shmview.Stream, "frame": shmview.Frame}
    for name in "PYTHON.md", "MIGRATION.md":
        text = page(name).replace("shmview.pxd", "").replace("shmview.mpi", "").replace("io.shmview", "")
        for owner, attribute in re.findall(r"\b(shmview|seg|v|view|stream|reader|frame)\.([A-Za-z_]\w*)", text):
            assert hasattr(owners[owner], attribute), (name, owner, attribute)
            seen += 1
    assert seen > 30
    rows = re.findall(r"^\| (`.*?) \| (`.*?) \|", page("PYTHON.md").split("## Errors")[1], re.M)
    assert len(rows) >= 10
    for row in rows:
        ours, theirs = ([*re.findall(r"`(\w+)`", cell)] for cell in row)
        bases = tuple(getattr(builtins, name) for name in theirs)
        assert all(issubclass(getattr(shmview, name), bases) for name in ours), row


def test_imports():
    """The left column of MIGRATION.md works with shmview in the place of multiprocessing."""
    imports = re.findall(r"^\| `from (multiprocessing\S*) import ([^`]+)`", page("MIGRATION.md"), re.M)
    assert len(imports) == 7
    for module, names in imports:
        for name in names.split(", "):
            theirs, ours = {}, {}
            exec(f"from {module} import {name} as it", theirs)
            exec(f"from shmview import {name} as it", ours)
            assert callable(ours["it"]) == callable(theirs["it"])
