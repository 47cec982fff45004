#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mpi.sh PROGRAM.c FOLDER: builds a job with pkg-config and the compiler wrapper of each MPI for which
# libshmview-mpi is installed, in FOLDER, and runs it with 2 ranks below the daemon that it finds.
set -euo pipefail
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
n=0
for mpi in openmpi mpich; do
    pkg-config --exists "shmview-mpi-$mpi" || continue
    # A list of flags.
    # shellcheck disable=SC2046
    "mpicc.$mpi" -o "$2/job-$mpi" "$1" $(pkg-config --cflags --libs "shmview-mpi-$mpi") -lm
    printed=$("mpiexec.$mpi" -n 2 "$2/job-$mpi" -r 2 < /dev/null)
    echo "$mpi: $printed"
    [ "$printed" = "2 ranks on 1 nodes: all elements of 4 phases are right" ]
    n=$((n + 1))
done
[ "$n" -gt 0 ]
