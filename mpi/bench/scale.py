#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""scale.py [NAME=VALUE...]: the tables of docs/SCALE.md, from the constants of a cluster and from scale.tsv.

Prints the model of docs/SCALE.md for the constants below, in seconds and bytes. NAME=VALUE replaces one of them:

    mpi/bench/scale.py alpha=1.3e-6 port=25e9 ranks=64
"""

import math
import pathlib
import sys

MIB = 1 << 20
CHAIN = MIB  # CHAIN_BYTES of bcast.c
PIECE, LEAST_PIECE = 2 * MIB, 4096  # of combine.c
CONTROL, RECORD = 1344, 2912  # control.h: struct control, and a record of each rank
OPENS = 18  # collectives of MPI in shmview_mpi_open()
REQUESTS = 3  # of each rank to the daemon: it connects, and attaches two segments
CHOICE = 15e-3  # what the first link of a process measures

CLUSTER = {
    "ranks": (128, "ranks on each node"),
    "alpha": (2e-6, "seconds of a short message between two nodes"),
    "port": (12.5e9, "bytes per second of a node's port, in each direction (100 Gbit/s)"),
    "memory": (200e9, "bytes per second that all ranks of a node read together"),
    "add": (8e9, "bytes per second that one rank adds to its own"),
    "line": (100e-9, "seconds until a cache line comes from another processor"),
    "wake": (1.5e-6, "seconds to wake one sleeping rank"),
    "request": (20e-6, "seconds of a request to the daemon"),
    "local": (5e-3, "seconds to open a job of one node with two ranks"),
}


def steps(n):
    return math.ceil(math.log2(n))


class Model:
    """at_once: transfers that the network carries at once, or None if each port has its own speed.
    share(n): by how much n nodes slow each other down within the nodes."""

    def __init__(self, c, at_once=None, share=lambda n: 1):
        self.k, self.alpha, self.beta = c["ranks"], c["alpha"], c["beta"]
        self.gamma, self.combine, self.meeting, self.local = c["gamma"], c["combine"], c["meeting"], c["local"]
        self.at_once, self.share = at_once, share

    def turns(self, transfers):
        """Turns that so many transfers at the same time need."""
        return max(1, transfers / self.at_once) if self.at_once else 1

    def begin(self, n, meetings):
        """The ranks of a node meet; the leaders compare their arguments twice."""
        return meetings * self.meeting(n) + 2 * steps(n) * self.alpha

    def bcast(self, n, size):
        pieces = math.ceil(size / CHAIN)
        if n > 2 and pieces + n - 2 < steps(n) * pieces:
            turns = pieces + n - 2 if not self.at_once else pieces * (n - 1) / self.at_once
            between = turns * (self.alpha + size / pieces * self.beta)
        else:
            between = sum(self.turns(min(1 << s, n - (1 << s))) * (self.alpha + size * self.beta)
                          for s in range(steps(n)))
        return self.begin(n, 2) + between

    def allreduce(self, n, size):
        within = self.k * size * self.combine * self.share(n)
        if n == 1:
            return self.begin(n, 3) + within
        pieces = math.ceil(size / min(PIECE, max(LEAST_PIECE, size / n)))
        piece, rounds, busy = size / pieces, math.ceil(pieces / n), min(pieces, n)
        one = self.alpha + piece * self.beta
        ring = self.turns(busy) * one + piece * self.gamma * self.share(busy)
        return self.begin(n, 3) + within + rounds * (n - 1) * (ring + self.turns(busy) * one)

    def halo(self, n, edge):
        """Blocks whose edges are all of so many bytes; the blocks of a node are in a row of the grid. Messages that
        are sent at the same time share their latency."""
        if n == 1:
            return 0
        turns = (n - 1) / self.at_once if self.at_once else 1
        return turns * (2 * self.alpha + 2 * self.k * edge * self.beta)

    def open(self, n):
        ranks = n * self.k
        exchanged = OPENS * steps(ranks) * self.alpha + 3 * 4 * ranks * self.k * self.beta
        return self.local + (exchanged if n > 1 else 0)


def cluster(c):
    return Model({"ranks": int(c["ranks"]), "alpha": c["alpha"], "beta": 1 / c["port"], "gamma": 1 / c["add"],
                  "combine": 1 / c["memory"], "meeting": lambda n: c["ranks"] * c["line"] + (c["ranks"] - 1) * c["wake"],
                  "local": c["local"] + REQUESTS * c["ranks"] * c["request"]})


def number(value):
    """Three digits."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def amount(size):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{number(size) if unit != 'bytes' else int(size)} {unit}"
        size /= 1024
    return f"{number(size)} TiB"


