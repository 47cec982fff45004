# SPDX-License-Identifier: Apache-2.0
"""docs/SCALE.md has the tables that mpi/bench/scale.py prints, and its figures change with the constants."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(os.environ["SHMVIEW_SOURCE_DIR"])


def run(*arguments):
    return subprocess.run([sys.executable, "-B", str(ROOT / "mpi/bench/scale.py"), *arguments], capture_output=True,
                          text=True, check=False)


page = (ROOT / "docs/SCALE.md").read_text()
printed = run()
tables = printed.stdout.strip().split("\n\n")
if printed.returncode or len(tables) != 5:
    sys.exit(f"{len(tables)} tables: {printed.stderr}")
wrong = [table for table in tables if f"\n\n{table}\n\n" not in page]
if wrong:
    sys.exit("docs/SCALE.md does not have:\n\n" + "\n\n".join(wrong))
other = run("alpha=1e-5").stdout.strip().split("\n\n")
if other[1] == tables[1] or other[2:] != tables[2:]:
    sys.exit("a longer latency must change the times, and nothing else")
for refused in ("beta=1", "alpha=fast", "port=0"):
    if run(refused).returncode == 0:
        sys.exit(f"scale.py took {refused}")
print(f"{len(tables)} tables")
