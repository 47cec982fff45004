#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each public header, and all of them together, compiles alone as C11 and as
# C++17 without a warning and without our compile definitions.
set -euo pipefail
cd "${SHMVIEW_SOURCE_DIR:?}/include"

cc=${CC:-cc}
case "$(basename "$cc")" in
clang*) cxx=${CXX:-clang++} ;;
*) cxx=${CXX:-g++} ;;
esac
flags=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -fsyntax-only -I.)

headers=(shmview/*.h)
compile() {
    printf '#include <%s>\n' "$@" | "$cc" -x c -std=c11 "${flags[@]}" -
    printf '#include <%s>\n' "$@" | "$cxx" -x c++ -std=c++17 "${flags[@]}" -
}
for header in "${headers[@]}"; do
    echo "$header"
    compile "$header"
done
compile "${headers[@]}" "${headers[@]}"
echo "${#headers[@]} headers compile alone as C11 and C++17"
