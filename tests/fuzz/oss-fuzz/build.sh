#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the targets of tests/fuzz as OSS-Fuzz calls it: $CC, $CFLAGS, $CXX, $CXXFLAGS and $LIB_FUZZING_ENGINE name
# the tools, $OUT takes the programs.
set -euo pipefail
work=${WORK:-$(mktemp -d)}
# The machine that runs the programs has none of these libraries, so they go beside them.
# shellcheck disable=SC2016
cmake -S . -B "$work/shmview" -DSHMVIEW_FUZZ=ON -DSHMVIEW_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DSHMVIEW_CCACHE=OFF \
    -DSHMVIEW_{TOOLS,EXAMPLES,BENCH,SYSTEMD}=OFF -DSHMVIEW_PYTHON= -DSHMVIEW_RUBY= \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH='$ORIGIN/lib'
rm -rf "${OUT:?}/lib"
mkdir -p "$OUT/lib"
for source in tests/fuzz/fuzz_*.c; do
    target=$(basename "$source" .c)
    cmake --build "$work/shmview" -j "$(nproc)" --target "$target"
    cp "$work/shmview/tests/fuzz/$target" "$OUT"
    (cd "tests/fuzz/corpus/$target" && zip -q -r "$OUT/${target}_seed_corpus.zip" .)
done
find "$OUT" -maxdepth 1 -name 'fuzz_*' ! -name '*.*' -exec ldd {} + |
    awk '$1 ~ /^lib(uv|jansson|lmdb)/ { print $3 }' | sort -u | xargs cp -L -t "$OUT/lib"
