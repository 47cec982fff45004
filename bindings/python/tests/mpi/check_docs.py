# SPDX-License-Identifier: Apache-2.0
"""The program in docs/MPI.md runs, and every name in its section on Python exists."""

import os
import re
import sys

import numpy

import shmview
import shmview.mpi

OWNERS = {"job": shmview.mpi.Job, "link": shmview.mpi.Link, "split": shmview.mpi.Split, "shmview.mpi": shmview.mpi,
          "view": shmview.View}


def main():
    with open(os.path.join(os.environ["SHMVIEW_SOURCE_DIR"], "docs/MPI.md")) as page:
        section = page.read().split("\n## Python\n")[1].split("\n## ")[0]
    names = {}
    exec(compile(re.search(r"```python\n(.*?)```", section, re.S)[1], "MPI.md", "exec"), names)
    assert names["job"].closed and numpy.allclose(names["total"].array, names["table"].array.sum(axis=0))
    seen = 0
    for owner, name in re.findall(r"\b(shmview\.mpi|job|link|split|view)\.([a-z_]\w*)", section):
        members = dir(OWNERS[owner]) + ["segment", "rank", "size", "owner_died", "block", "whole"]
        assert name in members or (owner, name) == ("shmview.mpi", "py"), (owner, name)
        seen += 1
    assert seen > 30


if __name__ == "__main__":
    sys.exit(main())
