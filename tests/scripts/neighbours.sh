#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs and daemons of this version and of the previous release work together: the library and the
# daemon of the newest tag v* before this commit are built, and each pair of programs shares a segment
# under each daemon.
set -euo pipefail
source=${SHMVIEW_SOURCE_DIR:?}
build=${SHMVIEW_BUILD_DIR:?}
cc=${CC:-cc}
cmake=${CMAKE:-cmake}
if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || [ ! -e "${SHMVIEW_LIBRARY:-}" ]; then
    echo "not with a sanitizer"
    exit 77
fi
tag=${SHMVIEW_NEIGHBOUR:-$(git -C "$source" describe --tags --abbrev=0 --match 'v*' HEAD^ 2> /dev/null || true)}
if [ -z "$tag" ]; then
    echo "no release before this one"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/old" "$scratch/run"
git -C "$source" archive "$tag" | tar -x -C "$scratch/old"
"$cmake" -S "$scratch/old" -B "$scratch/built" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSHMVIEW_{TESTS,TOOLS,EXAMPLES,BENCH}=OFF \
    -DSHMVIEW_PYTHON= -DSHMVIEW_RUBY= -DSHMVIEW_SYSTEMD=OFF > "$scratch/log"
"$cmake" --build "$scratch/built" --parallel --target shmview shmviewd >> "$scratch/log"
"$cc" -std=c11 -I "$scratch/old/include" -o "$scratch/program-old" "$source/tests/abi/neighbour.c" \
    -L "$scratch/built/client" -Wl,-rpath,"$scratch/built/client" -lshmview
"$cc" -std=c11 -I "$source/include" -o "$scratch/program-new" "$source/tests/abi/neighbour.c" \
    -L "$build/client" -Wl,-rpath,"$build/client" -lshmview

export SHMVIEW_IDLE_EXIT=1 SHMVIEW_CONFIG=/dev/null SHMVIEW_DAEMON
n=0
for SHMVIEW_DAEMON in "$scratch/built/daemon/shmviewd" "$build/daemon/shmviewd"; do
    for maker in old new; do
        for user in old new; do
            export XDG_RUNTIME_DIR=$scratch/run/$((++n))
            mkdir -m 700 "$XDG_RUNTIME_DIR"
            mkfifo "$XDG_RUNTIME_DIR"/{to,from}
            "$scratch/program-$maker" make < "$XDG_RUNTIME_DIR/to" > "$XDG_RUNTIME_DIR/from" &
            pid=$!
            exec 8> "$XDG_RUNTIME_DIR/to" 9< "$XDG_RUNTIME_DIR/from"
            read -r _ <&9
            "$scratch/program-$user" use
            echo u >&8
            wait "$pid" || { echo "$maker creates, $user uses, $SHMVIEW_DAEMON" >&2; exit 1; }
            exec 8>&- 9<&-
        done
    done
done
for _ in $(seq 200); do
    compgen -G "$scratch/run/*/shmviewd/session/io.shmview" > /dev/null || break
    sleep 0.05
done
echo "$n pairs of $tag and now"
