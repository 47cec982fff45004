#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# killed.sh RANKS.SH IMPLEMENTATION PYTHON PROGRAM: runs killed.py with 4 ranks. With what MPI does at a death, the
# job ends in time. With an MPI that lets the other ranks live, each of them gets PeerFailed with the rank.
set -euo pipefail
ranks=$1 implementation=$2 python=$3 program=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# run NAME: runs the job, which must end, and not by the time limit of ranks.sh. $status is its end.
run() {
    status=0
    mkdir "$scratch/$1"
    SECONDS=0
    bash "$ranks" "$implementation" 4 "$python" "$program" "$scratch/$1" > "$scratch/log" 2>&1 || status=$?
    if [ "$status" -eq 77 ]; then
        cat "$scratch/log"
        exit 77
    fi
    [ "$SECONDS" -le 60 ] || fail "$1: the job took $SECONDS s"
}
fail() {
    echo "$*" >&2
    cat "$scratch/log" >&2
    exit 1
}

run ended
[ "$status" -ne 0 ] || fail "a rank was killed, and the job ended with 0"
[ "$implementation" = openmpi ] || exit 0
OMPI_MCA_orte_enable_recovery=1 run recovered
for rank in 0 2 3; do
    said=$(cat "$scratch/recovered/$rank" || true)
    [ "$said" = "PeerFailed 1 1, Lost, in time" ] || fail "rank $rank: $said"
done
