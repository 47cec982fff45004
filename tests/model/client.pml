/* SPDX-License-Identifier: Apache-2.0 */
/* A thread of a client. An atomic block makes one access to shared memory, together with
 * everything that the thread can derive from it alone. */

#define FOREVER 1
#define UNTIL   2
#define ONCE    3

#define check(condition, otherwise) if :: condition :: else -> goto otherwise fi
#define may_expire(then)            if :: patience == UNTIL -> goto then :: true fi

/* Chooses how long to wait, when there is something to wait for. */
inline choose_patience()
{
    if
    :: patience == 0 -> patience = FOREVER
#ifdef TIMED
    :: patience == 0 -> patience = UNTIL
#endif
#ifdef TRY
    :: patience == 0 -> patience = ONCE
#endif
    :: patience
    fi
}

/* Clears variables that are not needed again, because their values would make more states. */
inline forget_waiting()
{
    v = 0;
    quit(deaths);
    quit(gate);
    quit(drain)
}

inline forget()
{
    forget_waiting();
    x = 0;
    i = 0;
    g = 0;
    patience = 0;
    n_failed = 0;
    shared = false;
    busy = false;
    told = false
}

#ifdef EARLY
#define assert_not_late() assert(!late)
#else
#define assert_not_late() skip
#endif
#if defined EARLY || defined END
#define MAY_BE_LOST
#endif
#ifdef FAULT_NOT_CHECKED /* goes inside under an id that the others take for dead */
#define check_slot(otherwise) skip
#else
#define check_slot(otherwise) check(live[MY_SLOT] == generation, otherwise)
#endif

inline next_slot()
{
    x = 0;
    i++;
    goto slot
}

/* After the word of a dead owner was taken: that owner may have cleared a group and not set it
 * again, or, if it runs, may clear it yet. */
inline distrust_groups()
{
#if defined EARLY && !defined FAULT_NO_TAKEOVERS
    groups = groups + TAKEOVER;
#endif
#ifndef FAULT_GROUPS_TRUSTED
    groups = groups | ALL_GROUPS;
#endif
    skip
}

/* futex_waitv looks at one word after the other, and queues as it goes. An outcast receives no
 * news of a death, but each of its parks ends. */
inline park(queue, unchanged, again)
{
    atomic {
        if
        :: unchanged -> join(queue)
        :: else -> forget_waiting(); goto again
        fi
    }
#ifndef FAULT_DEATHS_NOT_AWAITED
    atomic {
        if
        :: member(deaths)
        :: else -> quit(queue); forget_waiting(); goto again
        fi
    }
#endif
    if
    :: atomic { !member(queue) -> forget_waiting(); goto again }
    :: atomic { patience == UNTIL || OUTCAST -> quit(queue); forget_waiting(); goto again }
    fi
}

