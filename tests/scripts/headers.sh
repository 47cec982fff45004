#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each public header, and all of them together, compiles alone as C11 and as C++17 without a warning
# and without our compile definitions. Headers for C++ are compiled as C++17 and C++20 only, without
# exceptions and run-time types. Types that an element cannot have do not compile.
set -euo pipefail
cd "${SHMVIEW_SOURCE_DIR:?}/include"

cc=${CC:-cc}
case "$(basename "$cc")" in
clang*) cxx=${CXX:-clang++} ;;
*) cxx=${CXX:-g++} ;;
esac
flags=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -fsyntax-only -I.)
# mpi.h includes the header of an MPI. Where there is none, it is left out.
wrapper=$(compgen -c mpicc | sort | head -n 1)
mpi=()
for word in $([ -z "$wrapper" ] || "$wrapper" -show); do
    [[ $word != -I* ]] || mpi+=(-isystem "${word#-I}")
done
flags+=("${mpi[@]}")

as_c() {
    "$cc" -x c -std=c11 "${flags[@]}" -
}
as_cxx() { # STANDARD
    "$cxx" -x c++ -std="$1" -fno-exceptions -fno-rtti "${flags[@]}" -
}
compile() {
    local includes
    includes=$(printf '#include <%s>\n' "$@")
    [[ $* == *.hpp* ]] || as_c <<< "$includes"
    as_cxx c++17 <<< "$includes"
    [[ $* != *.hpp* ]] || as_cxx c++20 <<< "$includes"
}

headers=(shmview/*.h)
if [ -z "$wrapper" ]; then
    headers=()
    for header in shmview/*.h; do [[ $header == shmview/mpi*.h ]] || headers+=("$header"); done
fi
all=("${headers[@]}" shmview/*.hpp)
for header in "${all[@]}"; do
    echo "$header"
    compile "$header"
done
compile "${headers[@]}" "${headers[@]}"
compile "${all[@]}" "${all[@]}"

# Compiles the line with a type that an element can have, and checks that it does not compile with a
# type that an element cannot have.
refuses() { # COMPILE... LINE, with TYPE in it
    local line=${*: -1}
    set -- "${@:1:$#-1}"
    "$@" <<< "${line//TYPE/float}"
    if "$@" <<< "${line//TYPE/void *}" 2> /dev/null; then
        echo "compiles: ${line//TYPE/void *}" >&2
        return 1
    fi
}
refuses as_c '#include <shmview/element.h>
int is(const struct shmview_view *v); int is(const struct shmview_view *v) { return SHMVIEW_IS(TYPE, v); }'
refuses as_cxx c++17 '#include <shmview/element.hpp>
static_assert(shmview::dtype_of<TYPE> > 0);'
refuses as_cxx c++17 '#include <shmview/element.hpp>
shmview::strided<TYPE, 2> array;'
refuses as_cxx c++17 '#include <shmview/element.hpp>
auto take(const shmview_view &v) { return shmview::contiguous<TYPE>(v); }'
echo "${#all[@]} headers compile alone"
