#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# scale.sh BUILD: measures what docs/SCALE.md compares with its model, on 1 to 3 nodes of this machine with 2
# ranks each (mpi/tests/nodes.sh), by Open MPI. Runs each nine times and prints the medians, as scale.tsv has them.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "$1")
export SHMVIEW_DAEMON=$build/daemon/shmviewd SHMVIEW_CONFIG=/dev/null NODES_LIMIT_S=280
[ -x "$build/mpi/mpi_openmpi_bench_scale" ] || { echo "the build has no bench of Open MPI"; exit 77; }
for _ in {1..9}; do
    for nodes in 1 2 3; do
        mpi/tests/nodes.sh openmpi "$nodes" 2 "$build/mpi/mpi_openmpi_bench_scale"
    done
done | sort -s -k1,1n -k2,2 -k3,3g | awk -F '\t' 'NR % 9 == 5'
