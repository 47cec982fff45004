#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the figures of each release, and plots how the ratios went.

    make bench-history          # runs all tables, writes bench/history/VERSION.json, and plots
    bench/history.py [--folder FOLDER] record VERSION OUTPUT...
    bench/history.py [--folder FOLDER] plot

record joins the JSON output of bench, python.py and ruby.rb (a file for each) and adds the machine
and the date. A release that is recorded again is replaced. plot draws ratios.svg and needs matplotlib."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import sys


def fail(text):
    sys.exit(f"history.py: {text}")


def key_of(row):
    """What names a row in all releases: the ratio of one thing to another."""
    return f"{row['what']} / {row['reference_name']}"


def version_key(path):
    return [int(part) for part in re.findall(r"\d+", path.stem)]


def processor():
    with open("/proc/cpuinfo") as lines:
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")),
                    platform.machine())


def read_json(path):
    try:
        return json.loads(pathlib.Path(path).read_text())
    except (OSError, ValueError) as error:
        fail(f"{path}: {error}")


def record(folder, version, outputs):
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        fail(f"a version is numbers with dots, not '{version}'")
    rows = [row for path in outputs for row in read_json(path)["rows"]]
    release = {"version": version, "date": datetime.date.today().isoformat(),
               "machine": {"processor": processor(), "cpus": len(os.sched_getaffinity(0)),
                           "kernel": platform.release(), "architecture": platform.machine()},
               "rows": rows}
    folder.mkdir(exist_ok=True)
    path = folder / f"{version}.json"
    path.write_text(json.dumps(release, indent=1) + "\n")
    print(f"{path}: {len(rows)} rows")


def series(folder):
    """The versions, and for each row that has a target its ratios, None where a release lacks it."""
    releases = [read_json(path) for path in sorted(folder.glob("*.json"), key=version_key)]
    if not releases:
        fail(f"no release in {folder}")
    found = {}
    for i, release in enumerate(releases):
        for row in release["rows"]:
            if row.get("target_of") == "ratio":
                line = found.setdefault(key_of(row), {"ratios": [None] * len(releases)})
                line["ratios"][i] = row["ratio"]
                line["target"] = row["target"]
    return [release["version"] for release in releases], found


def plot(folder):
    versions, found = series(folder)
    try:
        import matplotlib
    except ImportError:
        fail("plot needs matplotlib (python3-matplotlib)")
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "shmview"  # equal figures make equal files
    from matplotlib import pyplot
    columns = 4
    lines = -(-len(found) // columns)
    figure, axes = pyplot.subplots(lines, columns, figsize=(4 * columns, 1.9 * lines), squeeze=False)
    for axis, (name, line) in zip(axes.flat, sorted(found.items())):
        axis.plot(versions, line["ratios"], "o-", color="black", markersize=3)
        axis.axhline(line["target"], color="gray", linestyle="--", linewidth=0.8)
        axis.set_title(name, fontsize=7)
        axis.set_ylim(bottom=0)
        axis.tick_params(labelsize=6)
    for axis in axes.flat[len(found):]:
        axis.remove()
    figure.suptitle("ratio to the reference, less is better; dashed: the target", fontsize=10)
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.4 / (1.9 * lines)))
    to = folder / "ratios.svg"
    figure.savefig(to, metadata={"Date": None, "Creator": None})
    print(f"{to}: {len(found)} rows of {len(versions)} releases")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path(__file__).parent / "history")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("record", help="write the file of a release")
    command.add_argument("version")
    command.add_argument("output", nargs="+", help="what a table of the bench printed with --json")
    commands.add_parser("plot", help="draw the ratios of all releases")
    options = parser.parse_args()
    if options.command == "record":
        record(options.folder, options.version, options.output)
    else:
        plot(options.folder)


if __name__ == "__main__":
    main()
