/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of stream.pml: client/stream/reclaim.c and write.c. */
#ifdef FAULT_PLAIN_LOAN /* stores without a comparison */
#define UNCHANGED(word, seen) true
#else
#define UNCHANGED(word, seen) ((word) == (seen))
#endif

/* The end of a loop over n of something: of its last step, which leaves the loop if the slot is not free. */
#define NEXT(i, n) i++; if :: i == (n) || !free -> i = 0; break :: else -> skip fi

/* Finds the last number that is not history and, in lossless mode, the least one that a reader takes next. A reader
 * that joins sees the tail, or is seen here. */
inline begin_search()
{
    do
    :: atomic { find_last();
            published[k] = seq;
            limit[k] = (seq > KEPT -> seq - KEPT : 0);
            least[k] = NOWHERE;
            seq = 0;
#if !defined LATEST && !defined FAULT_TAIL_LATE
            skip };
        atomic { tail[k] = (tail[k] > limit[k] -> tail[k] : limit[k] + 1);
#endif
            NEXT(k, STREAMS) }
    od;
#ifndef LATEST
    do
    :: atomic { IS_GONE(r) -> NEXT(r, READERS) }
    :: atomic { !IS_GONE(r) -> skip }
        atomic { least[STREAM(r)] = (least[STREAM(r)] < at[r] -> least[STREAM(r)] : at[r]); NEXT(r, READERS) }
    od;
#endif
#ifdef FAULT_TAIL_LATE
    atomic { tail[0] = (tail[0] > limit[0] -> tail[0] : limit[0] + 1) };
#endif
}

/* Sets free to whether no reader is still to take the frame in slot f; in_ring to the streams in which it has a number
 * that the ring has, unknown to those in which it has another one. */
inline look_at_slot()
{
    do
    :: atomic { seq = SHOWS(k, f);
#ifdef PASS /* a reader can store there between the two loads */
            skip }
        atomic {
#endif
            if
            :: seq == 0 -> skip
            :: seq != 0 && CELL(k, NUMBER(seq)) == ENTRY(NUMBER(seq), f) ->
                seq = NUMBER(seq);
                in_ring = in_ring | BIT(k);
                free = seq <= limit[k] && seq < least[k]
            :: else -> unknown = unknown | BIT(k)
            fi;
            seq = 0;
            NEXT(k, STREAMS) }
    od
}

/* Clears what slot f shows in some streams. */
inline clear(streams)
{
    do
    :: atomic { streams & BIT(0) -> SHOWS(0, f) = 0; streams = streams & ~BIT(0) }
    :: atomic { streams == BIT(1) -> SHOWS(STREAMS - 1, f) = 0; is_passed[f] = false; streams = 0 }
    :: atomic { streams == 0 -> break }
    od
}

#ifdef FAULT_DEAD_HOLDS
#define HOLDS_NOTHING(r) (user[r] == 0)
#else
#define HOLDS_NOTHING(r) IS_GONE(r)
#endif

/* Sets free to whether no reader holds slot f. */
inline look_at_holds()
{
    do
    :: atomic { HOLDS_NOTHING(r) -> NEXT(r, READERS) }
    :: atomic { !HOLDS_NOTHING(r) -> skip }
        atomic { free = !(holds[r] & BIT(f)); NEXT(r, READERS) }
    od
}

/* Sets free to whether slot f shows nothing but the unknown numbers: a reader that held it may have passed it on. */
inline look_at_slot_again()
{
#ifdef FAULT_BACK_FORGOTTEN
    k = 1;
#endif
    do
    :: atomic { seq = SHOWS(k, f) }
        atomic {
            free = (seq == 0 || (unknown & BIT(k) && CELL(k, NUMBER(seq)) != ENTRY(NUMBER(seq), f)));
            seq = 0;
            NEXT(k, STREAMS) }
    od
}

/* Sets free to whether slot f, which the caller owns, can be filled. */
inline try_slot()
{
    look_at_slot();
    atomic {
#ifdef FAULT_CLEARED_WHOLE
        in_ring = BIT(STREAMS) - 1;
#endif
        in_ring = (free -> in_ring : 0) };
#ifndef FAULT_HELD_FIRST
    clear(in_ring);
#endif
    do
    :: atomic { free -> skip }
        look_at_holds();
#ifdef FAULT_HELD_FIRST
        atomic { in_ring = (free -> in_ring : 0) };
        clear(in_ring);
#endif
#if STREAMS > 1 && !defined FAULT_PASSED_EARLY
        if
        :: atomic { free -> skip }
            look_at_slot_again()
        :: atomic { else -> skip }
        fi;
#endif
        if
        :: atomic { free && unknown -> skip }
            clear(unknown) /* and look again: the ring may have lost a number that a reader knows */
        :: atomic { else -> break }
        fi
    :: atomic { else -> break }
    od;
    unknown = 0
}

