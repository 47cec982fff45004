#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# killed.sh PROGRAM: in the switch of nodes.sh. Kills ranks at steps of collectives, one job for each, and
# looks after each job at what it has left. With KILLED_STEPS=all it takes many more steps, also some that a
# rank does not make.
# The job of a killed rank must end in time, and the next one must find no half of a result.
set -euo pipefail
program=$1
steps="2 3 9" tries=10
[ "${KILLED_STEPS:-}" != all ] || steps=$(seq -s ' ' 2 24) tries=1

# Ends what the launcher has left on the nodes, as a resource manager does: hydra's agents may fail when a
# rank dies, and leave the other ranks.
clean_nodes() {
    local file
    for file in "$NODES_SCRATCH"/node*.pid; do
        # shellcheck disable=SC2016
        nsenter -t "$(cat "$file")" -m -p bash -c '
            for link in /proc/[0-9]*/exe; do
                [ "$(readlink "$link")" != "$1" ] || kill -9 "$(cut -d / -f 3 <<< "$link")"
            done 2> /dev/null' clean "$(realpath "$program")" || true
    done
}

# kill_one WHICH VICTIM STEP: one job. Sets $status to its end.
kill_one() {
    local job="$1: rank $2 killed at step $3"
    status=0
    timeout -k 2 60 "$NODES_RUN" "$program" "$2" "$3" "$1" > "$NODES_SCRATCH/out" 2>&1 || status=$?
    if [ "$status" -eq 124 ] || [ "$status" -eq 137 ] && ! grep -q -i 'signal 9\|killed' "$NODES_SCRATCH/out"; then
        echo "$job: the job did not end"
        cat "$NODES_SCRATCH/out"
        failed=1
    fi
    clean_nodes
    if ! timeout -k 2 60 "$NODES_RUN" "$program" after > "$NODES_SCRATCH/after" 2>&1; then
        echo "$job: the job ended with $status, and left:"
        cat "$NODES_SCRATCH/out" "$NODES_SCRATCH/after"
        failed=1
    fi
    echo "$1, rank $2, step $3: $status; $(grep '^node' "$NODES_SCRATCH/after" | sort | paste -sd ';')"
}

failed=0 turn=0
for which in bcast allreduce; do
    for step in $steps; do
        # The leader of the root, a member, the leader of the other node, by turns, or all.
        victims=$((turn++ % 3))
        [ "${KILLED_STEPS:-}" != all ] || victims="0 1 2"
        for victim in $victims; do
            for ((i = 0; i < tries; i++)); do
                kill_one "$which" "$victim" "$step"
                [ "$status" -eq 0 ] || break # a rank that need not wait makes fewer steps
            done
            if [ "$status" -eq 0 ] && [ "$tries" -gt 1 ]; then
                echo "$which: rank $victim never came to step $step"
                failed=1
            fi
        done
    done
done
exit "$failed"
