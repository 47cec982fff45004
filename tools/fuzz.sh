#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [HOURS]: fuzzes all targets of tests/fuzz for HOURS (1) of processor time in all, with the address and
# undefined-behaviour sanitizers, on $JOBS processors. Targets take turns of a minute, so that an interrupted
# campaign has used its time evenly. It prints a row for each target when it ends, also by SIGINT or SIGTERM. New inputs
# stay in build/found for the next campaign, and inputs that fail in build/found/failures.
set -euo pipefail
cd "$(dirname "$0")/.."
hours=${1:-1}
jobs=${JOBS:-$(nproc)}
[[ $hours =~ ^[0-9]+$ ]] || { echo "usage: fuzz.sh [HOURS]" >&2; exit 2; }

cmake -S . -B build/fuzz -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DSHMVIEW_FUZZ=ON > /dev/null
targets=$(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/\.c$//')
# shellcheck disable=SC2086
cmake --build build/fuzz -j "$jobs" --target $targets -- -s > build/fuzz/build.log
mkdir -p build/found/failures
turns=$(mktemp)

# Prints for each target: hours of processor time, executions, edges of the code that its inputs reach, failures.
# shellcheck disable=SC2317
summary() {
    trap '' INT TERM
    wait
    awk '{ cpu[$1] += $2; runs[$1] += $3; cov[$1] = $4; failed[$1] += $5 }
        END { for (t in cpu) { printf "| %s | %.2f | %.1f | %d | %d |\n", t, cpu[t] / 3600, runs[t] / 1e6, cov[t], failed[t]
                  c += cpu[t]; r += runs[t]; f += failed[t] }
              printf "| together | %.2f | %.1f | | %d |\n", c / 3600, r / 1e6, f }' "$turns" | sort
    rm -f "$turns"
}
trap summary EXIT
trap 'exit 130' INT TERM

# turn TARGET: a minute of it, and a line: its name, seconds of processor time, executions, edges, failures.
turn() {
    local corpus=build/found/$1 log status=0 cpu TIMEFORMAT='%U %S'
    mkdir -p "$corpus"
    log=$(mktemp)
    cpu=$({ time "build/fuzz/tests/fuzz/$1" -max_total_time=60 -print_final_stats=1 \
        -artifact_prefix="build/found/failures/$1-" "$corpus" "tests/fuzz/corpus/$1" > "$log" 2>&1 || status=$?
        exit "$status"; } 2>&1) || status=$?
    [ "$status" -eq 0 ] || tail -40 "$log" >&2
    awk -v target="$1" -v cpu="$cpu" -v failed=$((status != 0)) '
        /cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
        /number_of_executed_units/ { runs = $2 }
        END { split(cpu, t, " "); print target, t[1] + t[2], runs + 0, cov + 0, failed }' "$log" >> "$turns"
    rm -f "$log"
}
export -f turn
export turns
while awk -v wanted=$((hours * 3600)) '{ sum += $2 } END { exit sum >= wanted }' "$turns"; do
    xargs -P "$jobs" -I{} bash -c 'turn {}' <<< "$targets" &
    wait $!
done
