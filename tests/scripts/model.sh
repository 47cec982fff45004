#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# model.sh [--long] [PATTERN]: searches every state of the models of the lock, of the mutex, of the
# monitor, of a stream and of the meetings of an MPI job, in the configurations below whose name matches
# PATTERN. Names of all but the first begin with "mutex:", "monitor:", "stream:" and "meeting:".
#
# A configuration that "holds" must have no error. The others have a planted fault: one that
# "breaks" must violate an assertion, and one that "sticks" must leave a thread asleep forever.
# tests/model/README.md explains the flags.
set -euo pipefail

long=no
if [ "${1:-}" = --long ]; then
    long=yes
    shift
fi
pattern=${1:-.}

if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ]; then
    echo "the model has nothing to sanitize"
    exit 77
fi
if ! spin -V 2> /dev/null | grep -q '^Spin Version'; then
    echo "spin is not installed"
    exit 77
fi

models=$(cd "${SHMVIEW_SOURCE_DIR:-$(dirname "$0")/../..}" && pwd)/tests/model
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# expected result | name | flags
rows=(
    "holds|two clients, every form|DEATHS=1 REUSE SHARED TIMED TRY SPOIL"
    "holds|two clients, the repairer dies|DEATHS=2 REUSE SHARED SPOIL"
    "holds|two clients, twice|ROUNDS=2 DEATHS=1 REUSE SHARED"
    "holds|two clients, one group|ROUNDS=2 SHARED READ GROUPED DEATHS=1"
    "holds|three clients|THREADS=3 DEATHS=1 SHARED"
    "holds|three exclusive, the repairer dies|THREADS=3 DEATHS=2 TRY SPOIL"
    "holds|three exclusive, twice|THREADS=3 ROUNDS=2 TIMED"
    "holds|two threads and a client|TWIN THREADS=3 DEATHS=1 SHARED"
    "holds|declared dead too early|EARLY THREADS=3 REUSE SHARED"
    "holds|all attachments end|END DEATHS=1 SHARED TIMED TRY"
    "holds|all attachments end, three exclusive|END THREADS=3 DEATHS=1 TRY"
    "breaks|declared dead too early, and a death|EARLY THREADS=3 REUSE DEATHS=1"

    "breaks|no generation in ids|FAULT_NO_GENERATION DEATHS=1 REUSE"
    "breaks|reader reordered|FAULT_READER_REORDERED SHARED"
    "breaks|groups looked at early|FAULT_GROUPS_EARLY SHARED"
    "breaks|group set late|FAULT_GROUP_LATE SHARED"
    "breaks|group looked at before the count|FAULT_GROUP_BEFORE_COUNT THREADS=3 SHARED READ"
    "breaks|cleared, not looked at again|FAULT_NOT_LOOKED_AGAIN THREADS=3 SHARED READ"
    "breaks|groups of a dead owner|FAULT_GROUPS_TRUSTED ROUNDS=2 DEATHS=1 REUSE SHARED"
    "breaks|takeovers not counted|FAULT_NO_TAKEOVERS EARLY THREADS=3 REUSE SHARED READ"
    "breaks|cleared after a takeover|FAULT_TAKEOVERS_UNGUARDED EARLY THREADS=3 REUSE SHARED READ"
    "breaks|cleared whatever they are|FAULT_CLEARED_BLINDLY EARLY THREADS=3 REUSE SHARED READ"
    "breaks|dirty is an id|FAULT_DIRTY_IS_ID DEATHS=2 REUSE"
    "breaks|slot not checked|FAULT_NOT_CHECKED EARLY THREADS=3 REUSE"
    "breaks|word freed by plain store|FAULT_PLAIN_STORE EARLY THREADS=3 REUSE"
    "breaks|reader slot stepped blindly|FAULT_SLOT_UNGUARDED EARLY THREADS=3 REUSE SHARED"
    "breaks|ended slots count as dead|FAULT_ENDED_IS_DEAD END"
    "sticks|end announced first|FAULT_END_ANNOUNCED_FIRST END DEATHS=1"
    "sticks|end missed before a park|FAULT_END_MISSED END DEATHS=1 SHARED"
    "sticks|readers park on the word|FAULT_READERS_ON_WORD THREADS=3 SHARED"
    "sticks|silent timeout|FAULT_SILENT_TIMEOUT THREADS=3 ROUNDS=2 TIMED"
    "sticks|word claimed without W|FAULT_CLAIM_WITHOUT_W THREADS=3"
    "sticks|deaths sampled after the word|FAULT_DEATHS_LATE DEATHS=1"
    "sticks|deaths not awaited|FAULT_DEATHS_NOT_AWAITED DEATHS=1"
    "sticks|death announced first|FAULT_DEATH_ANNOUNCED_FIRST DEATHS=1"
    "sticks|parked after a failed reap|FAULT_REAP_THEN_PARK DEATHS=1 REUSE SHARED"

    "holds|mutex: three threads, every form|THREADS=3 TIMED TRY INTERRUPTED"
    "holds|mutex: two threads, reused ids|DEATHS=2 ROUNDS=2 REUSE TIMED TRY INTERRUPTED SPOIL"
    "holds|mutex: three threads, a death|THREADS=3 DEATHS=1 TIMED"
    "breaks|mutex: no birth|FAULT_NO_BIRTH DEATHS=1 REUSE"
    "breaks|mutex: reported first|FAULT_REPORTED_FIRST DEATHS=1 THREADS=3"
    "breaks|mutex: not reported|FAULT_NOT_REPORTED DEATHS=1"
    "breaks|mutex: taken over by plain store|FAULT_PLAIN_TAKE_OVER DEATHS=1 THREADS=3"
    "breaks|mutex: settled late|FAULT_SETTLED_LATE DEATHS=1 ROUNDS=2 THREADS=3"
    "sticks|mutex: birth not judged|FAULT_BIRTH_NOT_JUDGED DEATHS=1 REUSE"
    "sticks|mutex: unbounded parks|FAULT_UNBOUNDED DEATHS=1"
    "sticks|mutex: freed by plain store|FAULT_PLAIN_RELEASE"
    "sticks|mutex: word claimed without W|FAULT_CLAIM_WITHOUT_W THREADS=3"
    "sticks|mutex: taken over without W|FAULT_TAKE_OVER_WITHOUT_W DEATHS=1 THREADS=3"
    "sticks|mutex: silent timeout|FAULT_SILENT_TIMEOUT TIMED THREADS=3 ROUNDS=2"
    "sticks|mutex: interrupted when woken|FAULT_INTERRUPTED_WOKEN INTERRUPTED THREADS=3"

    "holds|monitor: three processes, two permits|THREADS=3 ROUNDS=2 PERMITS=2"
    "holds|monitor: two processes, two deaths|ROUNDS=2 DEATHS=2"
    "holds|monitor: three processes, a death|THREADS=3 PERMITS=2 DEATHS=1"
    "breaks|monitor: written at once|FAULT_NO_NOTES DEATHS=1"
    "breaks|monitor: change not completed|FAULT_NOT_REDONE DEATHS=1"
    "sticks|monitor: unbounded parks|FAULT_UNBOUNDED THREADS=3 DEATHS=1"
    "sticks|monitor: permits of the dead|FAULT_NOT_BURIED THREADS=3 DEATHS=1"
    "sticks|monitor: sequence after the wake-up|FAULT_SEQUENCE_LATE THREADS=3"
    "sticks|monitor: waiting forgotten|FAULT_WAITING_CLEARED THREADS=3"

    "holds|stream: a reader is replaced|FRAMES=3 DEATHS=1 REUSE"
    "holds|stream: two readers|SLOTS=1 READERS=2"
    "holds|stream: two writers, a death|SLOTS=1 FRAMES=1 WRITERS=2 DEATHS=1"
    "holds|stream: history, a death|SLOTS=3 FRAMES=4 HISTORY=1 DEATHS=1"
    "holds|stream: latest, a reader is replaced|LATEST FRAMES=3 DEATHS=1 REUSE"
    "holds|stream: latest, two readers|LATEST FRAMES=3 READERS=2"
    "holds|stream: passed on, a death|PASS SLOTS=1 READERS=2 FRAMES=1 DEATHS=1"
    "holds|stream: latest, passed on|PASS LATEST READERS=2 FRAMES=3"
    "holds|stream: passed on by a latecomer|PASS SKIPS SLOTS=1 READERS=2"
    "holds|stream: passed back|PASS BACK SKIPS SLOTS=1 READERS=2"
    "holds|stream: passed on by two readers, a death|PASS PASSERS=2 READERS=2 SLOTS=1 FRAMES=1 DEATHS=1"
    "holds|stream: skipped to the latest|SKIPS KEEPS FRAMES=3"
    "holds|stream: a writer that gives up|TRY SLOTS=1 FRAMES=1 WRITERS=2"
    "breaks|stream: passed on, looked at early|FAULT_PASSED_EARLY PASS SLOTS=1 READERS=2"
    "breaks|stream: passed on after the release|FAULT_RELEASED_FIRST PASS SLOTS=1 READERS=2"
    "breaks|stream: passed back, overwritten|FAULT_BACK_FORGOTTEN PASS BACK SKIPS SLOTS=1 READERS=2"
    "breaks|stream: passed on, cleared|FAULT_CLEARED_WHOLE PASS SKIPS SLOTS=1 READERS=2"
    "breaks|stream: passed on with an old number|FAULT_NUMBER_ONE PASS SKIPS SLOTS=1 READERS=2"
    "breaks|stream: half passed on, not finished|FAULT_NOT_FINISHED PASS PASSERS=2 READERS=2 SLOTS=1 FRAMES=1 DEATHS=1"
    "breaks|stream: passed on, not settled|FAULT_NOT_SETTLED PASS PASSERS=2 READERS=2 LATEST CELLS=1 DEATHS=1 REUSE"
    "breaks|stream: published before it is written|FAULT_PUBLISHED_EARLY"
    "breaks|stream: holders looked at early|FAULT_HELD_FIRST LATEST FRAMES=3"
    "breaks|stream: shown number looked at early|FAULT_SHOWN_FIRST LATEST FRAMES=3"
    "breaks|stream: any frame of the slot|FAULT_SHOWS_ANY LATEST FRAMES=3"
    "breaks|stream: slot loaned twice|FAULT_PLAIN_LOAN SLOTS=1 FRAMES=1 WRITERS=2"
    "breaks|stream: last frame lost|FAULT_LAST_FRAME"
    "breaks|stream: tail moved late|FAULT_TAIL_LATE FRAMES=3 HISTORY=1"
    "breaks|stream: tail not read|FAULT_TAIL_NOT_READ FRAMES=3"
    "sticks|stream: place stored after the release|FAULT_PLACE_LATE SLOTS=1"
    "sticks|stream: holds of an earlier reader|FAULT_HOLDS_INHERITED SLOTS=1 DEATHS=1 REUSE"
    "sticks|stream: holds of the dead|FAULT_DEAD_HOLDS SLOTS=1 DEATHS=1"
    "sticks|stream: released silently|FAULT_FREED_SILENTLY SLOTS=1"
    "sticks|stream: skipped silently|FAULT_SKIPPED_SILENTLY SKIPS KEEPS FRAMES=3"
    "sticks|stream: looked at before the gate is closed|FAULT_LOOKED_EARLY FRAMES=1"
    "sticks|stream: published silently|FAULT_BELL_NOT_RUNG"
    "sticks|stream: passed on silently|FAULT_PASSED_SILENTLY PASS LATEST KEEPS READERS=2 FRAMES=3"
    "sticks|stream: given up silently|FAULT_GIVEN_UP_SILENTLY TRY SLOTS=1 FRAMES=2 WRITERS=2"
    "sticks|stream: given back silently|FAULT_GIVEN_SILENTLY SLOTS=1 FRAMES=1 WRITERS=2"
    "sticks|stream: death announced first|FAULT_DEATH_ANNOUNCED_FIRST SLOTS=1 DEATHS=1"
    "sticks|stream: frame of the dead not counted|FAULT_NOT_COUNTED SLOTS=1 FRAMES=1 WRITERS=2 DEATHS=1"

    "holds|meeting: three members, a death|DEATHS=1"
    "holds|meeting: three members, three times, two deaths|ROUNDS=3 DEATHS=2"
    "holds|meeting: two members, four times, a death|MEMBERS=2 ROUNDS=4 DEATHS=1"
    "breaks|meeting: collectives of one meeting|FAULT_ONE_MEETING"
    "breaks|meeting: one result|FAULT_ONE_RESULT DEATHS=1"
    "breaks|meeting: release before the result|FAULT_RELEASED_FIRST"
    "breaks|meeting: arrival before the record|FAULT_ARRIVED_FIRST"
    "breaks|meeting: end of a leader that has released|FAULT_NOT_LOOKED_AGAIN"
    "sticks|meeting: a mark for an arrival|FAULT_MET_TRUSTED DEATHS=1"
    "sticks|meeting: arrivals counted from 0|FAULT_COUNT_RESET"
    "sticks|meeting: leader not watched|FAULT_LEADER_NOT_WATCHED DEATHS=1"
    "sticks|meeting: members not watched|FAULT_MEMBERS_NOT_WATCHED DEATHS=1"
)
if [ $long = yes ]; then
    rows+=(
        "holds|two clients, twice, two deaths|DEATHS=2 ROUNDS=2 REUSE SHARED"
        "holds|three clients, tries|THREADS=3 DEATHS=1 SHARED TRY SPOIL"
        "holds|three clients, twice|THREADS=3 ROUNDS=2 SHARED"
        "holds|three exclusive, two deaths, reuse|THREADS=3 DEATHS=2 REUSE TRY SPOIL"
        "holds|four exclusive|THREADS=4 DEATHS=1"
        "holds|two threads and a client, reuse|TWIN THREADS=3 DEATHS=1 REUSE SHARED"
        "holds|two threads and two clients|TWIN THREADS=4 DEATHS=1"
        "holds|declared dead too early, every form|EARLY THREADS=3 REUSE SHARED TIMED TRY"
        "holds|mutex: three threads, reused ids|THREADS=3 DEATHS=1 REUSE TIMED INTERRUPTED"
        "holds|stream: two readers, a death|SLOTS=1 READERS=2 DEATHS=1"
        "holds|stream: two deaths, replaced|FRAMES=3 DEATHS=2 REUSE"
        "holds|stream: two writers, twice|SLOTS=1 FRAMES=2 WRITERS=2"
        "holds|stream: a writer that gives up, twice|TRY SLOTS=1 FRAMES=2 WRITERS=2"
        "holds|stream: latest, passed on by one that keeps|PASS LATEST KEEPS READERS=2 FRAMES=3"
        "holds|stream: latest, passed back|PASS BACK LATEST SLOTS=3 READERS=2 FRAMES=3"
        "holds|stream: passed on by two readers, replaced|PASS PASSERS=2 READERS=2 LATEST CELLS=1 DEATHS=1 REUSE"
        "holds|stream: passed on twice, a death|PASS SLOTS=1 READERS=2 DEATHS=1"
    )
