#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each function that libshmview exports has a manual page, which man formats without a warning, and is in the synopsis
# of libshmview(3).
set -euo pipefail

skip() {
    echo "$1"
    exit 77
}

library=${SHMVIEW_LIBRARY:-}
[ -e "$library" ] || skip "no library has been built"
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "the dev build shows it"
pages=$SHMVIEW_BUILD_DIR/man3
[ -d "$pages" ] || skip "no Python was there to write the pages"

names=$(nm -D --defined-only "$library" | sed -n 's/.* T \(shmview_[^@]*\)@.*/\1/p' | sort -u)
wrong=0
while read -r name; do
    case $name in *_inline) continue ;; esac # described with the call of the same name
    if [ ! -s "$pages/$name.3" ]; then
        echo "$name has no manual page: does a comment in its header stand directly above it?"
        wrong=1
    fi
done <<< "$names"

# The macros and inline functions that access elements are in element.h.
synopsis=$(sed -n '/^\.SH SYNOPSIS/,/^\.EE/p' "${SHMVIEW_SOURCE_DIR:?}/man/libshmview.3")
while read -r name; do
    case $name in shmview_unlock_scope) continue ;; esac # for the macros SHMVIEW_LOCKED only
    if ! grep -qw "$name" <<< "$synopsis" && ! grep -qw "$name" "$SHMVIEW_SOURCE_DIR/include/shmview/element.h"; then
        echo "$name is not in the synopsis of libshmview(3)"
        wrong=1
    fi
done <<< "$names"
[ "$wrong" -eq 0 ]

# a page that is a link leads to one that is none
for page in "$pages"/*.3; do
    target=$(sed -n '1s/^\.so man3\///p' "$page")
    [ -z "$target" ] || grep -q '^\.SH NAME' "$pages/$target"
done

for text in "shmview_attach - attaches the segment" "shmview_lock_shared" "-SHMVIEW_ERR_NOT_FOUND"; do
    grep -qrF -- "${text//-/\\-}" "$pages" || { echo "no page has '$text'"; exit 1; }
done

command -v groff > /dev/null || skip "no groff"
warnings=$(for page in "$pages"/*.3; do
    grep -q '^\.so ' "$page" || groff -man -Tutf8 -ww "$page" 2>&1 > /dev/null
done)
[ -z "$warnings" ] || { echo "$warnings"; exit 1; }
