#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library's loops over rows of elements are vectorised: their machine code has instructions that
# process several elements at a time. The table below has the instructions that each loop needs, as
# a pattern for x86-64 and one for arm64.
set -euo pipefail
export LC_ALL=C

skip() {
    echo "$1"
    exit 77
}

library=${SHMVIEW_LIBRARY:-}
[ -e "$library" ] || skip "no library has been built"
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "sanitizers check every access"
command -v objdump > /dev/null || skip "no objdump"
case $(uname -m) in
x86_64) column=2 ;;
aarch64) column=3 ;;
*) skip "no idea what packed instructions look like here" ;;
esac

# function          x86-64                        arm64
table='
int32_to_float32    v?cvtdq2ps                    scvtf.*\.4s
int32_to_float64    v?cvtdq2pd                    scvtf.*\.2d
float32_to_float64  v?cvtps2pd                    fcvtl2?.*\.2d
float64_to_float32  v?cvtpd2ps                    fcvtn2?.*\.[24]s
float32_to_int32    v?cvttps2dq                   fcvtzs
decode_float16      v?mulps                       fmul.*\.4s
differ_float32      v?cmp[a-z]*ps                 fcmeq.*\.4s
sum_int32           v?padd[dq]                    [su]?addw2?.*\.2d
'

disassembly=$(objdump -d --no-show-raw-insn "$library")
# Prints the instructions of function $1. The compiler may have moved its loop to a clone.
instructions() {
    sed -nE "/^[0-9a-f]+ <$1(\.[a-z0-9.]+)?>:\$/,/^\$/p" <<< "$disassembly"
}

wrong=0
while read -r name patterns; do
    [ -n "$name" ] || continue
    pattern=$(awk -v n=$((column - 1)) '{ print $n }' <<< "$patterns")
    n=$(instructions "$name" | grep -cE "\b$pattern\b" || true)
    echo "$name: $n of $pattern"
    [ "$n" -gt 0 ] || wrong=1
done <<< "$table"
[ "$wrong" -eq 0 ]
