#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# libshmview.so exports what the public headers declare, all of it, nothing else,
# and each symbol under a SHMVIEW_ version node.
#
# What a header declares is read off the preprocessor's output, where comments
# and macros are gone: every name that begins with shmview_ and is followed by
# "(". That takes in the inline functions, which are exported too.
set -euo pipefail
export LC_ALL=C
if [ ! -e "${SHMVIEW_LIBRARY:=}" ]; then
    echo "no library has been built"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cd "${SHMVIEW_SOURCE_DIR:?}/include"
for header in shmview/*.h; do
    [[ $header != shmview/mpi*.h ]] || continue # of another library
    printf '#include <%s>\n' "$header"
done | "${CC:-cc}" -E -P -I. -x c - |
    grep -oE '\bshmview_[a-z0-9_]+ *\(' | tr -d ' (' | sort -u > "$scratch/declared"

# A line is like "T shmview_lock@@SHMVIEW_0.1"; the nodes themselves are absolute symbols.
nm -D --defined-only "$SHMVIEW_LIBRARY" | sed -E 's/^[0-9a-f]+ //' > "$scratch/all"
sed -E '/^A SHMVIEW_[0-9.]+(@@.*)?$/d; s/^. //' "$scratch/all" > "$scratch/versioned"
sed 's/@.*//' "$scratch/versioned" | sort -u > "$scratch/exported"

wrong=0
report() {
    if [ -s "$scratch/$1" ]; then
        echo "$2:" >&2
        sed 's/^/    /' "$scratch/$1" >&2
        wrong=1
    fi
}
comm -23 "$scratch/declared" "$scratch/exported" > "$scratch/missing"
comm -13 "$scratch/declared" "$scratch/exported" > "$scratch/extra"
grep -vE '@@?SHMVIEW_[0-9.]+$' "$scratch/versioned" > "$scratch/bare" || true
report missing "declared in a public header, not exported"
report extra "exported, not declared in a public header"
report bare "exported outside a version node"

# A program pays for relocations when it starts. Where they can be packed, those that remain are the
# functions of other libraries.
readelf -rW "$SHMVIEW_LIBRARY" > "$scratch/relocations"
own=$(grep -cE 'JUMP_SLO.* shmview_' "$scratch/relocations" || true)
relative=$(grep -c '_RELATIVE' "$scratch/relocations" || true)
if [ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] && [ "$own" -gt 0 ]; then
    echo "$own calls of the library's own functions go through the linkage table" >&2
    wrong=1
fi
if [[ $(readelf -d "$SHMVIEW_LIBRARY") == *"(RELR)"* ]] && [ "$relative" -gt 0 ]; then
    echo "$relative relative relocations are not packed" >&2
    wrong=1
fi

echo "$(wc -l < "$scratch/declared") declared, $(wc -l < "$scratch/exported") exported"
[ -s "$scratch/declared" ] && [ "$wrong" -eq 0 ]
