#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares the library's ABI, the layouts in shared memory and the protocol with the baselines in
# tests/abi. An incompatible change must be announced: the ABI's by the minor version (the major one
# from 1.0 on), the layouts' by SHMVIEW_LAYOUT_VERSION, the protocol's by the minor version too.
# `abi.sh update` writes new baselines.
set -euo pipefail
source=${SHMVIEW_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${SHMVIEW_BUILD_DIR:-$source/build/dev}
library=${SHMVIEW_LIBRARY:-$build/client/libshmview.so}
baselines=$source/tests/abi

if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || [ "$(uname -m)" != x86_64 ] || [ ! -e "$library" ] ||
    ! command -v abidiff > /dev/null || ! "${CC:-cc}" --version | grep -q 'Free Software'; then
    echo "not with a sanitizer, and only where libabigail and gcc are"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

define() {
    sed -n "s/^#define $1 *\([0-9]*\)u\?$/\1/p" "$source/include/shmview/$2"
}
major=$(define SHMVIEW_VERSION_MAJOR shmview.h)
printf 'interface %s\nlayout %s\n' "$([ "$major" -gt 0 ] && echo "$major" || echo "0.$(define SHMVIEW_VERSION_MINOR shmview.h)")" \
    "$(define SHMVIEW_LAYOUT_VERSION layout.h)" > "$scratch/versions"
"${CC:-cc}" -std=c11 -D_GNU_SOURCE -g -I "$source/include" -shared -fPIC -o "$scratch/layout.so" "$baselines/layout.c"
write=(abidw --no-show-locs --no-comp-dir-path --no-corpus-path --drop-undefined-syms)
"${write[@]}" --drop-private-types --headers-dir "$source/include" --out-file "$scratch/libshmview.abi" "$library"
"${write[@]}" --out-file "$scratch/layout.abi" "$scratch/layout.so"

if [ "${1:-}" = update ]; then
    # the folder of the sources is another one on each machine
    sed -i "s|path='$source/|path='|" "$scratch"/*.abi
    cp "$scratch"/{versions,libshmview.abi,layout.abi} "$baselines"
    cp "$source/common/wire/io.shmview.varlink" "$baselines"
    exit 0
fi

# announced WHAT: whether its version differs from the baseline's
announced() {
    ! grep -qx "$(grep "^$1 " "$scratch/versions")" "$baselines/versions"
}
wrong=0
refuse() {
    wrong=1
    echo "$1: incompatible with tests/abi; raise $2, and run tests/scripts/abi.sh update" >&2
}
# Bit 3 of abidiff's exit status: incompatible; bit 2: some change; bits 0 and 1: it failed.
compare() {
    local status=0
    abidiff --no-added-syms "$baselines/$1" "$scratch/$1" > "$scratch/report" 2>&1 || status=$?
    [ $((status & 3)) -eq 0 ] || { cat "$scratch/report" >&2; exit 1; }
    [ "$status" -ne 0 ]
}
if compare libshmview.abi && ! announced interface; then
    cat "$scratch/report" >&2
    refuse libshmview "the minor version in shmview.h"
fi
if compare layout.abi && ! announced layout; then
    cat "$scratch/report" >&2
    refuse "shared memory" SHMVIEW_LAYOUT_VERSION
fi
if ! /usr/bin/python3 "$baselines/protocol.py" "$baselines/io.shmview.varlink" "$source/common/wire/io.shmview.varlink" &&
    ! announced interface; then
    refuse "the protocol" "the minor version in shmview.h"
fi
[ $wrong -eq 0 ]
