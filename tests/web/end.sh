#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The processes of browser.sh end with the process that has started it, also if that is killed.
set -euo pipefail
folder=${SHMVIEW_SOURCE_DIR:?}/tests/web
setpriv --pdeathsig TERM true 2> /dev/null || { echo "skipped: no setpriv"; exit 77; }
scratch=$(mktemp -d)
pids=()
cleanup() {
    [ ${#pids[@]} -eq 0 ] || kill -KILL "${pids[@]}" 2> /dev/null || true
    rm -rf "$scratch"
}
trap cleanup EXIT
mkfifo "$scratch/out"
# a shell that stands for ctest; without the second command bash would replace itself by the script
bash -c 'bash "$1/browser.sh" "$1/stand.mjs"; echo "ended $?"' bash "$folder" > "$scratch/out" 2>&1 &
parent=$!
exec 3< "$scratch/out"
while read -r -t 60 -u 3 first rest; do
    case $first in
    pids) read -ra pids <<< "$rest" && break ;;
    skipped:) echo "$first $rest" && exit 77 ;;
    *) echo "$first $rest" >&2 ;;
    esac
done
[ ${#pids[@]} -eq 4 ] || { echo "the processes have not started" >&2; exit 1; }
kill -KILL "$parent"
for _ in {1..150}; do
    alive=()
    for pid in "${pids[@]}"; do
        # not a zombie, which stays where PID 1 waits for nobody
        ! grep -q $'^State:\t[^ZX]' "/proc/$pid/status" 2> /dev/null || alive+=("$pid")
    done
    [ ${#alive[@]} -gt 0 ] || break
    sleep 0.1
done
if [ ${#alive[@]} -gt 0 ]; then
    ps -o pid=,args= -p "$(IFS=,; echo "${alive[*]}")" >&2 || true
    echo "these processes have not ended with the one that started them" >&2
    exit 1
fi
pids=()