#ifdef TRY /* writer 0 does not wait */
#define MAY_WAIT (me != 0)
#else
#define MAY_WAIT true
#endif

/* Closes the gate; a writer that does not wait only reads it. */
inline close_gate()
{
    atomic {
#ifdef TRY
        if
        :: MAY_WAIT && !writers_wait -> writers_wait = true; stirred[0] = true
        :: else -> skip
        fi;
#else
        writers_wait = true;
#endif
        stirred[me] = false }
}

/* Takes a slot: one that nobody owns, or that of a dead writer. The frame of a dead writer counts if the ring has it. */
inline loan()
{
    do
    :: atomic { close_gate(); free = true };
        begin_search();
        do
        :: atomic { f < SLOTS -> value = owner[f]; gone = IS_DEAD_OWNER(value) }
            if
            :: atomic { (value == 0 || gone) && UNCHANGED(owner[f], value) ->
                owner[f] = me + 1;
                value = 0; gone = false; free = true }
                try_slot();
                if
                :: atomic { free -> break }
                :: atomic { else -> owner[f] = 0; f++ }
                fi
            :: atomic { else -> f++ }
            fi
        :: atomic { else -> value = 0; gone = false; free = false; break }
        od;
        atomic { limit[0] = 0; least[0] = 0; limit[STREAMS - 1] = 0; least[STREAMS - 1] = 0 };
        if
        :: atomic { free -> break }
#ifdef TRY
        :: atomic { !free && !MAY_WAIT -> f = 0 }
            if
            :: atomic { stirred[me] -> skip }
#ifndef FAULT_GIVEN_UP_SILENTLY
                stir_writers() /* one has passed by the slots that this one owned */
#endif
            :: atomic { else -> skip }
            fi;
            break
#endif
        :: atomic { !free && MAY_WAIT && stirred[me] -> f = 0 } /* parked until then */
        fi
    od
}

/* Publishes frame, which is in slot f. */
inline publish()
{
    seq = published[0] + 1;
    do
    :: SHOWS(0, f) = seq; /* no reader comes here before the ring has it */
#ifdef PASS
        entry = CELL(0, seq);
        settle();
#else
        entry = CELL(0, seq);
#endif
        if
        :: atomic { SEQ(entry) < seq && CELL(0, seq) == entry ->
                CELL(0, seq) = ENTRY(seq, f); TAG(0, seq) = frame; last[0] = seq; entry = 0 }
            break
        :: atomic { SEQ(entry) < seq && CELL(0, seq) != entry -> skip }
        :: atomic { SEQ(entry) >= seq -> seq++ }
        fi
    od;
    atomic { owner[f] = 0; f = 0 };
    atomic { published[0] = (published[0] > seq -> published[0] : seq); seq = 0 };
#if WRITERS > 1 && !defined FAULT_GIVEN_SILENTLY
    stir_writers(); /* one may have passed the slot by, because it was owned */
#endif
#ifdef FAULT_BELL_NOT_RUNG
    skip
#else
    stir_readers(0)
#endif
}

proctype writer(byte me)
{
    byte f, k, r, seq, value, entry, frame, in_ring, unknown, limit[STREAMS], least[STREAMS];
    bool free, gone;
    {
        frame = me * FRAMES + 1;
        do
        :: frame <= (me + 1) * FRAMES ->
            loan();
            if
            :: atomic { free -> content[f] = 0 } /* half written */
#ifdef FAULT_PUBLISHED_EARLY
                publish();
                content[f] = frame
#else
                content[f] = frame;
                publish()
#endif
            :: atomic { else -> skip } /* it has tried, and gives this frame up */
            fi;
            frame++
        :: else -> break
        od
    } unless { dead[me] };
    atomic { n_over++;
        f = 0; k = 0; r = 0; seq = 0; value = 0; entry = 0; free = 0; gone = 0; in_ring = 0; unknown = 0;
        limit[0] = 0; least[0] = 0; limit[STREAMS - 1] = 0; least[STREAMS - 1] = 0 }
}
