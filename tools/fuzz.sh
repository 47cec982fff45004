#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [HOURS]: fuzzes all targets of tests/fuzz for HOURS (1) of processor time in all, with the address and
# undefined-behaviour sanitizers, on $JOBS processors. Targets take turns of a minute, so that an interrupted
# campaign has used its time evenly. It prints a row for each target when it ends, also by SIGINT or SIGTERM, and
# adds these rows to docs/fuzzing.tsv. The next campaign adds those of one that was killed. New inputs stay in
# build/found for the next campaign, and inputs that fail in build/found/failures. It then ends with status 1.
# `fuzz.sh total` prints the sums of docs/fuzzing.tsv.
set -euo pipefail
cd "$(dirname "$0")/.."
ledger=docs/fuzzing.tsv
if [ "${1:-}" = total ]; then
    awk -F '\t' 'NR > 1 { cpu[$3] += $4; runs[$3] += $5; failed[$3] += $7; c += $4; r += $5; f += $7 }
        END { for (t in cpu) printf "%s\t%.3f\t%.1f\t%d\n", t, cpu[t], runs[t], failed[t]
              printf "together\t%.3f\t%.1f\t%d\n", c, r, f }' "$ledger" | sort
    exit 0
fi
hours=${1:-1}
jobs=${JOBS:-$(nproc)}
[[ $hours =~ ^[0-9]+$ ]] || { echo "usage: fuzz.sh [HOURS|total]" >&2; exit 2; }

cmake -S . -B build/fuzz -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DSHMVIEW_FUZZ=ON > /dev/null
targets=$(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/\.c$//')
# shellcheck disable=SC2086
cmake --build build/fuzz -j "$jobs" --target $targets -- -s > build/fuzz/build.log
mkdir -p build/found/failures
turns=build/found/turns
campaign=$(date -u +%Y-%m-%dT%H:%M)$'\t'$(git rev-parse --short=10 HEAD 2> /dev/null || echo -)

# Adds a row for each target of each campaign in $turns to the ledger: hours of processor time, millions of executions,
# edges of the code that its inputs reach, turns that failed.
record() {
    awk -F '\t' '{ row = $1 FS $2 FS $3; cpu[row] += $4; runs[row] += $5; cov[row] = $6; failed[row] += $7 }
        END { for (row in cpu)
                  printf "%s\t%.3f\t%.1f\t%d\t%d\n", row, cpu[row] / 3600, runs[row] / 1e6, cov[row], failed[row] }' \
        "$turns" | sort >> "$ledger"
    rm -f "$turns"
}
[ ! -e "$turns" ] || record
touch "$turns"

# shellcheck disable=SC2317
summary() {
    trap '' INT TERM
    wait
    record
    grep "^$campaign" "$ledger" || true
}
trap summary EXIT
trap 'exit 130' INT TERM

# turn TARGET: a minute of it, and a line: its name, seconds of processor time, executions, edges, failures.
# Without the search for leaks after each input that keeps memory, which takes 14 times as long as a request. The corpus
# is run with it by the tests.
turn() {
    local corpus=build/found/$1 log status=0 cpu TIMEFORMAT='%U %S'
    mkdir -p "$corpus"
    log=$(mktemp)
    cpu=$({ time "build/fuzz/tests/fuzz/$1" -max_total_time=60 -detect_leaks=0 -print_final_stats=1 \
        -artifact_prefix="build/found/failures/$1-" "$corpus" "tests/fuzz/corpus/$1" > "$log" 2>&1 || status=$?
        exit "$status"; } 2>&1) || status=$?
    [ "$status" -eq 0 ] || tail -40 "$log" >&2
    awk -v campaign="$campaign" -v target="$1" -v cpu="$cpu" -v failed=$((status != 0)) '
        /cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
        /number_of_executed_units/ { runs = $2 }
        END { split(cpu, t, " "); OFS = "\t"; print campaign, target, t[1] + t[2], runs + 0, cov + 0, failed }' \
        "$log" >> "$turns"
    rm -f "$log"
}
export -f turn
export turns campaign
while awk -F '\t' -v wanted=$((hours * 3600)) '{ sum += $4 } END { exit sum >= wanted }' "$turns"; do
    xargs -P "$jobs" -I{} bash -c 'turn {}' <<< "$targets" &
    wait $!
done
awk -F '\t' -v campaign="$campaign" '$1 FS $2 == campaign && $7 { failed = 1 } END { exit failed }' "$turns"
