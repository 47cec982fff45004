#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library compiles for arm64 without a warning. The orders that the lock and the streams rely on
# are instructions there: seq_cst read-modify-writes, load-acquires, store-releases and barriers.
# HACKING.md ("Memory orders") has the reason for each.
set -euo pipefail
cc=aarch64-linux-gnu-gcc
command -v "$cc" >/dev/null || { echo "no $cc"; exit 77; }
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || { echo "once is enough"; exit 77; }

cd "${SHMVIEW_SOURCE_DIR:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=(-std=c11 -D_GNU_SOURCE -O2 -fPIC -Wall -Wextra -Wconversion -Werror -Iinclude -I.
    '-DSHMVIEW_VERSION="0"' '-DSHMVIEW_DAEMON_PATH="/"')

# jansson's headers do not depend on the machine. All others must come from the cross compiler.
mkdir "$work/jansson"
cp "$(pkg-config --variable=includedir jansson)"/jansson*.h "$work/jansson"
find /usr/include -name jansson_config.h -exec cp {} "$work/jansson" \;
mapfile -t sources < <(find client common -name '*.c')
for source in "${sources[@]}"; do
    "$cc" "${flags[@]}" -I"$work/jansson" -c -o "$work/$(basename "$source").o" "$source"
done

body() { # prints the instructions of function $2 of source $1
    "$cc" "${flags[@]}" -I"$work/jansson" -march=armv8.1-a -S -o - "$1" | sed -n "/^$2:/,/\\.size\\t$2/p"
}
expect() { # SOURCE FUNCTION INSTRUCTION WHAT
    body "$1" "$2" | grep -cE "\\b$3\\b" > /dev/null || { echo "$2: no $3: $4" >&2; exit 1; }
}
expect client/lock/exclusive.c shmview_lock casal "taking the word"
expect client/lock/exclusive.c shmview_lock ldar "reader_groups after the word"
expect client/lock/exclusive.c shmview_unlock casal "giving the word back"
expect client/lock/shared.c shmview_lock_shared ldaddal "counting oneself"
expect client/lock/shared.c shmview_lock_shared ldar "the word after the count"
expect client/lock/word.c drain_readers ldar "the counts after the word"

# --- Streams -----------------------------------------------------------------

# Nothing is inlined here, so that a function has its accesses and calls in the order of the program.
# They are compiled for an arm64 of 2011 and for one that has casal, and ldapr: a compiler may use that
# for an acquire load, and an earlier store-release can come after it.
apart=(-fno-inline -fno-ipa-sra -fno-ipa-cp -fno-ipa-icf -fno-partial-inlining -fno-reorder-blocks
    -fno-tree-ch)
for arch in armv8-a armv8.3-a; do
    for part in ring gate reclaim write read pass; do
        "$cc" "${flags[@]}" "${apart[@]}" -I"$work/jansson" "-march=$arch" -mno-outline-atomics -S \
            -o "$work/$part.$arch.s" "client/stream/$part.c"
    done
done
rmw='(stlxr|casal|swpal|ldaddal|ldsetal|ldclral)' # the store of a seq_cst read-modify-write
load='ldar' store='stlr' fence='dmb ish'
in_order() { # PART FUNCTION WHAT PATTERN...: the function has instructions that match, in this order
    local part=$1 function=$2 what=$3 arch
    shift 3
    for arch in armv8-a armv8.3-a; do
        sed -n "/^$function:/,/\\.size\\t$function/p" "$work/$part.$arch.s" | tr '\t' ' ' |
            awk 'BEGIN { n = ARGC; ARGC = 1 }
                 at + 1 < n && $0 ~ "^ " ARGV[at + 1] "($|[ ,])" { at++ }
                 END { exit at + 1 < n }' "$@" ||
            { echo "$function, $arch: $what: not in this order: $*" >&2; exit 1; }
    done
}
call() { # FUNCTION: a pattern that matches a call of it
    echo "bl? $1"
}

in_order read hold "the slot is looked at after the bit is set" "$rmw" "$load"
in_order reclaim collect_slot "a slot is cleared after it is owned" "$(call own)" "$(call is_taken)" "$(call clear)"
in_order reclaim sift "the bits are looked at after the slots are cleared" "$fence" "$(call look_at_readers)" "$(call is_shown)"
in_order reclaim look_at_readers "the bits are looked at after the next number" "$(call reader_at)" "$load" "$load"
in_order reclaim reader_at "the words of a reader are looked at after its id" "$load" "$(call is_alive)"

in_order read announce "the tail is looked at after the reader has joined" "$store" "$store" "$store" "$load"
in_order reclaim begin_search "the readers are looked at after the tail is moved" "$rmw" "$fence" "$(call look_at_readers)"

in_order ring ring_publish "the ring has the number after the slot" "str" "$(call put)"
in_order ring free_number "the slot of an entry is looked at after the entry" "(ldar|ldapr)"
in_order ring put "an entry is overwritten after its frame is marked as passed on" "ldr" "$rmw" "$rmw"
in_order write publish "the gates are looked at after the frame is published and the slot is given back" \
    "$(call ring_publish)" "$store" "$(call ring_count)" "$(call gates_open)"
in_order ring ring_count "the gates are looked at after the count" "$rmw"
in_order ring ring_pass "a frame that is passed on is counted" "$(call ring_count)"
in_order pass shmview_frame_pass "the same for a frame that is passed on" "$(call ring_pass)" "$(call gates?_open)"
in_order ring ring_pass "a frame gets another number after the entry is looked at" "$(call ring_load)" "$rmw"
in_order read unhold "the gate is looked at after the bit is cleared" "$rmw" "$(call gate_open)"
in_order write give_slot "the gate is looked at after the slot is given back" "$store" "$(call gate_open)"
in_order write shmview_frame_discard "a loan that is discarded gives the slot back" "$(call give_slot)"
in_order read skip "the gate is looked at after frames are skipped" "$store" "$(call gate_open)"
in_order read shmview_stream_leave "the gate is looked at after the reader has left" "$store" "$(call gate_open)"
for part in read write pass; do
    in_order "$part" gate_open "the gate" "$(call gate_is_closed)"
    in_order "$part" gate_is_closed "the gate" "$load"
done
for part in write pass; do
    in_order "$part" gates_open "both gates" "$(call gate_is_closed)" "$(call gate_is_closed)"
done
in_order gate open_word "waiters are woken after the gate is open" "$load" "$(call swap)" "$(call wake)"
in_order gate gate_close "the gate is closed" "$load" "$(call swap)"
in_order gate gate_wait "a waiter looks again after the gate is closed" "$(call gate_close)" "$load" "blr" "$(call park)"
in_order gate swap "a change of the gate" "$rmw"
for part in ring read; do
    in_order "$part" ring_load "the ring is looked at after the gate is closed" "$load"
done

in_order read take_next "a frame is read after it is held" "$(call ring_load)" "$(call hold)" "$(call fill)" "$(call note_taken)"
in_order read note_taken "the next number is stored after the bit" "$store"
in_order read shmview_frame_is_intact "the slot is looked at after the bytes" "dmb ishld" "ldr"
in_order reclaim disown "a slot is given back" "$store"
in_order reclaim own "a slot is owned" "$(call swap)"
in_order reclaim swap "a slot is owned" "$rmw"
