#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# coverage.sh: builds with counters, runs the tests, and prints a table of Markdown:
# for each folder the lines and branches that they reached. A second table has the files with the most
# branches that they did not. Processes that a test kills lose their counts, so the figures are a
# lower bound. Fails if the tests reach less than 90 % of the branches of daemon, client or common. Needs gcovr, for the
# Python files coverage.py, and for the Ruby files the Coverage of Ruby itself.
set -euo pipefail
cd "$(dirname "$0")/.."
build=build/coverage
counters=$PWD/$build/counters
jobs=$(nproc)

if ! command -v gcovr > /dev/null || ! /usr/bin/python3 -c 'import coverage' 2> /dev/null; then
    echo "coverage.sh: needs gcovr and python3-coverage" >&2
    exit 1
fi
cmake --preset coverage > /dev/null
cmake --build --preset coverage -j "$jobs" -- -s >&2
find $build -name '*.gcda' -delete
rm -rf "$counters"
mkdir -p "$counters"/{python,ruby}
# Some tests run as other users.
chmod a+rwxt "$counters"/{python,ruby}
ln -sf "$PWD/tests/coverage/sitecustomize.py" $build/python/
cat > "$counters/coveragerc" << RC
[run]
branch = true
parallel = true
data_file = $counters/python/data
source = $PWD/bindings/python/shmview
RC
# What looks into the compiled library finds counters there; the rest of the list runs none of our code.
tests() {
    COVERAGE_PROCESS_START=$counters/coveragerc SHMVIEW_RUBY_COUNTERS=$counters/ruby RUBYOPT=-r$PWD/tests/coverage/count.rb \
        ctest --preset coverage -j $((2 * jobs)) -E "script_($1)" "${@:2}" >> $build/tests.log 2>&1
}
skipped='arm64|deb|elsewhere|headers|install|kernels|model|neighbours|packages|vectorised|wheel'
rm -f $build/tests.log
if ! tests "$skipped"; then
    # Programs of other users could not write counters into files of this user, and printed errors. Tests that
    # forbid system calls fail nevertheless.
    find $build -type d -exec chmod a+rwx {} + -o -name '*.gcda' -exec chmod a+rw {} +
    tests "$skipped" --rerun-failed || true
fi
grep -h 'tests passed\|(Failed)\|(Timeout)' $build/tests.log >&2 || true
# Without those objects that are compiled twice from one source.
gcovr --root . --object-directory $build --filter '(daemon|client|common|cli|web|mpi|bindings)/' \
    --exclude 'mpi/(bench|examples|tests)/' --exclude-directories '.*kernels_avx2.*' --exclude-unreachable-branches \
    --exclude-throw-branches --gcov-ignore-parse-errors --json-summary $build/summary.json \
    $build/{daemon,client,common,cli,web,mpi,bindings} \
    > $build/gcovr.log 2>&1 || { tail $build/gcovr.log >&2; exit 1; }
/usr/bin/python3 -m coverage combine --rcfile="$counters/coveragerc" --quiet
/usr/bin/python3 -m coverage json --rcfile="$counters/coveragerc" --quiet -o $build/python.json
ruby tests/coverage/count.rb "$counters/ruby" > $build/ruby.json
python3 - $build/{summary,ruby,python}.json << 'PYTHON'
import json, sys
summary, ruby, python = (json.load(open(name))["files"] for name in sys.argv[1:])
keys = {"covered_lines": "line_covered", "num_statements": "line_total", "covered_branches": "branch_covered",
        "num_branches": "branch_total"}
files = summary + ruby + [dict({keys[key]: n for key, n in file["summary"].items() if key in keys}, filename=name)
                          for name, file in python.items()]
rooms, kinds = {}, {".py": "Python", ".rb": "Ruby"}
for file in files:
    parts = file["filename"].split("/")
    top = "/".join(parts[:2]) if parts[0] == "bindings" else parts[0]
    kind = ", " + kinds.get(file["filename"][-3:], "C") if parts[0] == "bindings" else ""
    for room in {top + kind, "/".join(parts[:2]) + kind}:
        sums = rooms.setdefault(room, [0, 0, 0, 0])
        for i, key in enumerate(("line_covered", "line_total", "branch_covered", "branch_total")):
            sums[i] += file[key]
print("| folder | lines | % | branches | % |\n|---|---|---|---|---|")
for room, (lines, all_lines, branches, all_branches) in sorted(rooms.items()):
    print("| %s | %d | %.1f | %d | %.1f |" % (room if "/" in room and not room.startswith("bindings") else f"**{room}**",
          all_lines, 100 * lines / max(all_lines, 1), all_branches, 100 * branches / max(all_branches, 1)))
print("\n| file | branches not reached | of |\n|---|---|---|")
for file in sorted(files, key=lambda f: f["branch_covered"] - f["branch_total"])[:25]:
    print("| %s | %d | %d |" % (file["filename"], file["branch_total"] - file["branch_covered"], file["branch_total"]))
few = [room for room in ("daemon", "client", "common") if rooms[room][2] < 0.9 * rooms[room][3]]
if few:
    sys.exit("coverage.sh: less than 90 % of the branches of " + ", ".join(few))
PYTHON
