/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of stream.pml: client/stream/read.c and pass.c. */
#ifdef FAULT_LAST_FRAME /* does not look again after the last writer has ended */
#define IS_LAST(seq) true
#else
#define IS_LAST(seq) (SEQ(CELL(STREAM(r), (seq) + 1)) <= (seq))
#endif
#ifdef FAULT_LOOKED_EARLY /* does not look again after it has closed the gate */
#define IS_THERE(seq) false
#else
#define IS_THERE(seq) (SEQ(CELL(k, seq)) >= (seq))
#endif
#ifdef PASS /* only the first frame may be the latest, so that there are fewer states */
#define MAY_SKIP is_new
#else
#define MAY_SKIP true
#endif

inline join()
{
    user[r] = 0; /* nobody looks at the words of an earlier reader from now on */
#ifndef FAULT_HOLDS_INHERITED
    holds[r] = 0;
#endif
    k = STREAM(r);
    atomic { find_last(); next = (seq + 1 > HISTORY -> seq + 1 - HISTORY : 1); seq = 0 };
    at[r] = next;
    user[r] = generation;
#ifndef LATEST
#ifndef FAULT_TAIL_NOT_READ
    if
    :: tail[k] > next ->
        next = tail[k];
        at[r] = next;
        stir_writers() /* a writer may have waited for the number that was here */
    :: else -> skip
    fi
#endif
#endif
}

/* Sets held to whether slot f still shows a number. This reader holds it, then. */
inline hold(number)
{
#ifdef FAULT_SHOWN_FIRST
    held = (NUMBER(SHOWS(k, f)) == number);
    atomic { holds[r] = holds[r] | BIT(f) }
#elif defined FAULT_SHOWS_ANY
    atomic { holds[r] = holds[r] | BIT(f) };
    held = (SHOWS(k, f) != 0)
#else
    atomic { holds[r] = holds[r] | BIT(f) };
    held = (NUMBER(SHOWS(k, f)) == number)
#endif
}

/* Takes the last frame, if there is one that this reader has not taken. The reader may have joined after it. */
inline take_latest()
{
    if
    :: atomic { seq != 0 -> skip };
        hold(seq);
        if
        :: atomic { held && seq > next -> at[r] = seq; next = seq; seq = 0 }
#if !defined LATEST && !defined FAULT_SKIPPED_SILENTLY
            stir_writers() /* one may wait for a frame that is skipped */
#endif
        :: atomic { held && seq <= next -> next = seq; seq = 0 }
        :: atomic { !held -> holds[r] = holds[r] & ~BIT(f); seq = 0 }
            stir_writers()
        fi
    :: atomic { seq == 0 -> skip }
    fi
}

inline take()
{
    do
#ifdef SKIPS
    :: atomic { MAY_SKIP -> find_last(); f = SLOT(CELL(k, seq)); seq = (seq >= next || is_new -> seq : 0) }
        take_latest();
        if
        :: atomic { held -> break }
        :: atomic { !held -> f = 0 }
        fi
#endif
    :: atomic { entry = CELL(k, next); f = SLOT(entry); entry = SEQ(entry) }
        if
        :: atomic { entry == next -> entry = 0 }
            hold(next);
            if
            :: atomic { held -> break }
            :: atomic { !held ->
#ifndef LATEST
                assert(false); /* a frame is gone that this reader has not taken */
#endif
                holds[r] = holds[r] & ~BIT(f) }
                stir_writers();
                next++
            fi
        :: atomic { entry > next ->
#ifndef LATEST
            assert(false);
#endif
            entry = 0; next++ } /* missed */
        :: atomic { entry < next -> f = 0; entry = 0; readers_wait[k] = true; stirred[READER(r)] = false }
            if
            :: atomic { IS_THERE(next) -> skip }
            :: atomic { !IS_THERE(next) -> skip }
                if
                :: atomic { stirred[READER(r)] -> skip } /* was parked */
                :: atomic { OVER(k) && IS_LAST(next - 1) -> is_over = true; break }
                fi
            fi
        fi
    od
}

#ifdef PASS
/* Sets seq to the first number of stream k that the ring does not have. */
inline find_next()
{
    seq = published[k] + 1;
    do
    :: SEQ(CELL(k, seq)) >= seq -> seq++
    :: else -> break
    od
}

