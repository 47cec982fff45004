#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Walking a view contiguously or by rows leaves the compiler a plain pointer: with
# -O3 the loops of the bench that do so are vectorised, and with -O2 where those on
# raw pointers are. So are a row whose type and index were checked, and C++'s row_span(). Loops for
# the processor of this machine, with -ffast-math, are vectorised where those on raw pointers are.
#
# A loop counts as vectorised if its function has instructions that add floats
# four or more at a time: addps (vaddps, vfmadd...ps) on x86-64, fadd or fmla on .4s, or on the .s of
# a z register, on arm64.
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
aarch64) packed='\b(fadd|fmla)\b.*(\.4s|z[0-9]+\.s)' ;;
*) skip "no idea what packed instructions look like here" ;;
esac

# Prints the number of packed additions in function $2 of file $1. The compiler may have moved its
# loop to a clone.
additions() {
    objdump -d --no-show-raw-insn "$1" |
        sed -nE "/^[0-9a-f]+ <$2(\.[a-z0-9.]+)?>:\$/,/^\$/p" | grep -cE "$packed" || true
}

wrong=0
expect() { # FILE FUNCTION, and the result that raw pointers have with -O2
    local n
    n=$(additions "$1" "$2")
    echo "$2: $n packed additions"
    [ "$n" -gt 0 ] || [ "${3:-1}" -eq 0 ] || wrong=1
}

for kernel in sum_contiguous axpy_contiguous sum_rows axpy_rows; do
    expect "$bench" "raw_${kernel}_O3"
    expect "$bench" "view_${kernel}_O3"
    for level in O2 native; do
        expect "$bench" "view_${kernel}_$level" "$(additions "$bench" "raw_${kernel}_$level")"
    done
done
expect "$bench" checked_sum_rows_O3
for level in O2 native; do
    expect "$bench" "checked_sum_rows_$level" "$(additions "$bench" "raw_sum_rows_$level")"
done

case "$(basename "${CC:-cc}")" in
clang*) cxx=${CXX:-clang++} ;;
*) cxx=${CXX:-g++} ;;
esac
if command -v "$cxx" > /dev/null; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$cxx" -x c++ -std=c++17 -O3 -fassociative-math -fno-signed-zeros -fno-trapping-math \
        -I"${SHMVIEW_SOURCE_DIR:?}/include" -c -o "$work/cpp.o" - << 'CPP'
#include <shmview/element.hpp>
extern "C" float cpp_sum_rows(shmview::strided<const float, 2> x)
{
    float sum = 0;
    for (std::ptrdiff_t i = 0; i < x.extent(0); i++)
        for (float e : x.row_span(i))
            sum += e;
    return sum;
}
extern "C" void cpp_axpy_contiguous(float a, shmview::span<const float> x, shmview::span<float> y)
{
    for (std::size_t i = 0; i < x.size(); i++)
        y[i] += a * x[i];
}
CPP
    expect "$work/cpp.o" cpp_sum_rows
    expect "$work/cpp.o" cpp_axpy_contiguous
fi
[ "$wrong" -eq 0 ]
