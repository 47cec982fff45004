# SPDX-License-Identifier: Apache-2.0
"""Draws the ratios of the table in bench/README.md."""

import re

# A line of the table with a target: what, ours, reference, its figure, unit, ratio, least..most, target.
ROW = re.compile(r"    (?P<what>\S.*?) {2,}[\d.]+  (?P<reference>\S.*?) +[\d.]+  \S+ +(?P<ratio>[\d.]+)  (?P<least>[\d.]+)"
                 r"\.\.(?P<most>[\d.]+) +(?P<bound>[<>]=) (?P<target>[\d.]+)x")


def rows_of(text):
    """The rows of the table that have a target for the ratio; the last of those with the same name."""
    found = {}
    for line in text.split("\n"):
        row = ROW.match(line)
        if row:
            found[f"{row['what']} / {row['reference']}"] = row
    return found


def draw(text, path):
    """Draws one line for each row: the ratio, its range, and the target. Returns the number of rows."""
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "shmview", "font.size": 8, "text.color": "gray",
                                "axes.labelcolor": "gray", "xtick.color": "gray", "ytick.color": "gray",
                                "axes.edgecolor": "gray", "svg.fonttype": "none"})
    from matplotlib import pyplot, ticker
    rows = rows_of(text)
    figure, axis = pyplot.subplots(figsize=(10, 0.5 + 0.17 * len(rows)))
    for y, row in enumerate(rows.values()):
        least, ratio, most, target = (max(float(row[key]), 0.003) for key in ("least", "ratio", "most", "target"))
        axis.plot([least, most], [y, y], color="#5b8fd0", linewidth=3, alpha=0.45, solid_capstyle="butt")
        axis.plot([ratio], [y], "o", color="#2f6fc0", markersize=4)
        axis.plot([target], [y], "<" if row["bound"] == "<=" else ">", color="#d0743c", markersize=4)
    axis.set_yticks(range(len(rows)), list(rows))
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.set_xscale("log")
    axis.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.axvline(1, color="gray", linewidth=0.8)
    axis.grid(axis="y", color="gray", alpha=0.2)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(top=True, labeltop=True)
    figure.tight_layout()
    figure.savefig(path, transparent=True, metadata={"Date": None, "Creator": None})
    return len(rows)