/* Changes what slot f shows in stream k from value to a number, if nobody else has. Sets value to what it shows. */
inline show_number()
{
    atomic {
        if
        :: SHOWS(k, f) == value -> value = seq | PASSING; SHOWS(k, f) = value
        :: else -> value = SHOWS(k, f)
        fi }
}

/* Publishes the frame, which this reader holds, in another stream, or finishes what another reader has begun. That one
 * may be dead. */
inline pass(to)
{
    atomic { k = to; frame = content[f]; find_next() };
#ifdef FAULT_RELEASED_FIRST
    atomic { holds[r] = holds[r] & ~BIT(f) };
#endif
#ifdef FAULT_NUMBER_ONE
    seq = 1;
#endif
#ifdef FAULT_NOT_FINISHED
    if
    :: atomic { SHOWS(k, f) == 0 -> show_number() }
    :: atomic { SHOWS(k, f) != 0 -> skip }
    fi;
#else
    show_number();
#endif
    do
    :: atomic { value & PASSING -> seq = NUMBER(value); entry = CELL(k, seq) }
        if
        :: atomic { entry == ENTRY(seq, f) ->
                published[k] = (published[k] > seq -> published[k] : seq) }
            atomic { SHOWS(k, f) = (SHOWS(k, f) == value -> seq : SHOWS(k, f)); value = 0 }
        :: atomic { SEQ(entry) >= seq && entry != ENTRY(seq, f) -> find_next() } /* another frame has the number */
            show_number()
        :: atomic { SEQ(entry) < seq -> skip }
            settle();
            atomic {
                if
                :: CELL(k, seq) == entry ->
                    assert(k == 0 || !is_passed[f]);
                    is_passed[f] = is_passed[f] || k == 1;
                    passed = passed | BIT(frame);
                    CELL(k, seq) = ENTRY(seq, f); TAG(k, seq) = frame; last[k] = seq
                :: else -> skip
                fi }
        fi
    :: atomic { !(value & PASSING) -> value = 0; entry = 0; seq = 0; break }
    od;
    assert(passed & BIT(frame));
    stir_readers(to);
#if KEPT > 0 && !defined FAULT_PASSED_SILENTLY
    stir_writers(); /* an earlier frame of the stream may have become free */
#endif
    atomic { frame = 0; k = STREAM(r) }
}
#endif

proctype reader(byte r)
{
    byte f, k, next, entry, generation, seq, value, frame;
    bool held, is_over, is_new = true; /* it has taken nothing */
again:
    {
        generation = live[READER(r)];
        join();
        do
        :: take();
            if
            :: atomic { is_over -> break }
            :: atomic { else -> held = false }
            fi;
#if !defined LATEST && !defined FAULT_PLACE_LATE
            at[r] = next + 1; /* wakes nobody: only this slot can become free, and it is held */
#endif
            assert(content[f] == TAG(k, next));
            assert(content[f] == TAG(k, next)); /* at the end of reading it */
#ifdef PASS
            if
            :: r < PASSERS -> pass(1)
#ifdef BACK
            :: r >= PASSERS && is_new -> pass(0)
#endif
            :: else -> skip
            fi;
#endif
#ifdef KEEPS
            if
            :: skip; last[k] > next || OVER(k) /* holds the frame until there is another one */
            :: skip
            fi;
#endif
            atomic { holds[r] = holds[r] & ~BIT(f); f = 0 };
#ifndef FAULT_FREED_SILENTLY
            stir_writers();
#endif
#if !defined LATEST && defined FAULT_PLACE_LATE
            at[r] = next + 1;
#endif
            atomic { next++; is_new = false }
        od;
#ifdef BACK
        assert(next > last[k] || k == 0);
#else
        assert(next > last[k]);
#endif
        atomic { at[r] = NOWHERE; f = 0; next = 0; is_over = false };
        stir_writers()
    } unless { dead[READER(r)] };
    n_passers_over = n_passers_over + (r < PASSERS -> 1 : 0);
    if
    :: atomic { dead[READER(r)] ->
        f = 0; k = 0; next = 0; entry = 0; held = 0; is_over = 0; seq = 0; value = 0; frame = 0; is_new = true }
#ifdef REUSE
        atomic { live[READER(r)] == 0 -> live[READER(r)] = generation + 1; dead[READER(r)] = false;
            n_passers_over = n_passers_over - (r < PASSERS -> 1 : 0) };
        goto again
#endif
    :: atomic { else -> skip }
    fi
}
