#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/elsewhere.sh prints one table: a heading with the machine, and rows of equal form for one CPU,
# for waiters and for deaths.
set -euo pipefail

if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || [ ! -x "$SHMVIEW_BUILD_DIR/bench/bench" ]; then
    echo "a figure says nothing here: the build has sanitizers, or no bench"
    exit 77
fi
table=$("$SHMVIEW_SOURCE_DIR/bench/elsewhere.sh" --quick --build "$SHMVIEW_BUILD_DIR")

complain() {
    echo "$1 in:" >&2
    echo "$table" >&2
    exit 1
}
grep -q '^### [0-9]* CPUs: .' <<< "$table" || complain "no heading"
grep -q "^20..-..-.., commit .*Linux $(uname -r)" <<< "$table" || complain "no date and kernel"
[ "$(grep -c '^| row ' <<< "$table")" = 1 ] || complain "not one table"
for row in 'many readers, 1 CPU' 'many owners, 1 CPU' 'many notified, 16 parked' 'kill to next owner'; do
    grep -q "^| $row" <<< "$table" || complain "no row of '$row'"
done
columns=$(grep '^|' <<< "$table" | awk -F '|' '{ print NF }' | sort -u)
[ "$columns" = 10 ] || complain "rows have $columns columns instead of 10"

"$SHMVIEW_SOURCE_DIR/bench/elsewhere.sh" --build /nowhere 2> /dev/null && complain "accepts a build that is not there"
exit 0
