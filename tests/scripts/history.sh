#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench/history.py joins what the tables print, keeps the releases in the order of their numbers, and
# refuses what is no release and no table.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
history=("$SHMVIEW_SOURCE_DIR/bench/history.py" --folder "$work/history")

fail() {
    echo "$1" >&2
    exit 1
}
refused() {
    local text=$1
    shift
    "${history[@]}" "$@" > "$work/out" 2>&1 && fail "accepted: $*"
    grep -q "$text" "$work/out" || fail "$* says: $(cat "$work/out")"
}
table() {
    printf '{"rows": [{"what": "%s", "ours": 1, "unit": "ns", "reference_name": "r", "reference": 2,
        "ratio": %s, "ratio_min": 0.1, "ratio_max": 9, "target_of": "ratio", "bound": "most",
        "target": 1, "ok": true}, {"what": "alone", "ours": 1, "unit": "ns"}]}' "$1" "$2"
}

table lock 0.5 > "$work/c.json"
table item 0.25 > "$work/python.json"
refused 'no release' plot
"${history[@]}" record 0.9.0 "$work/c.json" "$work/python.json"
table lock 0.4 > "$work/c.json"
"${history[@]}" record 0.10.0 "$work/c.json"
refused 'a version is' record today "$work/c.json"
echo no table > "$work/broken.json"
refused 'broken.json' record 0.11.0 "$work/broken.json"

# A machine without torch has no rows with it, and a table nevertheless.
mkdir "$work/none"
echo 'raise ImportError' > "$work/none/torch.py"
PYTHONPATH=$work/none /usr/bin/python3 -B "$SHMVIEW_SOURCE_DIR/bench/python_torch.py" --json \
    > "$work/torch.json" 2> "$work/out"
grep -q 'no torch' "$work/out" || fail "no note of a missing torch"
"${history[@]}" record 0.10.1 "$work/torch.json"

/usr/bin/python3 - "$work" "$SHMVIEW_SOURCE_DIR/bench" << 'EOF'
import json, pathlib, sys
work = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[2])
import history
release = json.loads((work / "history/0.9.0.json").read_text())
assert [row["what"] for row in release["rows"]] == ["lock", "alone", "item", "alone"], release
assert release["version"] == "0.9.0" and release["date"] and release["machine"]["kernel"], release
versions, found = history.series(work / "history")
assert versions == ["0.9.0", "0.10.0", "0.10.1"], versions
assert found == {"lock / r": {"ratios": [0.5, 0.4, None], "target": 1},
                 "item / r": {"ratios": [0.25, None, None], "target": 1}}, found
EOF

/usr/bin/python3 -c 'import matplotlib' 2> /dev/null || exit 0
"${history[@]}" plot
grep -q '<svg' "$work/history/ratios.svg" || fail "the plot is no SVG"
