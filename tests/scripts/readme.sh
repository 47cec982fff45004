#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The README's C example compiles as printed and runs.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2016 # the backquotes are Markdown's
sed -n '/^```c$/,/^```$/{/^```/d;p}' "$SHMVIEW_SOURCE_DIR/README.md" >"$work/demo.c"
[ -s "$work/demo.c" ] || { echo "README.md has no C example" >&2; exit 1; }

lib=$SHMVIEW_BUILD_DIR/client
read -ra flags <<<"-std=c11 -Wall -Wextra -Wconversion -Werror ${SHMVIEW_SANITIZE_FLAGS:-}"
flags+=(-I"$SHMVIEW_SOURCE_DIR/include")
"${CC:-cc}" "${flags[@]}" "$work/demo.c" -o "$work/demo" -L"$lib" -lshmview -Wl,-rpath,"$lib"

mkdir "$work/run"
export XDG_RUNTIME_DIR=$work/run SHMVIEW_DAEMON=$SHMVIEWD SHMVIEW_IDLE_EXIT=1
unset SHMVIEW_SOCKET
"$work/demo" || { echo "the README's example exits with $?" >&2; exit 1; }

# the session daemon that the example started leaves by itself
for _ in $(seq 100); do
    [ -e "$work/run/shmviewd/session/io.shmview" ] || exit 0
    sleep 0.1
done
echo "the session daemon did not leave" >&2
exit 1
