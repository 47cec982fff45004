#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Walking a view contiguously or by rows leaves the compiler a plain pointer: the
# loops of the bench that do so are vectorised, as those on raw pointers are.
#
# A loop counts as vectorised if its function has instructions that add floats
# four or more at a time: addps (vaddps) on x86-64, fadd or fmla on .4s on arm64.
set -euo pipefail
export LC_ALL=C

skip() {
    echo "$1"
    exit 77
}

bench=${SHMVIEW_BUILD_DIR:?}/bench/bench
[ -x "$bench" ] || skip "no bench has been built"
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "sanitizers check every access"
command -v objdump > /dev/null || skip "no objdump"
case $(uname -m) in
x86_64) packed='\b(v?addps|vfmadd[0-9]+ps)\b' ;;
aarch64) packed='\b(fadd|fmla)\b.*\.4s' ;;
*) skip "no idea what packed instructions look like here" ;;
esac

# Instructions of function $1. The compiler may have moved its loop to a clone.
instructions() {
    objdump -d --no-show-raw-insn "$bench" |
        sed -nE "/^[0-9a-f]+ <$1(\.[a-z0-9.]+)?>:\$/,/^\$/p"
}

wrong=0
for kernel in sum_contiguous axpy_contiguous sum_rows axpy_rows; do
    for side in raw view; do
        n=$(instructions "${side}_$kernel" | grep -cE "$packed" || true)
        echo "${side}_$kernel: $n packed additions"
        [ "$n" -gt 0 ] || wrong=1
    done
done
[ "$wrong" -eq 0 ]
