# SPDX-License-Identifier: Apache-2.0
"""The programs of COOKBOOK.md run as they are printed, and give the output that the page shows. The code
of TROUBLESHOOTING.md raises the errors that the page shows."""

import ast
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

import shmview
from conftest import await_

pytestmark = pytest.mark.usefixtures("daemon")
SOURCE, BUILD = os.environ.get("SHMVIEW_SOURCE_DIR", "."), os.environ.get("SHMVIEW_BUILD_DIR")
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)


def sections(name):
    """Returns the text of each section by its heading."""
    with open(os.path.join(SOURCE, "docs", name)) as page:
        _, *parts = re.split(r"^## ", page.read(), flags=re.M)
    return dict(part.split("\n", 1) for part in parts)


COOKBOOK, TROUBLES = sections("COOKBOOK.md"), sections("TROUBLESHOOTING.md")


def anchors(text):
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in sections(text)}


@pytest.mark.parametrize("name", ["COOKBOOK.md", "TROUBLESHOOTING.md"])
def test_index(name):
    """Every section has a row in the index, and every link leads somewhere."""
    with open(os.path.join(SOURCE, "docs", name)) as page:
        text = page.read()
    assert set(re.findall(r"\]\(#([\w-]+)\)", text.split("\n## ")[0])) == anchors(name)
    for path, anchor in re.findall(r"\]\(([\w./]+\.\w+)(?:#([\w-]+))?\)", text):
        assert os.path.exists(os.path.join(SOURCE, "docs", path)), path
        assert not anchor or anchor in anchors(path), anchor


def missing(programs):
    """Returns the first module that the programs import and that is not installed, or None."""
    for source in programs:
        for node in ast.walk(ast.parse(source)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                if importlib.util.find_spec(name) is None:
                    return name


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """Puts this Python, and a pkg-config that finds this build, before the machine's own."""
    tmp_path = tmp_path / "bin"
    tmp_path.mkdir()
    flags = f"-I{SOURCE}/include -L{BUILD}/client -lshmview -Wl,-rpath,{BUILD}/client"
    for name, line in (("python3", f'exec {sys.executable} "$@"'), ("pkg-config", f"echo '{flags}'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SHMVIEW_DAEMON", os.environ["SHMVIEWD"])
    # with it, processes that print at the same time mix the parts of their lines
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


def check(found, shown):
    """Compares output with that of the page, where '…' stands for anything."""
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", shown))
    assert re.fullmatch(pattern, found, re.S), f"found:\n{found}\nshown:\n{shown}"


def run_session(text, folder):
    """Runs the commands of a session, and compares what they print."""
    for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.M):
        if "SHMVIEW_SANITIZE" in os.environ and command.startswith(("cc ", "c++ ", "./")):
            pytest.skip("not with a sanitizer")
        if command.startswith("c++ ") and not shutil.which("c++"):
            pytest.skip("no C++ compiler")
        done = subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=150)
        assert done.stderr == b"", done.stderr.decode()
        check(done.stdout.decode(), shown)


@pytest.mark.parametrize("heading", COOKBOOK)
def test_recipe(heading, tmp_path, tools):
    pytest.importorskip("numpy")
    without, ran = None, False
    folder = tmp_path / "programs"
    folder.mkdir()
    programs = []
    for language, text in CODE.findall(COOKBOOK[heading]):
        if language in ("python", "c", "cpp"):
            name = re.match(r"(?:# |/\* )(\S+)", text).group(1)
            (folder / name).write_text(text)
            if language == "python":
                compile(text, name, "exec")
                programs.append(text)
        elif language == "sh":
            subprocess.run(["sh", "-n"], input=text.encode(), check=True)
            without = "container"
        else:
            without = missing(programs)
            if not without:
                run_session(text, folder)
                ran = True
            programs = []
    await_(lambda: shmview.list() == [], what="the end of the segments")  # when the daemon sees the programs end
    if without and not ran:
        pytest.skip(f"no {without}")


def errors(section):
    """Yields each program of a section with the error that the page shows below it, or None."""
    blocks = CODE.findall(section)
    for (language, text), (following, error) in zip(blocks, blocks[1:] + [("", "")]):
        if language == "python":
            yield text, error.strip() if following == "text" else None
        elif language == "console":
            yield None, text


@pytest.mark.parametrize("heading", TROUBLES)
def test_trouble(heading, tmp_path, tools, monkeypatch):
    pytest.importorskip("numpy")
    monkeypatch.chdir(tmp_path)
    names = {"os": os, "shmview": shmview}
    for source, error in errors(TROUBLES[heading]):
        if source is None:
            run_session(error, tmp_path)
        elif error is None:
            exec(compile(source, heading, "exec"), names)
        else:
            with pytest.raises(Exception) as raised:
                exec(compile(source, heading, "exec"), names)
            kind = type(raised.value)
            check(f"{kind.__module__}.{kind.__name__}: {raised.value}", error)
            del raised
    names.clear()