def table(header, rows):
    print("\n| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def predict(c):
    nodes, model, k = (1, 10, 100, 1000), cluster(c), int(c["ranks"])
    table(["constant", "value", ""], [[f"`{name}`", f"{c[name]:g}", text] for name, (_, text) in CLUSTER.items()])
    rows = []
    for size in (8, MIB, 64 * MIB, 1024 * MIB):
        rows.append([f"bcast of {amount(size)}"] + [number(1e3 * model.bcast(n, size)) for n in nodes])
    for size in (8, MIB, 64 * MIB, 1024 * MIB):
        rows.append([f"allreduce of {amount(size)}"] + [number(1e3 * model.allreduce(n, size)) for n in nodes])
    rows.append(["halo, edges of 8.00 KiB"] + ["-"] + [number(1e3 * model.halo(n, 8192)) for n in nodes[1:]])
    rows.append(["open"] + [number(1e3 * (model.open(n) + (CHOICE if n > 1 else 0))) for n in nodes])
    table(["ms"] + [f"{n:,} node{'s' if n > 1 else ''}" for n in nodes], rows)
    per_rank = [12 * n * k for n in nodes]
    control = CONTROL + RECORD * k
    slots = math.ceil((1536 + 128 * k) / 4096) * 4096 + 4096
    table(["memory"] + [f"{n:,} node{'s' if n > 1 else ''}" for n in nodes], [
        ["tables of a rank: 12 bytes for each rank"] + [amount(b) for b in per_rank],
        ["those of all ranks of a node"] + [amount(k * b) for b in per_rank],
        ["link of a leader: 8 bytes for each node"] + [amount(8 * n) for n in nodes],
        ["a link of every rank, for splits: of a node"] + [amount(8 * n * k * k) for n in nodes],
        ["control area of a node"] + [amount(control)] * len(nodes),
        ["lock of the segment: control and liveness"] + [amount(slots)] * len(nodes)])


def compare(lines):
    """Measured figures beside the model of a machine on which all nodes share two processors and one network."""
    at = {(int(n), name): float(us) * 1e-6 for n, name, us in lines}
    alpha = at[2, "latency"]
    c = {"ranks": 2, "alpha": alpha, "beta": (at[2, "piece"] - alpha) / MIB, "gamma": at[1, "add"] / MIB,
         "combine": at[1, "combine"] / MIB / 2, "meeting": lambda n: at[n, "meet"] / 2, "local": at[1, "open"]}
    model = Model(c, at_once=1, share=lambda n: n)
    table(["constant", "measured"], [
        ["a short message", f"{number(1e6 * alpha)} us"],
        ["the network", f"{number(1 / c['beta'] / 1e6)} MB/s"],
        ["a leader adds", f"{number(1 / c['gamma'] / 1e6)} MB/s"],
        ["a node of 2 ranks combines", f"{number(1 / c['combine'] / 1e6)} MB/s of contributions"],
        ["a meeting of 2 ranks, on 1, 2 and 3 nodes", ", ".join(number(1e6 * c["meeting"](n)) for n in (1, 2, 3)) + " us"]])
    rows = []
    for name in ("bcast", "allreduce", "halo"):
        for size in (65536, MIB, 16 * MIB):
            row = [f"{name} of {amount(size)}" if name != "halo" else f"halo, blocks of {amount(size)}"]
            for n in (1, 2, 3):
                edge = math.isqrt(size // 8) * 8
                time = model.halo(n, edge) if name == "halo" else getattr(model, name)(n, size)
                row += [number(1e3 * at[n, f"{name}.{size}"]), number(1e3 * time) if time else "-"]
            rows.append(row)
    row = ["open and close"]
    for n in (1, 2, 3):
        row += [number(1e3 * at[n, "open"]), number(1e3 * model.open(n))]
    table(["ms", "1 node", "model", "2 nodes", "model", "3 nodes", "model"], rows + [row])


def main(arguments):
    constants = {name: value for name, (value, _) in CLUSTER.items()}
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name not in constants:
            sys.exit(f"scale.py: {name} is none of {', '.join(constants)}\n\n{__doc__}")
        try:
            constants[name] = float(value)
        except ValueError:
            sys.exit(f"scale.py: '{value}' is no number")
        if not constants[name] > 0:
            sys.exit(f"scale.py: {name} must be above 0")
    predict(constants)
    measured = pathlib.Path(__file__).with_name("scale.tsv")
    compare([line.split("\t") for line in measured.read_text().splitlines() if not line.startswith("#")])


if __name__ == "__main__":
    main(sys.argv[1:])
