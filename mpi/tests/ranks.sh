#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# ranks.sh IMPLEMENTATION RANKS PROGRAM...: runs a program with so many ranks on this machine, below a
# daemon of its own, and fails if the program does or if segments are left. MPIEXEC names the
# launcher, SHMVIEWD the daemon. Skips where one is missing.
set -euo pipefail
implementation=$1 ranks=$2
shift 2
[ -x "${MPIEXEC:-}" ] || { echo "there is no mpiexec of $implementation"; exit 77; }

scratch=$(mktemp -d)
daemon='' launcher=''
# shellcheck disable=SC2317
leave() {
    # timeout passes the signal on to mpiexec, which ends the ranks
    [ -z "$launcher" ] || { kill "$launcher" 2> /dev/null && wait "$launcher"; } || true
    [ -z "$daemon" ] || { kill -INT "$daemon" 2> /dev/null; wait "$daemon" 2> /dev/null; }
    rm -rf "$scratch"
}
trap leave EXIT
trap 'exit 143' INT TERM
export SHMVIEW_SOCKET=$scratch/socket TMPDIR=$scratch
"${SHMVIEWD:?}" --socket "$SHMVIEW_SOCKET" > "$scratch/log" 2>&1 &
daemon=$!
for _ in {1..400}; do
    [ ! -S "$SHMVIEW_SOCKET" ] || break
    sleep 0.05
done

case "$implementation" in
mpich)
    export MPIR_CVAR_POLLS_BEFORE_YIELD=1
    options=()
    ;;
*)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    # Waiting ranks yield the processor, because there may be more of them than processors.
    export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_base_warn_component_unused=0
    options=(--oversubscribe)
    ;;
esac
status=0
timeout -k 5 280 "$MPIEXEC" "${options[@]}" -n "$ranks" "$@" < /dev/null &
launcher=$! # in the background, so that a signal to this script is handled at once
wait "$launcher" || status=$?
launcher=''
[ "$status" -eq 0 ] || { echo "the program ended with $status" >&2; cat "$scratch/log" >&2; }
# Prints the objects of segments.
objects() {
    find /dev/shm/shmview."$(sed -n 's/.*, instance \([^,]*\), listening .*/\1/p' "$scratch/log")" \
        -type f ! -name '+daemon' ! -path '*/+presence/*' || true
}
for _ in {1..400}; do # the daemon may need a moment to see that its clients have ended
    left=$(objects)
    [ -n "$left" ] || break
    sleep 0.05
done
if [ -n "$left" ]; then
    echo "objects are left:" >&2
    echo "$left" >&2
    [ "$status" -ne 0 ] || status=1
fi
exit "$status"
