#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs and daemons of this version and of the previous release work together: the library and the
# daemon of the newest tag v* before this commit are built; before the first release, those of the commit that
# raised a version in tests/abi last, with which this one claims to be compatible. Each pair of programs shares a segment under
# each daemon, and under a daemon that is replaced by the other version's while the first program has
# attached. If the two versions have different layouts of shared memory, which a release announces, a
# program must refuse the other version's segments instead.
set -euo pipefail
source=${SHMVIEW_SOURCE_DIR:?}
build=${SHMVIEW_BUILD_DIR:?}
cc=${CC:-cc}
cmake=${CMAKE:-cmake}
if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || [ ! -e "${SHMVIEW_LIBRARY:-}" ]; then
    echo "not with a sanitizer"
    exit 77
fi
history() {
    git -C "$source" "$@" 2> /dev/null || true
}
tag=${SHMVIEW_NEIGHBOUR:-$(history describe --tags --abbrev=0 --match 'v*' HEAD^)}
if [ -z "$tag" ]; then
    # A commit that only adds a line has changed no version.
    tag=$(history log --format='commit %h' --numstat -- tests/abi/versions |
        awk '$1 == "commit" { tag = $2 } NF == 3 && $2 > 0 { exit } END { print tag }')
    # In a clone without its history the oldest commit seems to have written everything.
    if [ -z "$tag" ] || [ "$(history rev-parse --is-shallow-repository)" = true ] ||
        [ "$tag" = "$(history log -1 --format=%h)" ]; then
        echo "no release yet, and no earlier commit with the baselines of tests/abi"
        exit 77
    fi
    echo "no release yet: the neighbour is $tag, which raised a version in tests/abi last"
fi

scratch=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill -KILL "$daemon" || true; rm -rf "$scratch"' EXIT
mkdir "$scratch/old" "$scratch/run"
git -C "$source" archive "$tag" | tar -x -C "$scratch/old"
"$cmake" -S "$scratch/old" -B "$scratch/built" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSHMVIEW_{TESTS,TOOLS,EXAMPLES,BENCH}=OFF \
    -DSHMVIEW_PYTHON= -DSHMVIEW_RUBY= -DSHMVIEW_SYSTEMD=OFF > "$scratch/log"
"$cmake" --build "$scratch/built" --parallel "$(nproc)" --target shmview shmviewd >> "$scratch/log"
"$cc" -std=c11 -I "$scratch/old/include" -o "$scratch/program-old" "$source/tests/abi/neighbour.c" \
    -L "$scratch/built/client" -Wl,-rpath,"$scratch/built/client" -lshmview
"$cc" -std=c11 -I "$source/include" -o "$scratch/program-new" "$source/tests/abi/neighbour.c" \
    -L "$build/client" -Wl,-rpath,"$build/client" -lshmview

layout() {
    sed -n 's/^#define SHMVIEW_LAYOUT_VERSION *\([0-9]*\)u$/\1/p' "$1/include/shmview/layout.h"
}
declare -A program daemon_of=([old]=$scratch/built/daemon/shmviewd [new]=$build/daemon/shmviewd)
program=([old]=$scratch/program-old [new]=$scratch/program-new)

# start VERSION: its daemon, on $SHMVIEW_SOCKET. stop: ends it as an upgrade does, with SIGTERM.
export SHMVIEW_CONFIG=/dev/null SHMVIEW_SOCKET
start() {
    "${daemon_of[$1]}" --ready-fd 7 7> "$run/ready" > "$run/log" 2>&1 &
    daemon=$!
    read -r _ < "$run/ready"
}
stop() {
    kill "-$1" "$daemon"
    wait "$daemon" || true
    daemon=
}
n=0
begin() {
    run=$scratch/run/$((++n))
    mkdir -m 700 "$run"
    mkfifo "$run"/{to,from,ready}
    SHMVIEW_SOCKET=$run/socket
}

# share MAKER USER DAEMON [NEXT]: the daemon is replaced by that of version NEXT after the creation.
share() {
    begin
    start "$3"
    "${program[$1]}" make < "$run/to" > "$run/from" &
    local pid=$!
    exec 8> "$run/to" 9< "$run/from"
    read -r _ <&9 || true
    if [ -n "${4:-}" ]; then
        stop TERM
        start "$4"
    fi
    "${program[$2]}" use || true
    echo u >&8
    exec 8>&- 9<&-
    wait "$pid" || { echo "$1 creates, $2 uses, daemons: ${*:3}" >&2; exit 1; }
    stop INT
}

# refuse PROGRAM DAEMON: the program must not use a segment whose layout it does not know.
refuse() {
    begin
    start "$2"
    "${program[$1]}" make < /dev/null > "$run/out" 2> "$run/error" || true
    grep -q "version $(layout "${tree[$2]}")," "$run/error" ||
        { echo "the $1 program with the $2 daemon:" >&2; cat "$run/out" "$run/error" >&2; exit 1; }
    stop INT
}

declare -A tree=([old]=$scratch/old [new]=$source)
if [ "$(layout "${tree[old]}")" != "$(layout "${tree[new]}")" ]; then
    refuse old new
    refuse new old
    echo "$tag and now have different layouts, and refuse each other's"
    exit 0
fi
for maker in old new; do
    for user in old new; do
        for version in old new; do
            share $maker $user $version
        done
        share $maker $user old new
        share $maker $user new old
    done
done
echo "$n times $tag and now shared a segment"
