#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Figures in the documents that follow from constants, tables and files of the tree are those of the tree."""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(os.environ["SHMVIEW_SOURCE_DIR"])


def text(path):
    return (ROOT / path).read_text(encoding="utf-8")


def macro(path, name):
    """Returns the number that a macro stands for, which may contain other macros of the file."""
    value = re.search(rf"^#define {name} +([^/\n]+)", text(path), re.M).group(1)
    value = re.sub(r"\b[A-Z_]{3,}\b", lambda other: str(macro(path, other.group())), value)
    return int(eval(re.sub(r"\b(\d+)u\b", r"\1", value), {}))


def closure(*names):
    """Returns these modules of the page, and those that they import before they run."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += re.findall(r'^import .* from "\./([a-z]+\.js)"', text(f"web/page/{name}"), re.M)
    return found


def kilobytes(names):
    return round(sum((ROOT / "web/page" / name).stat().st_size for name in names) / 1000)


def groups(path):
    """Returns the numbers of entries in the groups of tools/analyze.reviewed, which begin with a comment."""
    return [len(re.findall(r"^[^#\n].*", group, re.M)) for group in text(path).split("\n#\n")[1:]]


layout, mutex, stream = (macro(f"include/shmview/{part}layout.h", f"SHMVIEW_{part.upper()}LAYOUT_VERSION")
                         for part in ("", "mutex_", "stream_"))
kept = macro("daemon/clients/exit_watch.h", "EXIT_WATCH_KEEP_NS") / 1e9
lock = [int(row[2].replace(",", "")) for row in
        re.findall(r"^\| \w+ \| ([^|:]+) \| ([A-Z_=0-9 ]+) \| ([0-9,]+) \|", text("tests/model/README.md"), re.M)]
first = closure("app.js", "early.js")
view = closure("view.js") - first
first |= set(re.findall(r'(?:href|src)="/([a-z]+\.[a-z]+)"', text("web/page/index.html"))) | {"index.html"}
scope, memory, results, meant = groups("tools/analyze.reviewed")
expected = {
    "docs/LAYOUT.md": [f"# The bytes in shared memory, layout version {layout}\n", f"| 4 | u32 | version | {layout} |",
                       f"| 4 | u32 | version | {stream}; the creator", f"| 4 | u32 | version | {mutex}; from"],
    "docs/THREATS.md": [f"a watch ends {kept} s after the last report"],
    "docs/PROTOCOL.md": [f"until {kept} s after the last report"],
    "docs/DESIGN.md": [f"which lasts {kept} s after a report",
                       f"at most {macro('common/base/limits.h', 'LIMIT_JSON_WEIGHT'):,} (`LIMIT_JSON_WEIGHT`)",
                       f"The largest search of the lock has {round(max(lock) / 1e6)} million states"],
    "docs/WEB.md": [f"{kilobytes(first)} KB in {len(first)} files", f"{kilobytes(view)} KB more in {len(view)} files"],
    "docs/ANALYSIS.md": [f"nothing but {scope + memory + results + meant} places that were reviewed",
                         f"Of the {scope + memory + results + meant} places, {scope} are", f"{memory} are memory that",
                         f"{results} are results", f"{meant} are true"],
}
wrong = [f"{path} does not have: {figure.strip()}" for path, figures in expected.items() for figure in figures
         if figure not in text(path) and figure not in " ".join(text(path).split())]
print("\n".join(wrong) or f"{sum(map(len, expected.values()))} figures are those of the tree")
sys.exit(bool(wrong))
