#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh BUILD: the bench with 8 ranks on 2 nodes of this machine (mpi/tests/nodes.sh), for each MPI that
# the build has. Plain MPI and shmview take turns.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export SHMVIEW_DAEMON=$build/daemon/shmviewd SHMVIEW_CONFIG=/dev/null NODES_LIMIT_S=280
for program in "$build"/mpi/mpi_*_bench; do
    [ -x "$program" ] || { echo "the build has no MPI"; exit 77; }
    name=${program##*/mpi_}
    echo "== ${name%_bench}: 8 ranks on 2 nodes, 64 MiB: plain MPI, shmview"
    mpi/tests/nodes.sh "${name%_bench}" 2 4 "$program"
done
for program in "$build"/mpi/mpi_*_bench_transfers; do
    name=${program##*/mpi_}
    name=${name%_bench_transfers}
    options=() launcher=mpiexec.$name
    [ "$name" = mpich ] || options=(--oversubscribe)
    [ "$name" != mpi ] || launcher=mpiexec options=()
    echo "== $name: views between 2 ranks of one node; the last column is the ratio to the better other way"
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$launcher" "${options[@]}" -n 2 "$program"
done
