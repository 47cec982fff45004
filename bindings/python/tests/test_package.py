# SPDX-License-Identifier: Apache-2.0
"""The package: the names that it exports, its stubs and its help, what it imports, and how pip
installs it."""

import ast
import builtins
import inspect
import os
import pydoc
import re
import shutil
import subprocess
import sys
import time

import pytest

import shmview

SOURCE, BUILD = os.environ.get("SHMVIEW_SOURCE_DIR"), os.environ.get("SHMVIEW_BUILD_DIR")
here = os.path.dirname(shmview.__file__)


def stub_names():
    with open(f"{here}/__init__.pyi") as stub, open(f"{here}/_streams.pyi") as streams:
        tree, parts = ast.parse(stub.read()), ast.parse(streams.read())
    names = set()
    members = {node.name: {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
               for node in parts.body if isinstance(node, ast.ClassDef)}
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
        if isinstance(node, ast.ImportFrom) and node.level:
            names |= {alias.asname or alias.name for alias in node.names}
        if isinstance(node, ast.ClassDef):
            members[node.name] = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
    return names, members


def test_stubs_tell_all():
    names, members = stub_names()
    assert names == set(shmview._names)
    for name in ("Connection", "Frame", "Segment", "Stream", "View"):
        cls = getattr(shmview, name)
        real = {member for member in vars(cls) if not member.startswith("_")}
        assert real == {member for member in members[name] if not member.startswith("_")}, name
        for member in members[name] - {"__buffer__", "__init__"}:
            assert hasattr(cls, member), (name, member)


# The types that a program gets, as mypy must see them, and a mistake that it must find.
TYPES = """
import ctypes, datetime, multiprocessing.sharedctypes, shmview
from typing import List, Optional
a: List[int] = shmview.Array("i", 3)[:]
b: float = shmview.Value("d", 1.0).value
c: bytes = shmview.Array("c", b"abc").value
d: float = shmview.Array(ctypes.c_float, [1.0, 2.0])[0]
e: ctypes.c_int = shmview.Value(ctypes.c_int, 3, lock=False)
f: "multiprocessing.sharedctypes.Synchronized[int]" = shmview.Value(ctypes.c_int, 3)
g: "shmview.ShareableList[int]" = shmview.ShareableList([1, 2, 3])
async def wait(seg: shmview.Segment) -> None:
    try:
        with seg.locked(timeout=1) as same, seg.shared(), shmview.attach("x"):
            h: int = same.size
        with seg.recover() as died:
            i: Optional[datetime.datetime] = died.died_at if died else None
        async with seg.locked() as same:
            j: int = await seg.changed()
    except shmview.NoSpace as e:
        k: Optional[int] = e.size
        l: Optional[int] = e.free
    except shmview.OwnerDied as died:
        m: float = died.when
class Index:
    def __index__(self) -> int:
        return 5
n: shmview.View = shmview.make(Index(), "d", (Index(), 2), offset=Index())
async def follow(stream: shmview.Stream) -> None:
    with stream.loan(timeout=1) as frame:
        frame.user, frame.time = b"user", 1.5
        p: shmview.View = frame["image"]
    for frame in stream:
        q: int = frame.pass_on(1)
    async for frame in stream:
        r: bytes = frame.user
    with shmview.open_stream("x:1", "read") as stream, stream.latest() as frame:
        s: shmview.StreamStatus = stream.status()
    t: shmview.Stream = shmview.wait_any([stream], 1)
    try:
        stream.take()
    except shmview.WriterDied as died:
        u: int = died.pid
o: str = shmview.Array("i", 3)[0]  # WRONG
"""


def test_stubs_are_types(tmp_path):
    if not shutil.which("mypy"):
        pytest.skip("no mypy")
    examples = [f"{SOURCE}/bindings/python/examples/{name}.py" for name in ("array", "phases", "pipeline")]
    program = tmp_path / "program.py"
    program.write_text(TYPES)
    done = subprocess.run(["mypy", "--strict", "--cache-dir=/dev/null", f"{here}/__init__.pyi", f"{here}/_streams.pyi", *examples, program],
                          stdout=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": "", "MYPYPATH": os.path.dirname(here)})
    errors = [line for line in done.stdout.decode().splitlines() if "error:" in line]
    wrong = 1 + TYPES.splitlines().index(next(line for line in TYPES.splitlines() if "WRONG" in line))
    assert len(errors) == 1 and errors[0].startswith(f"{program}:{wrong}: "), done.stdout.decode()


def test_stubs_of_errors():
    with open(f"{here}/_errors.pyi") as stub:
        classes = {node.name: [base.id for base in node.bases] for node in ast.parse(stub.read()).body
                   if isinstance(node, ast.ClassDef)}
    assert classes == {name: [base.__name__ for base in getattr(shmview, name).__bases__]
                       for name in shmview._errors.__all__}


def test_everything_is_documented():
    for name in shmview._names:
        assert inspect.getdoc(getattr(shmview, name)), name
    for cls in (shmview.Segment, shmview.View, shmview.Connection, shmview.Stream, shmview.Frame):
        for name, member in vars(cls).items():
            if not name.startswith("_"):
                assert member.__doc__, (cls, name)
        assert len(pydoc.render_doc(cls)) > 800
    assert inspect.signature(shmview.Segment.lock).parameters["timeout"].default is None


def test_help():
    """help(shmview) is at most two screens, names every function and class, and names nothing else."""
    text = pydoc.plain(pydoc.render_doc(shmview))
    assert len(text.splitlines()) <= 112
    for name in set(shmview._names) - set(shmview._errors.__all__) - {"Connection", "CudaError", "Guard", "NoCuda", "Pinned"}:
        assert re.search(rf"\b{name}\b", shmview.__doc__), name
    table = shmview.__doc__.split("\nSegment ")[1].split("\nInstead of")[0]
    segment, view = table.split("\nView ")
    for rows, cls in (segment, shmview.Segment), (view, shmview.View):
        left = " ".join(re.findall(r"^    (\w+(?:, \w+)*)", rows, re.M))
        members = set(re.findall(r"\b[a-z_]\w+", left)) - {"with"}
        assert len(members) > 5 and all(hasattr(cls, name) for name in members), members
    for name in re.findall(r"\b[A-Z]\w+Error\b|\b[A-Z]\w+Died\b|\bNo[A-Z]\w+", shmview.__doc__):
        assert hasattr(shmview, name) or hasattr(builtins, name), name
    assert {*shmview._names} <= {*dir(shmview)}


def test_import_star(run):
    """It binds nothing, so that it hides neither the type list nor the module array."""
    run("import array; before = {*globals(), 'before'}; from shmview import *; assert {*globals()} == before")


def test_errors():
    """Each error has the number of libshmview, and derives from a built-in error too."""
    codes = {}
    with open(f"{SOURCE}/include/shmview/error.h") as header:
        for line in header:
            if line.strip().startswith("X(") and '"' in line:
                name, value = line.strip()[2:].split(",")[:2]
                codes[int(value)] = name
    found = {getattr(shmview, name).code: name for name in shmview._errors.__all__ if getattr(shmview, name).code}
    assert set(found) == set(codes)
    for name in shmview._errors.__all__:
        cls = getattr(shmview, name)
        assert issubclass(cls, shmview.Error)
        made = shmview._errors.make(cls.code, "text", {"fact": 1})
        assert made.fact == 1 and "text" in str(made) and (not cls.code or type(made) is cls)
        if issubclass(cls, OSError):
            assert made.errno == cls.number


def test_nothing_is_imported_that_is_not_needed(run):
    run("import sys, shmview\n"
        "assert not {'numpy', 'asyncio', 'torch', 'multiprocessing'} & set(sys.modules)")


def test_without_numpy(run):
    """Everything except numpy's own types works without numpy."""
    run("import sys; sys.modules['numpy'] = None\n"
        "import shmview\n"
        "assert shmview._formats.format_text('f4') == '<f4'")


def test_pip(tmp_path):
    if os.environ.get("SHMVIEW_SANITIZE"):
        pytest.skip("not with a sanitizer")
    if subprocess.run([sys.executable, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no pip")
    before = sorted(os.listdir(f"{SOURCE}/bindings/python"))
    done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--no-cache-dir", "--target",
                           str(tmp_path), f"{SOURCE}/bindings/python"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, "SHMVIEW_BUILD_DIR": BUILD})
    assert done.returncode == 0, done.stdout.decode()
    assert sorted(os.listdir(f"{SOURCE}/bindings/python")) == before
    installed = set(os.listdir(tmp_path / "shmview"))
    assert {"py.typed", "__init__.pyi", "mpi.py", "mpi.pyi", "_mpi.py", "shmview.pxd", "__init__.pxd", "__init__.py"} <= installed
    run = tmp_path / "run"
    run.mkdir(0o700)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SHMVIEW")}
    environment.update(PYTHONPATH=str(tmp_path), XDG_RUNTIME_DIR=str(run), SHMVIEW_IDLE_EXIT="1")
    done = subprocess.run([sys.executable, "-c", "import shmview; print(shmview.__file__, shmview.create(None, 9).size)"],
                          stdout=subprocess.PIPE, env=environment, check=True)  # finds the daemon in the package
    assert done.stdout.decode().startswith(str(tmp_path)) and done.stdout.endswith(b" 9\n")
    while os.path.exists(run / "shmviewd/session/io.shmview"):
        time.sleep(0.05)
