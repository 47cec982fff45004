#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All examples do what their text describes, refuse what they should, and leave nothing.
set -euo pipefail
# shellcheck source=tests/scripts/parts/await.sh
. "$(dirname "$0")/parts/await.sh"

examples=${SHMVIEW_BUILD_DIR:?}/examples
sample=${SHMVIEW_SOURCE_DIR:?}/examples/data/sample.wav
daemon=${SHMVIEWD:-}
if [ ! -x "$daemon" ] || [ ! -x "$examples/array" ] || [ ! -x "$examples/phases" ]; then
    echo "the daemon or the examples are not built"
    exit 77
fi

# Not in $TMPDIR: the path of a socket must be short.
runtime=$(mktemp -d /tmp/shmview-test.XXXXXX)
export XDG_RUNTIME_DIR=$runtime SHMVIEW_DAEMON=$daemon SHMVIEW_IDLE_EXIT=600
unset SHMVIEW_SOCKET

# Finds daemons by our directory in their command lines.
daemon_pids() {
    local files=(/proc/[0-9]*/cmdline)
    grep -lasF --file=- "${files[@]}" <<< "$runtime" | cut -d / -f 3 || true
}

end() {
    local pid
    for pid in $(daemon_pids); do
        kill -INT "$pid" 2> /dev/null || true
    done
    rm -rf "$runtime"
}
trap end EXIT

