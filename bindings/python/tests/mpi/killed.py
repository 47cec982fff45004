# SPDX-License-Identifier: Apache-2.0
"""killed.py FOLDER: a rank is killed before a broadcast. The others write what they get to files of the folder,
if MPI lets them live. killed.sh runs it."""

import os
import signal
import sys
import time

import shmview
import shmview.mpi
from support import comm, me, n_ranks

VICTIM = 1


def main():
    job = shmview.mpi.open(comm, "killed", layouts={"done": {"numbers": ("i4", 1000)}}, timeout=60)
    numbers = job.view("numbers", "done")
    job.bcast(numbers, phase="done")
    if me == VICTIM:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    try:
        job.bcast(numbers, phase="done")
        said = "no error"
    except shmview.Error as error:
        said = f"{type(error).__name__} {getattr(error, 'rank', None)} {job.failed_rank}"
    try:
        job.bcast(numbers)
        said += ", no error"
    except shmview.Lost:
        said += ", Lost"
    took = time.monotonic() - begin
    job.close()
    # The segment stays as long as its views.
    assert len(numbers.tolist()) == 1000
    with open(f"{sys.argv[1]}/{me}.new", "w") as file:
        file.write(f"{said}, {'in time' if took < 40 else took}\n")
    os.rename(f"{sys.argv[1]}/{me}.new", f"{sys.argv[1]}/{me}")
    while len([name for name in os.listdir(sys.argv[1]) if name.isdigit()]) < n_ranks - 1:
        time.sleep(0.01)
    os._exit(3)  # MPI_Finalize() would wait for the rank that is dead


if __name__ == "__main__":
    sys.exit(main())