active [THREADS] proctype client()
{
    byte generation = 1, n_left = ROUNDS;
    byte v;    /* the value of the word */
    byte x, i; /* the value of a reader slot, and its number */
    byte g;    /* the value of groups */
    byte patience, n_failed;
    bool shared, busy, told;
#ifdef EARLY
    bool late; /* was declared dead before it began to take the lock */
#endif
#ifdef FAULT_DIRTY_IS_ID
    byte heir_of;
#endif

next: {
        atomic {
#ifdef EARLY
            if
            :: _pid == SPARE && generation == 1 -> generation = 2; goto end_without_slot
            :: else
            fi;
#endif
            forget();
            if
            :: n_left == 0 -> n_gone[MY_SLOT]++; goto end_gone
            :: else -> n_left--
            fi;
            if
            :: goto take
#ifdef SHARED
            :: shared = true
#endif
            fi
        }

        /* --- Shared: my slot, then the word --- */
announce:
#ifdef END
        atomic { check_slot(next) }
#endif
#ifdef FAULT_GROUP_BEFORE_COUNT
        busy = ((groups & MY_GROUP) != 0);
#endif
#ifdef FAULT_READER_REORDERED /* the increment waits in the store buffer */
        v = word;
        atomic { check(SLOT_IS_MINE, next); MY_READERS++ }
#else
        atomic { check(SLOT_IS_MINE, next); MY_READERS++ }
#endif
#ifdef FAULT_GROUP_LATE /* waits in the store buffer, or comes too late */
        v = word;
#endif
#ifdef FAULT_GROUP_BEFORE_COUNT
        atomic { check(!busy, counted) }
#else
        atomic { check(!(groups & MY_GROUP), counted) }
#endif
        groups = groups | MY_GROUP;
counted:
#if !defined FAULT_READER_REORDERED && !defined FAULT_GROUP_LATE
        v = word;
#endif
        atomic { check(!OWNER(v) && !dirty, leave); go_reading() }
read_inside:
        atomic { quit(reading); shared = false }
leave:
        atomic { check(SLOT_IS_MINE, next); MY_READERS--; busy = (COUNT(MY_READERS) == 0) }
        atomic { check(busy && OWNER(word), left) }
        drain = 0;
        at_drain = 0;
left:
        atomic {
            busy = false;
            check(shared, next);
            check(OWNER(v), take); /* otherwise the word was free, and dirty */
            choose_patience();
            check(ALIVE(v) && n_failed < 2, take);
            check(patience != ONCE, next);
            n_failed++;
            v = 0
        }
        join(deaths);
        join(gate);
        atomic {
            v = word;
            if
            :: OWNER(v)
            :: else -> forget_waiting(); goto announce
            fi
        }
        atomic {
            if
            :: ALIVE(v) -> may_expire(next)
            :: else -> forget_waiting(); goto take
            fi
        }
#if defined END && !defined FAULT_END_MISSED /* ended since the count, but before deaths was read */
        atomic {
            if
            :: live[MY_SLOT] == generation
            :: else -> forget_waiting(); goto next
            fi
        }
#endif
        atomic {
            if
#ifdef FAULT_READERS_ON_WORD /* where the writers sleep, one of which is woken */
            :: word == v -> v = v | W; word = v
#else
            :: word == v -> v = 0; word = word | R
#endif
            :: else -> forget_waiting(); goto announce
            fi
        }
#ifdef FAULT_READERS_ON_WORD
        park(at_word, word == v, announce);
#else
        park(at_gate, member(gate), announce);
#endif

        /* --- The word --- */
take:
#ifdef FAULT_GROUPS_EARLY /* read before this thread has the word */
        busy = ((groups & ALL_GROUPS) != 0);
#endif
#ifdef EARLY
        atomic { late = OUTCAST; check_slot(next) }
#elif defined END
        atomic { check_slot(next) }
#endif
        atomic {
            v = 0;
            n_failed = 0;
            check(word == 0, look);
            word = ME;
            goto owner
        }
look:
#ifdef EARLY
        atomic {
            check_slot(leave_lost);
            goto look_at_word
        }
#elif defined END
        goto look_at_word;
#endif
#ifdef MAY_BE_LOST
leave_lost:
        atomic { forget_waiting(); wake_one(); goto next }
look_at_word:
#endif
#ifndef FAULT_DEATHS_LATE
        join(deaths);
#endif
#ifdef END
        v = word;
        atomic { check_slot(leave_lost); check(OWNER(v), claim) }
#else
        atomic { v = word; check(OWNER(v), claim) }
#endif
        atomic {
            check(ALIVE(v), claim);
            choose_patience();
            check(patience != ONCE, next);
#ifdef FAULT_SILENT_TIMEOUT /* leaves before it sets W, perhaps with another's wake-up */
            may_expire(next)
#endif
        }
#ifdef FAULT_DEATHS_LATE /* a death between the look and this goes unnoticed */
        join(deaths);
#endif
        atomic {
            check(word == v, look);
            v = v | W;
            word = v;
#ifndef FAULT_SILENT_TIMEOUT
            may_expire(next)
#endif
        }
        park(at_word, word == v, look);
claim:
        atomic {
            check(word == v, look);
#ifdef EARLY
            if
            :: OWNER(v) == ID(1, 0) -> stop(1)
            :: else
            fi;
#endif
#ifdef FAULT_DIRTY_IS_ID
            heir_of = OWNER(v);
#endif
#ifdef FAULT_CLAIM_WITHOUT_W /* forgets that others may be parked too */
            word = ME | (v & (R | W));
#else
            word = ME | W | (v & R);
#endif
            if
            :: OWNER(v) -> forget_waiting()
            :: else -> forget_waiting(); goto owner
            fi
        }
        distrust_groups();

        /* --- The word is mine --- */
owner:
        atomic {
            if
            :: shared && !dirty
            :: else -> shared = false; goto exclude
            fi
        }
#ifdef END
        atomic {
            if
            :: live[MY_SLOT] == generation
            :: else -> shared = false; goto release
            fi
        }
#endif
        atomic {
            if
            :: SLOT_IS_MINE -> MY_READERS++; go_reading()
            :: else -> shared = false; goto release
            fi
        }
        atomic { check(!(groups & MY_GROUP), release) }
        atomic { groups = groups | MY_GROUP; goto release }
exclude:
#ifdef FAULT_GROUPS_EARLY
        atomic { check(busy, enter) }
#else
        atomic { check(groups & ALL_GROUPS, enter) }
#endif
        goto look_at_slots;
drained:
#ifdef END
        atomic { check_slot(release) }
#endif
look_at_slots:
        join(deaths);
        join(drain);
        atomic { busy = false; i = 0; g = groups }
slot:
        atomic {
            if
            :: i < SLOTS && !(g & GROUP(i)) -> next_slot()
            :: else -> check(i < SLOTS, looked)
            fi;
            x = readers[i];
            if
            :: COUNT(x) == 0 -> next_slot()
            :: else
            fi
        }
        atomic {
            if
            :: USER(x) && USER_OF(i) == USER(x) -> busy = true; next_slot()
            :: else
            fi
        }
        atomic {
            if
            :: readers[i] == x -> readers[i] = 0; next_slot()
#ifdef FAULT_REAP_THEN_PARK /* its new user may have nothing to leave */
            :: else -> busy = true; next_slot()
#else
            :: else -> x = 0; goto look_at_slots
#endif
            fi
        }
looked:
        atomic {
            i = 0;
            check(busy, clear);
            g = 0;
            choose_patience();
            check(patience != ONCE, release);
            may_expire(release)
        }
#if defined END && !defined FAULT_END_MISSED
        atomic { check_slot(release) }
#endif
        park(at_drain, member(drain), drained);

        /* Nobody reads. Now and then, clears the groups in which nobody did. */
clear:
        atomic {
            forget_waiting();
            if
            :: g & ALL_GROUPS
            :: goto enter
            fi
        }
#if defined MAY_BE_LOST && !defined FAULT_TAKEOVERS_UNGUARDED
        atomic { check_slot(enter) }
#endif
#ifdef FAULT_CLEARED_BLINDLY
        atomic { groups = groups & ~(g & ALL_GROUPS) }
#else
        atomic { check(groups == g, enter); groups = groups & ~ALL_GROUPS }
#endif
#ifdef FAULT_NOT_LOOKED_AGAIN
        goto enter;
#endif
        /* a reader that found its group set may have counted itself since */
look_again:
        atomic {
            if
            :: i < SLOTS && (!(g & GROUP(i)) || COUNT(readers[i]) == 0) -> i++; goto look_again
            :: else -> check(i < SLOTS, enter)
            fi;
            x = readers[i]
        }
        atomic { check(USER(x) && USER_OF(i) == USER(x), reap_again) }
        atomic { groups = groups | GROUP(i); x = 0; i++; goto look_again }
reap_again:
        atomic {
            if
            :: readers[i] == x -> readers[i] = 0
            :: else
            fi;
            x = 0;
            goto look_again
        }

        /* --- Inside --- */
enter:
        atomic { forget_waiting(); busy = false; i = 0; g = 0; patience = 0; told = TOLD }
        atomic { assert_not_late(); dirty = MARK; go_writing(); told = false }
        atomic {
            if
            :: OWNER(word) == ME -> quit(writing)
            :: else -> assert(OUTCAST); goto next
            fi;
            if
            :: broken = false
#ifdef SPOIL
            :: broken = true; quit(marking); marked = true; goto release
#endif
            fi
        }
        atomic { dirty = 0; quit(marking); marked = false }
release:
        atomic {
            patience = 0;
            busy = false;
            i = 0;
            g = 0;
            v = word;
            assert(OUTCAST || OWNER(v) == ME);
#ifndef FAULT_PLAIN_STORE
            check(OWNER(v) == ME, next);
#endif
            word = 0;
            check(v & R, wake_writer)
        }
        gate = 0;
        at_gate = 0;
wake_writer:
        atomic {
            if
            :: v & W -> wake_one()
            :: else
            fi;
            check(!shared, read_inside);
            goto next
        }

attach: /* a word that names a new id is as old as the last wrap */
        MY_READERS = generation * 8;
        atomic { check(OWNER(word) == ME, next) }
        distrust_groups();
        atomic { dirty = MARK; marked = true; goto release }
    } unless { killed[MY_SLOT] }

    atomic {
        forget();
        n_gone[MY_SLOT]++;
        generation++;
        check(generation <= GENERATION_MAX && COMES_BACK, end_gone)
    }
end_without_slot:
    atomic {
        live[MY_SLOT] == generation && !killed[MY_SLOT] ->
        n_gone[MY_SLOT] = CREW_SIZE(MY_SLOT) - 1;
        n_left = ROUNDS;
        goto attach
    }
end_gone:
    false
}
