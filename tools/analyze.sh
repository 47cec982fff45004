#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# analyze.sh: gcc's -fanalyzer and clang-tidy (.clang-tidy) over the C sources of library, daemon, libshmview-mpi,
# shmviewctl, its page and both bindings.
# tools/analyze.reviewed lists the findings that were reviewed and are wrong, each with its reason: the
# file, the check, and their number. Any other finding fails, and so does one of the list that is found no longer.
# The list is that of gcc 12 and clang-tidy 14; other releases find other things, which are printed.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/deps.sh analyze
build=build/analyze
# With a base folder, ccache makes the paths of warnings relative, and the list has them from the tree's root.
export CCACHE_BASEDIR=
mkdir -p "$build"
cmake -S . -B "$build" -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSHMVIEW_TESTS=OFF -DSHMVIEW_EXAMPLES=OFF \
    -DSHMVIEW_BENCH=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DCMAKE_C_FLAGS_RELWITHDEBINFO='-O1 -g -fanalyzer' > /dev/null

# Each compiler's lines "PATH:LINE:COLUMN: warning: TEXT [CHECK]" as "PATH CHECK".
findings() {
    sed -n "s|^$PWD/\([^:]*\):[0-9:]* warning: .*\[\(.*\)\]\$|\1 \2|p" "$1"
}
echo "== gcc $(gcc -dumpfullversion) -fanalyzer"
cmake --build "$build" -j "$(nproc)" --clean-first -- -s > "$build/gcc.log" 2>&1
# clang does not know -fanalyzer.
mkdir -p "$build/tidy"
sed 's/ -fanalyzer//' "$build/compile_commands.json" > "$build/tidy/compile_commands.json"
echo "== $(clang-tidy --version | grep -o 'LLVM version.*')"
# One file a process: clang-tidy 14 takes functions of one file for those of another that it has read before.
git ls-files 'common/*.c' 'client/*.c' 'daemon/*.c' 'cli/*.c' 'web/*.c' 'mpi/*.c' 'bindings/*.c' \
    ':!mpi/tests' ':!mpi/bench' ':!mpi/examples' ':!bindings/ruby/test' |
    xargs -P "$(nproc)" -n 1 clang-tidy -p "$build/tidy" --quiet > "$build/tidy.log" 2> "$build/tidy.err" || { cat "$build/tidy.err" >&2; exit 1; }

{ findings "$build/gcc.log"; findings "$build/tidy.log" | sort -u; } | sort | uniq -c |
    awk '{ print $2, $3, $1 }' > "$build/found"
grep -v '^#' tools/analyze.reviewed | cut -d ' ' -f 1-3 | sort > "$build/reviewed"
if ! diff --unchanged-line-format= --old-line-format='no longer found: %L' --new-line-format='found: %L' \
    "$build/reviewed" "$build/found"; then
    echo "analyze.sh: $build/gcc.log and $build/tidy.log have the details" >&2
    exit 1
fi
echo "== nothing found but the $(wc -l < "$build/reviewed") places that tools/analyze.reviewed explains"
