#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# No turn of the daemon's loop takes more than 1 ms of the processor, whatever clients request. The
# daemon measures its turns, and each storm of bench/storm.c counts the least of five. Interrupts and
# other programs only add to a turn, so each storm must keep the target once in several runs. On a
# machine that is slow throughout, the figure proves nothing, and the test is skipped with the figures;
# check_busy_turns tests the bound with a clock of its own. A storm that leaves out a method fails.
set -euo pipefail

if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || [ ! -x "$SHMVIEW_BUILD_DIR/bench/bench" ]; then
    echo "a figure says nothing here: the build has sanitizers, or no bench"
    exit 77
fi

# Runs the storms whose names match, and prints the names of those that missed the target. Fails if
# a storm failed: for example because it leaves out a method.
missed() {
    local table
    table=$("$SHMVIEW_BUILD_DIR/bench/bench" --only "$1") || exit 1
    printf '%s\n' "$table" >&2
    printf '%s\n' "$table" | sed -n 's/  .*MISSED$//p'
}

left=$(missed 'longest turn, *')
for _ in 1 2 3 4 5; do
    [ -n "$left" ] || exit 0
    next=
    while read -r storm; do
        once=$(missed "$storm")
        [ -z "$once" ] || next+=$once$'\n'
    done <<<"$left"
    left=${next%$'\n'}
done
[ -n "$left" ] || exit 0
echo "too long in each of six runs, on this machine: $left"
exit 77