fail() {
    echo "FAILED: $1" >&2
    [ $# -lt 2 ] || sed 's/^/    /' "$2" >&2
    exit 1
}

# Checks that a line of FILE contains TEXT: has_text FILE TEXT
has_text() {
    grep -qF -- "$2" "$1" || fail "no '$2' in:" "$1"
}

matches() {
    grep -q -- "$2" "$1" || fail "nothing like '$2' in:" "$1"
}

# refuses TEXT COMMAND...: checks that the command fails in an orderly way, with the text in its
# message.
refuses() {
    local text=$1 status=0
    shift
    "$@" > "$runtime/out" 2>&1 || status=$?
    [ "$status" -eq 1 ] || [ "$status" -eq 2 ] || fail "'$*' ended with $status:" "$runtime/out"
    has_text "$runtime/out" "$text"
    [ -z "$(find "$runtime" -name 'no.wav*')" ] || fail "'$*' left a file"
}

segments() {
    find "/dev/shm/shmview.$instance" -type f ! -name '+daemon' ! -path '*/+presence/*'
}
no_segments() {
    [ -z "$(segments)" ]
}
no_daemon() {
    [ -z "$(daemon_pids)" ]
}

cd "$runtime"
if [ -S /run/shmviewd/io.shmview ]; then
    # Programs would find such a daemon before they start a session daemon, so use one of our own.
    export SHMVIEW_SOCKET=$runtime/io.shmview
    "$daemon" --session --socket "$SHMVIEW_SOCKET"
fi

"$examples/array" > array.out 2>&1 || fail "array:" array.out
has_text array.out "as int16: 5 elements, sum 0"
has_text array.out "as int32: 2 elements, sum 262146"
has_text array.out "as int8:  10 elements: 0 0 1 0 2 0 3 0 4 0"
has_text array.out "refused: "
pid=$(daemon_pids)
[[ $pid =~ ^[0-9]+$ ]] || fail "one daemon of this test should run, not '$pid'"
instance=$(find "/proc/$pid/fd" -lname '/dev/shm/shmview.*/+daemon' -printf '%l\n')
instance=${instance#/dev/shm/shmview.}
instance=${instance%/+daemon}
[ -n "$instance" ] || fail "the daemon has no instance"
await no_segments || fail "array left $(segments)"

for name in elements locks watch; do
    "$examples/$name" > "$name.out" 2>&1 || fail "$name:" "$name.out"
done
has_text elements.out "different at [1, 1, 1]"
has_text elements.out "released: the numbers"
has_text locks.out "died inside; the sum was 90"
has_text locks.out "the sum is 100 again"
has_text watch.out "the number is 3"
has_text watch.out "event: detached"
has_text watch.out "mode 0640, 4 bytes"
await no_segments || fail "locks or watch left $(segments)"

# prints EXAMPLE: checks that the output of the example is that of stdin.
prints() {
    diff - "$1.out" > "$1.diff" || fail "$1 prints other lines (>) than these (<):" "$1.diff"
}

# Three listeners of different speeds, one of which is killed: nobody waits for the others.
"$examples/listeners" "$sample" recorded.wav > listeners.out 2>&1 || fail "listeners:" listeners.out
prints listeners << 'EXPECTED'
block   recorder    meter                     display
    1   1           1, missed 0, peak 60 %    1, missed 0, peak 60 %
    2   2             holds 1                   holds 1
    3   3             holds 1                   holds 1
    4   4           4, missed 2, peak 60 %      holds 1
    5   5             holds 4                 5, missed 3, peak 60 %
    6   6             holds 4                   holds 5
    7   7           7, missed 2, peak 61 %      holds 5
    8   8             holds 7                   holds 5
    9   9             holds 7                 9, missed 3, peak 61 %
        the display is killed while it holds block 9
   10   10          10, missed 2, peak 61 %   dead
   11   11            holds 10                dead
   12   12            holds 10                dead
   13   13          13, missed 2, peak 61 %   dead
   14   14            holds 13                dead
   15   15            holds 13                dead
   16   16          16, missed 2, peak 61 %   dead
   17   17            holds 16                dead
   18   18            holds 16                dead
   19   19          19, missed 2, peak 63 %   dead
   20   20            holds 19                dead
writer    published 20 blocks, and waited for nobody
recorder  took 20 blocks, missed  0
meter     took  8 blocks, missed 12
display   took  3 blocks, missed  6, and was killed
4 of 5 slots are free; the newest block keeps the other one
EXPECTED
cmp recorded.wav "$sample" || fail "the recorder missed something"
refuses "none.wav" "$examples/listeners" none.wav no.wav
refuses "cannot be written" "$examples/listeners" "$sample" none/no.wav
refuses "usage:" "$examples/listeners"
await no_segments || fail "listeners left $(segments)"

# A pipeline, and its images again from files.
mkdir film again
"$examples/pipeline" film > pipeline.out 2>&1 || fail "pipeline:" pipeline.out
prints pipeline << 'EXPECTED'
camera    published 20 images in 6 slots
detector  took 20 images, passed on 5 6 7 8 9 10 11 12 13 14
framer    took 10 images, passed on 6 7 8 9 10 11 12
encoder   took  7 images, wrote 6 7 8 9 10 11 12
EXPECTED
"$examples/pipeline" again film/*.ppm > pipeline.out 2>&1 || fail "pipeline from files:" pipeline.out
prints pipeline << 'EXPECTED'
camera    published 7 images in 6 slots
detector  took  7 images, passed on 1 2 3 4 5 6
framer    took  6 images, passed on 1 2 3 4 5 6
encoder   took  6 images, wrote 1 2 3 4 5 6
EXPECTED
[ "$(ls again)" = "$(printf 'image-0%d.ppm\n' 1 2 3 4 5 6)" ] || fail "not six images: $(ls again)"
for i in 1 2 3 4 5 6; do
    cmp "again/image-0$i.ppm" "film/image-$(printf %02d $((i + 6))).ppm" || fail "image $i differs"
done
head -c 100 film/image-06.ppm > short.ppm
refuses "short.ppm: ends too early" "$examples/pipeline" again short.ppm
echo "no image" > text.ppm
refuses "text.ppm: not a PPM file" "$examples/pipeline" again text.ppm
refuses "a stage has failed" "$examples/pipeline" nowhere
refuses "usage:" "$examples/pipeline"
await no_segments || fail "pipeline left $(segments)"

# The number of workers must not change the result; 64 is the maximum.
for n in 1 3 64; do
    "$examples/phases" "$sample" "$n.wav" --workers "$n" > phases.out 2>&1 ||
        fail "phases with $n workers:" phases.out
    has_text phases.out identical
    cmp "$n.wav" 1.wav || fail "$n workers give another result than one"
done

# A second computation of the result, for a short sound of two channels; also with fewer samples
# than workers.
for n_samples in 1 5 2000; do
    /usr/bin/python3 - write "$n_samples" << 'ORACLE' > /dev/null
import array, sys, wave
n = int(sys.argv[2])
samples = array.array("h", ((i * 7919 + c * 3000) % 20001 - 10000
                            for i in range(n) for c in (0, 1)))
with wave.open("stereo.wav", "wb") as file:
    file.setparams((2, 2, 8000, 0, "NONE", ""))
    file.writeframes(samples.tobytes())
ORACLE
    "$examples/phases" stereo.wav lifted.wav --workers 8 > phases.out 2>&1 ||
        fail "phases on $n_samples samples:" phases.out
    has_text phases.out identical
    /usr/bin/python3 - phases.out << 'ORACLE' || fail "wrong result for $n_samples samples"
import array, math, re, sys, wave

def read(path):
    with wave.open(path, "rb") as file:
        return file.getparams(), array.array("h", file.readframes(file.getnframes()))

params, pairs = read("stereo.wav")
lifted_params, found = read("lifted.wav")
assert lifted_params[:3] == (1, 2, 8000), lifted_params
mono = [(l + r) / 2 for l, r in zip(pairs[::2], pairs[1::2])]
assert len(found) == len(mono)
peak = max(map(abs, mono))
a = [0.6 * x / peak for x in mono]
taps = []
for k in range(63):
    x = math.pi / 4 * (k - 31)
    taps.append((math.sin(x) / x if x else 1) * (0.54 - 0.46 * math.cos(2 * math.pi * k / 62)))
gain = sum(taps)
rows = [0] * 16
for i, sample in enumerate(found):
    b = sum(taps[k] * a[i + k - 31] for k in range(63) if 0 <= i + k - 31 < len(a)) / gain
    c = max(-1, min(1, a[i] + (a[i] - b) / 2))
    assert abs(sample - 32767 * c) <= 1, (i, sample, 32767 * c)
    rows[abs(sample).bit_length()] += 1
printed = re.findall(r"^  .*\|.* (\d+)$", open(sys.argv[1]).read(), re.M)
assert [int(n) for n in printed] == rows[::-1], (printed, rows)
ORACLE
done

: > empty.wav
echo "no sound" > text.wav
# A header without samples, and one that promises more than the limit (8 bits, mono).
wav_header() {
    local i
    printf 'RIFF'
    for i in $((36 + $1)) 0x45564157 0x20746d66 16 0x00010001 8000 8000 0x00080001 \
        0x61746164 "$1"; do
        printf '%b' "$(printf '\\x%02x' $((i & 255)) $((i >> 8 & 255)) $((i >> 16 & 255)) \
            $((i >> 24 & 255)))"
    done
}
wav_header 0 > silent.wav
wav_header $(((1 << 25) + 1)) > long.wav
truncate -s $((44 + (1 << 25) + 1)) long.wav
refuses "none.wav: No such file" "$examples/phases" none.wav no.wav
refuses "not a regular file" "$examples/phases" . no.wav
refuses "the file is empty" "$examples/phases" empty.wav no.wav
refuses "not a sound file" "$examples/phases" text.wav no.wav
refuses "no samples" "$examples/phases" silent.wav no.wav
refuses "this program takes" "$examples/phases" long.wav no.wav
refuses "cannot be written" "$examples/phases" "$sample" none/no.wav
refuses "from 1 to 64" "$examples/phases" "$sample" no.wav --workers 65
refuses "usage:" "$examples/phases" "$sample"
refuses "attach" "$examples/array" no-such-segment

# A worker dies while it holds the lock: the next owner repairs the result, and the work is finished.
"$examples/phases" "$sample" whole.wav > out 2>&1 || fail "phases"
for step in peak scale filter quantise; do
    "$examples/phases" "$sample" repaired.wav --kill "$step" > out 2>&1 || fail "phases --kill $step" out
    has_text out "killed by signal 9"
    matches out "worker [1-3]: 'phases' (process [1-9][0-9]*) died while it held the lock"
    matches out "worker [1-3]: takes over part 0 from worker 0"
    has_text out "identical to a single process"
    cmp whole.wav repaired.wav || fail "the repaired result of $step differs"
done
# No worker is left that could do it, so another one is started.
"$examples/phases" "$sample" repaired.wav --kill quantise --workers 1 > out 2>&1 || fail "phases --workers 1" out
matches out "parent: 'phases' (process [1-9][0-9]*) died while it held the lock"
cmp whole.wav repaired.wav || fail "the repaired result of one worker differs"
await no_segments || fail "phases left $(segments)"

no_daemon && fail "the daemon died"
kill "$pid"
await no_daemon || fail "the daemon does not leave"
[ -z "$(find /dev/shm -name "shmview.$instance*")" ] || fail "the daemon left something"

/usr/bin/python3 "$SHMVIEW_SOURCE_DIR/examples/data/make-sample.py" "$runtime/again.wav"
cmp "$runtime/again.wav" "$sample" || fail "make-sample.py makes another sample.wav"
echo "the examples are as they should be"