fi

# $1: flags of the model, $2: of the compiler, $3: of the search (may be empty), $4: the model
search() {
    local -a defines
    read -ra defines <<< "$1"
    spin "-P${CC:-cc} -E -x c" -a "${defines[@]/#/-D}" "$models/$4.pml" &&
        "${CC:-cc}" -w "$2" -DSAFETY -DNOREDUCE -DCOLLAPSE -DMEMLIM=6000 pan.c -o pan &&
        ./pan -m100000 -w22 ${3:+"$3"}
}

# Prints the verdict on the search whose output is in $1: holds, breaks, sticks, or why there is
# none.
verdict() {
    if grep -q '^pan:1: assertion violated' "$1"; then
        echo breaks
    elif grep -q '^pan:1: invalid end state' "$1"; then
        echo sticks
    elif grep -q 'errors: 0$' "$1" && ! grep -qE 'not completed|too small|MEMLIM' "$1"; then
        echo holds
    else
        echo "not searched"
    fi
}

n_rows=0
n_wrong=0
run_row() {
    local expected=$1 name=$2 flags=$3 model=lock begun=$EPOCHREALTIME got seconds
    [[ $name =~ ^(mutex|monitor|stream|meeting): ]] && model=${BASH_REMATCH[1]}
    case $expected in
    # the search finds an error so soon that optimised building would take longer
    breaks) search "$flags" -O0 -E "$model" ;;
    sticks) search "$flags" -O0 -A "$model" ;;
    *) search "$flags" -O1 "" "$model" ;;
    esac > out 2>&1 || true
    got=$(verdict out)
    seconds=$(((${EPOCHREALTIME/[.,]/} - ${begun/[.,]/}) / 10000))
    printf '%-40s %9s states  %s errors  %3d.%02d s  %s\n' "$name" \
        "$(awk '/states, stored/ { n = $1 } END { print n + 0 }' out)" \
        "$(sed -n 's/.*errors: //p' out)" $((seconds / 100)) $((seconds % 100)) "$got"
    n_rows=$((n_rows + 1))
    if [ "$got" != "$expected" ]; then
        echo "    expected: $expected. The end of what was printed:"
        tail -n 25 out | sed 's/^/    /'
        n_wrong=$((n_wrong + 1))
    fi
}

for row in "${rows[@]}"; do
    IFS='|' read -r expected name flags <<< "$row"
    [[ $name =~ $pattern ]] && run_row "$expected" "$name" "$flags"
done

echo "$n_rows searches, $n_wrong of them wrong"
[ "$n_rows" -gt 0 ] && [ "$n_wrong" -eq 0 ]
