#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every example of docs/VIEWS.md compiles as printed, runs, and prints what the page shows.
#
# A block of C is the body of a function, or stands outside of functions if it begins with
# "static". A block of text that follows it has its output; without one it prints
# nothing. Blocks of C++ make a second program in the same way.
set -euo pipefail

page=${SHMVIEW_SOURCE_DIR:?}/docs/VIEWS.md
lib=${SHMVIEW_BUILD_DIR:?}/client
if [ ! -e "${SHMVIEW_LIBRARY:=}" ] || [ ! -x "${SHMVIEWD:=}" ]; then
    echo "the library or the daemon is not built"
    exit 77
fi
if [ "$(printf '\1\0' | od -An -tu2 | tr -d ' ')" != 1 ]; then
    echo "the page shows bytes of a little-endian machine"
    exit 77
fi
# Not in $TMPDIR: the path of a socket must be short.
work=$(mktemp -d /tmp/shmview-test.XXXXXX)
end() {
    if [ -n "${daemon:-}" ]; then
        kill -INT "$daemon" 2> /dev/null || true
        wait "$daemon" || true
    fi
    rm -rf "$work"
}
trap end EXIT

# extract LANGUAGE SOURCE EXPECTED: writes the program, and what it must print.
extract() {
    awk -v language="$1" -v source="$2" -v expected="$3" '
        function put(line) { print line > source }
        /^```/ && !inside {
            kind = substr($0, 4)
            inside = 1
            first = 1
            line = NR
            next
        }
        /^```$/ {
            if (kind == language) {
                if (!outside) {
                    put("}")
                    printf "== %d\n", n > expected
                }
                mine = !outside
            } else
                mine = 0
            inside = 0
            next
        }
        inside && kind == language {
            if (first) {
                outside = /^static /
                if (!outside)
                    put("static void example_" ++n "(struct shmview_connection *conn, " \
                        "struct shmview_segment *seg)\n{\n(void)conn, (void)seg;")
                put("#line " line + 1 " \"VIEWS.md\"")
                first = 0
            }
            put($0)
        }
        inside && kind == "text" && mine { print > expected }
        END {
            put("typedef void example(struct shmview_connection *, struct shmview_segment *);")
            put("static example *const examples[] = {")
            for (i = 1; i <= n; i++)
                put("example_" i ",")
            put("};")
            if (!n)
                exit 1
        }' "$page" || { echo "no example in $1" >&2; exit 1; }
}

cat > "$work/before" << 'EOF'
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <shmview/shmview.h>
static void must(int result)
{
    if (result >= 0)
        return;
    printf("failed: %s\n", shmview_error_text());
    exit(1);
}
EOF
cat > "$work/after" << 'EOF'
int main(void)
{
    struct shmview_connection *conn;
    must(shmview_connect(NULL, 0, &conn));
    for (unsigned i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct shmview_segment *seg;
        must(shmview_create(conn, "example", 4096, NULL, &seg));
        printf("== %u\n", i + 1);
        examples[i](conn, seg);
        must(shmview_detach(seg));
    }
    must(shmview_disconnect(conn));
    return 0;
}
EOF

export XDG_RUNTIME_DIR=$work SHMVIEW_SOCKET=$work/io.shmview
"$SHMVIEWD" --socket "$SHMVIEW_SOCKET" > "$work/log" 2>&1 &
daemon=$!
for ((i = 0; i < 200; i++)); do
    [ ! -S "$SHMVIEW_SOCKET" ] || break
    sleep 0.05
done

# check LANGUAGE STANDARD COMPILER: compiles and runs the examples, and compares their output.
check() {
    local language=$1 standard=$2 compiler=$3
    extract "$language" "$work/body" "$work/expected"
    [ "$language" = c ] || sed -i 's/shmview.h>/stream.hpp>/' "$work/before"
    cat "$work/before" "$work/body" "$work/after" > "$work/views.$language"
    read -ra flags <<< "-std=$standard -g -Wall -Wextra -Wconversion -Werror $SHMVIEW_SANITIZE_FLAGS"
    "$compiler" "${flags[@]}" -I"$SHMVIEW_SOURCE_DIR/include" -o "$work/views" \
        "$work/views.$language" -L"$lib" -lshmview -lm -Wl,-rpath,"$lib"
    "$work/views" > "$work/printed" || { tail -3 "$work/printed" >&2; exit 1; }
    diff "$work/expected" "$work/printed" > "$work/diff" || {
        echo "what the page says (<) is not what its examples print (>):" >&2
        cat "$work/diff" >&2
        exit 1
    }
    echo "$(grep -c '^==' "$work/expected") examples in $language"
}
SHMVIEW_SANITIZE_FLAGS=${SHMVIEW_SANITIZE_FLAGS:-}
check c c11 "${CC:-cc}"
case "$(basename "${CC:-cc}")" in
clang*) cxx=${CXX:-clang++} ;;
*) cxx=${CXX:-g++} ;;
esac
if command -v "$cxx" > /dev/null; then
    check cpp c++17 "$cxx"
fi
