#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The services of packaging/container/compose.yaml, each with namespaces of its own and the mounts that the file gives
# it, as its container would have: the programs share an array, and go on while the daemon's container is replaced.
set -euo pipefail
# shellcheck source=tests/scripts/parts/await.sh
. "$(dirname "$0")/parts/await.sh"

skip() {
    echo "skipped: $1"
    exit 77
}
build=${SHMVIEW_BUILD_DIR:?}
folder=${SHMVIEW_SOURCE_DIR:?}/packaging/container
[ "$(id -u)" -eq 0 ] || skip "needs root"
for part in "${SHMVIEWD:-}" "$build/cli/shmviewctl" "$build/python/shmview"; do
    [ -x "$part" ] || skip "the daemon, shmviewctl or the Python package is not built"
done
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "Python has no sanitizer"
[ -e "/proc/$$/task/$$/children" ] || skip "the kernel does not list children"

# Only this script sees the mounts, and they end with it.
if [ "${1:-}" != inside ]; then
    unshare --mount --net --ipc true 2> /dev/null || skip "may not make namespaces"
    scratch=$(mktemp -d /tmp/shmview-test.XXXXXX)
    trap 'rmdir "$scratch"' EXIT
    unshare --mount --propagation private bash "$0" inside "$scratch" && exit
    exit $?
fi
scratch=$2
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch"/{socket,shm}
mount -t tmpfs -o size=64m,mode=1777 shm "$scratch/shm"

services=()
# stop SIGNAL PARENT: as podman does, by a signal to the first process of a service.
stop() {
    local first
    first=$(cat "/proc/$2/task/$2/children")
    kill "-$1" "${first% }"
}
# shellcheck disable=SC2317 # the trap calls it
end() {
    local pid
    for pid in "${services[@]}"; do
        stop KILL "$pid" 2> /dev/null || kill -KILL "$pid" 2> /dev/null || true
    done
    wait
}
trap end EXIT
fail() {
    echo "FAILED: $1" >&2
    tail -n 20 "$scratch"/*.log >&2
    exit 1
}

# setting SERVICE NAME: the list on the line of that service in compose.yaml, without brackets and commas.
setting() {
    awk -v service="  $1:" -v name="    $2:" '
        /^  [a-z]/ { inside = $0 == service }
        inside && index($0, name) == 1 { gsub(/.*\[|\].*|,/, ""); print }' "$folder/compose.yaml"
}

# Runs in the namespaces of one service, which sees nothing in /dev/shm and /run but its volumes.
# shellcheck disable=SC2016
inside='set -e
scratch=$1 volumes=$2; shift 2
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t proc proc /proc
for volume in $volumes; do
    case $volume in
    shm:* | socket:*) mkdir -p "${volume#*:}" && mount --bind "$scratch/${volume%%:*}" "${volume#*:}" ;;
    esac
done
exec "$@"'

# start SERVICE COMMAND...: in the background, with its output in SERVICE.log. $! is the parent of its first process.
start() {
    unshare --mount --propagation private --pid --net --ipc --fork --kill-child bash -c "$inside" sh "$scratch" \
        "$(setting "$1" volumes)" "${@:2}" >> "$scratch/$1.log" 2>&1 &
    services+=($!)
}
start_daemon() {
    start daemon "$SHMVIEWD" --socket "$socket"
    daemon=$!
}
start_program() { # SERVICE
    local command
    read -ra command <<< "$(setting "$1" command)"
    [ "${command[0]}" = python3 ] || fail "compose.yaml: $1 runs '${command[*]}'"
    start "$1" /usr/bin/python3 "$folder/${command[1]#/programs/}"
}

# shellcheck disable=SC2317 # await() calls it
is_later() { # ROUND
    [ "$(last_round)" -gt "$1" ]
}
last_round() {
    sed -n 's/^consumer: round //p' "$scratch/consumer.log" | awk 'END { print $1 + 0 }'
}
# Waits until the consumer has seen ten rounds more.
await_rounds() {
    await is_later "$(last_round)" || fail "no rounds $1"
}

socket=$(sed -n 's/^ENV SHMVIEW_SOCKET=//p' "$folder/Containerfile")
export SHMVIEW_SOCKET=$socket SHMVIEW_CONFIG=/dev/null PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
unset SHMVIEW_DAEMON
: > "$scratch/consumer.log"
start_program producer
start_program consumer
consumer=$!
start_daemon
await_rounds "with the first daemon"

stop TERM "$daemon"
wait "$daemon" || fail "the daemon ends with $? after SIGTERM"
await_rounds "without a daemon"
start_daemon
await grep -q "took over 1 segments; 0 were lost" "$scratch/daemon.log" || fail "the segment is lost"
await_rounds "with the second daemon"

stop KILL "$consumer"
wait "$consumer" || true
start_program consumer
await_rounds "for a consumer that attaches after the restart"
start consumer "$build/cli/shmviewctl" list
wait $! || fail "shmviewctl list ends with $?"
grep -q "^rounds " "$scratch/consumer.log" || fail "shmviewctl list does not print the segment"
[ "$(grep -c "^producer: begins" "$scratch/producer.log")" -eq 1 ] || fail "the producer has not run all the time"
