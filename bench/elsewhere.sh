#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# elsewhere.sh [--quick] [--build DIR]: measures on this machine what depends on its number of CPUs,
# and prints one table of Markdown for bench/README.md: readers, owners and waiters, 1, 2, 4, ... as
# many as there are CPUs; waits that poll and waits that sleep; deaths; and copies to a GPU.
#
# Without --build, builds the release preset of this clone, and for that installs the Debian packages
# that are missing if it runs as root. --build takes a build made on another machine instead. The
# progress and all complaints go to standard error.
set -euo pipefail

cd "$(dirname "$0")/.."
build=
quick=()
while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=(--quick) ;;
    --build)
        build=${2:?--build takes a directory}
        shift
        ;;
    --help)
        sed -n 's/^# \{0,1\}//; 3,10p' "$0"
        exit
        ;;
    *)
        echo "elsewhere.sh: unexpected argument '$1'" >&2
        exit 2
        ;;
    esac
    shift
done

if [ -z "$build" ]; then
    build=build/release
    make --silent deps build-release >&2 || {
        echo "elsewhere.sh: the release preset cannot be built; see above which package is missing" >&2
        exit 1
    }
fi
for program in daemon/shmviewd bench/bench; do
    [ -x "$build/$program" ] || {
        echo "elsewhere.sh: $build/$program is missing" >&2
        exit 1
    }
done
export SHMVIEW_DAEMON=$build/daemon/shmviewd SHMVIEW_CONFIG=/dev/null

# A line of /proc or of a command, without leading and trailing blanks.
model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
nodes=$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' 2>/dev/null | wc -l)
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
cat <<EOF
### $(nproc) CPUs: ${model:-$(uname -m)}

$(date -u +%Y-%m-%d), commit $commit, Linux $(uname -r), $(uname -m), $(nproc) CPUs in ${nodes/#0/1} NUMA node(s), $(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo),
$(${CC:-cc} --version 2>/dev/null | head -n 1 || echo "no compiler: built elsewhere"), load at the start $(cut -d ' ' -f 1 /proc/loadavg).

EOF
for rows in 'many*' '*notify*' 'handoff*' '[28] hammer*' 'kill*'; do
    "$build/bench/bench" --markdown --only "$rows" "${quick[@]}" | if [ "$rows" = 'many*' ]; then cat; else sed 1,2d; fi
done
if command -v nvidia-smi >/dev/null; then
    # The release preset builds the Python package into build/python.
    PYTHONPATH=$build/python:build/python python3 bench/gpu.py "${quick[@]}" || true
fi
