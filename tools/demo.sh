#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# demo.sh [BUILD_DIR]: runs the examples in a new runtime directory, and shows that no process and no
# object is left. Runs those in Python too if Python can load the package. The result of the second
# example stays in BUILD_DIR/demo.
set -euo pipefail

source=$(dirname "$(dirname "$(realpath "$0")")")
build=$(realpath "${1:-$source/build/release}")
daemon=$build/daemon/shmviewd
output=$build/demo/sample-lifted.wav
for program in "$daemon" "$build/examples/"{array,phases,listeners,pipeline}; do
    [ -x "$program" ] || { echo "demo.sh: $program is not built; try 'make'" >&2; exit 1; }
done

# Not in $TMPDIR, because the path of a socket must be short.
runtime=$(mktemp -d /tmp/shmview-demo.XXXXXX)
export XDG_RUNTIME_DIR=$runtime SHMVIEW_DAEMON=$daemon SHMVIEW_IDLE_EXIT=1
unset SHMVIEW_SOCKET

# Prints the process ids of the daemon of this demo, whose command line names our directory.
daemon_pids() {
    local files=(/proc/[0-9]*/cmdline)
    grep -lasF --file=- "${files[@]}" <<< "$runtime" | cut -d / -f 3 || true
}

# Prints the name of the daemon's directory in /dev/shm: the daemon holds one object in it open.
instance_of() {
    find "/proc/$1/fd" -lname '/dev/shm/shmview.*/+daemon' -printf '%l\n' 2> /dev/null |
        sed 's|^/dev/shm/||; s|/+daemon$||; q'
}

end() {
    local pid
    for pid in $(daemon_pids); do
        kill -INT "$pid" 2> /dev/null || true
    done
    rm -rf "$runtime"
}
trap end EXIT

title() {
    printf '\n== %s\n\n' "$1"
}

if [ -S /run/shmviewd/io.shmview ]; then
    title "This machine has a daemon of its own; the demo leaves it alone and starts another"
    export SHMVIEW_SOCKET=$runtime/io.shmview
    "$daemon" --session --socket "$SHMVIEW_SOCKET"
fi

title "Two processes, ten bytes, three views (examples/array.c)"
[ -n "$(daemon_pids)" ] || printf '%s\n\n' "No daemon runs. The library will start one."
"$build/examples/array"
pid=$(daemon_pids)
instance=$([ -z "$pid" ] || instance_of "$pid")
printf '\n%s\n' "The daemon: ${pid:+process }${pid:-gone already}"

title "One buffer, four processes, floats and then integers (examples/phases)"
mkdir -p "$build/demo"
"$build/examples/phases" "$source/examples/data/sample.wav" "$output"

title "A worker is killed while it holds the lock; the others repair the result and do its work"
"$build/examples/phases" "$source/examples/data/sample.wav" "$runtime/repaired.wav" --kill quantise
cmp "$output" "$runtime/repaired.wav"
printf '\n%s\n' "The result is the same, byte by byte."

title "One process streams a sound to three, one of which is killed (examples/listeners)"
"$build/examples/listeners" "$source/examples/data/sample.wav" "$runtime/recorded.wav"
cmp "$source/examples/data/sample.wav" "$runtime/recorded.wav"
printf '\n%s\n' "The recorded sound is the same, byte by byte."

title "Images go through three stages without a copy (examples/pipeline)"
mkdir -p "$build/demo/film"
"$build/examples/pipeline" "$build/demo/film"
printf '\n%s\n' "The images are in $build/demo/film"

title "From Python: casts, one import instead of another, numpy's workers, a C library (bindings/python/examples)"
export PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1
if /usr/bin/python3 -c "import numpy, shmview" 2> /dev/null; then
    for example in casts array phases from_c; do
        printf '%s\n' "$example.py"
        /usr/bin/python3 "$source/bindings/python/examples/$example.py" | sed 's/^/    /'
    done
else
    echo "They need the Python package, which was not built, or numpy, which is not there."
fi

if [ -e "$build/ruby/shmview/core.so" ]; then
    title "In Ruby: ten bytes seen three ways, and one buffer in two phases (bindings/ruby/examples)"
    for example in array phases; do
        RUBYLIB=$build/ruby ruby "$source/bindings/ruby/examples/$example.rb"
    done
fi

title "What is left"
for ((i = 0; i < 100; i++)); do
    [ -n "$(daemon_pids)" ] || break
    sleep 0.1
done
if [ -n "$(daemon_pids)" ]; then
    echo "demo.sh: the daemon did not leave" >&2
    exit 1
fi
echo "The daemon has left by itself."
if [ -n "$instance" ]; then
    left=$(find /dev/shm -name "$instance*")
    echo "Its shared memory: ${left:-none}"
    [ -z "$left" ]
fi
echo "The result is $output"
