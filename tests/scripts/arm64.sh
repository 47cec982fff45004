#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library compiles for arm64 without a warning. The orders that the lock relies on are
# instructions there: seq_cst read-modify-writes and load-acquires.
set -euo pipefail
cc=aarch64-linux-gnu-gcc
command -v "$cc" >/dev/null || { echo "no $cc"; exit 77; }
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || { echo "once is enough"; exit 77; }

cd "${SHMVIEW_SOURCE_DIR:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c11 -D_GNU_SOURCE -O2 -fPIC -Wall -Wextra -Wconversion -Werror -Iinclude -I.
    '-DSHMVIEW_VERSION="0"' '-DSHMVIEW_DAEMON_PATH="/"')

# jansson's headers do not depend on the machine. All others must come from the cross compiler.
mkdir "$work/jansson"
cp "$(pkg-config --variable=includedir jansson)"/jansson*.h "$work/jansson"
find /usr/include -name jansson_config.h -exec cp {} "$work/jansson" \;
mapfile -t sources < <(find client common -name '*.c')
for source in "${sources[@]}"; do
    "$cc" "${flags[@]}" -I"$work/jansson" -c -o "$work/$(basename "$source").o" "$source"
done

body() { # prints the instructions of function $2 of source $1
    "$cc" "${flags[@]}" -I"$work/jansson" -march=armv8.1-a -S -o - "$1" | sed -n "/^$2:/,/\\.size\\t$2/p"
}
expect() { # SOURCE FUNCTION INSTRUCTION WHAT
    body "$1" "$2" | grep -qE "\\b$3\\b" || { echo "$2: no $3: $4" >&2; exit 1; }
}
expect client/lock/exclusive.c shmview_lock casal "taking the word"
expect client/lock/exclusive.c shmview_lock ldar "reader_groups after the word"
expect client/lock/exclusive.c shmview_unlock casal "giving the word back"
expect client/lock/shared.c shmview_lock_shared ldaddal "counting oneself"
expect client/lock/shared.c shmview_lock_shared ldar "the word after the count"
expect client/lock/word.c drain_readers ldar "the counts after the word"
