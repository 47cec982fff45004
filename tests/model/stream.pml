/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as a Promela model: frames in slots, a ring of the published ones, and of each reader the slots that it
 * holds. README.md explains what is checked, what is left out, and what the flags of a run mean. */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef WRITERS
#define WRITERS 1
#endif
#ifndef READERS
#define READERS 1
#endif
#ifndef FRAMES /* that each writer publishes */
#define FRAMES 2
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef HISTORY /* frames that a reader gets that joins late */
#define HISTORY 0
#endif
#ifdef PASS /* reader 0 passes each frame on to a second stream, which reader 1 takes from */
#define STREAMS   2
#define STREAM(r) (r)
#define OVER(k)   ((k) -> stage_over : n_over == WRITERS)
#else
#define STREAMS   1
#define STREAM(r) 0
#define OVER(k)   (n_over == WRITERS)
#endif
#define PARTIES (WRITERS + READERS)
#define TOTAL   (WRITERS * FRAMES)
#define READER(r) (WRITERS + (r))

/* --- What is in memory --------------------------------------------------- */

/* An entry of the ring: a sequence number, which counts from 1, and the slot of that frame. */
#define ENTRY(seq, slot) ((seq) * 4 + (slot))
#define SEQ(entry)       ((entry) / 4)
#define SLOT(entry)      ((entry) & 3)
#define CELL(k, seq)     ring[(k) * SLOTS + (seq) % SLOTS]
#define SHOWS(k, slot)   shows[(k) * SLOTS + (slot)]
#define TAG(k, seq)      tag[(k) * (TOTAL + 2) + (seq)]

/* Of a slot, in the word of those that a reader holds. */
#define BIT(f) (1 << (f))

/* The place of a reader that waits for no number, because it has left. */
#define NOWHERE 255

byte ring[STREAMS * SLOTS];
byte owner[SLOTS];            /* the writer that has the slot, + 1; 0: none */
byte shows[STREAMS * SLOTS];  /* the number of the frame in it, in each stream; 0: none */
byte user[READERS];           /* generation of the reader that has joined here; 0: none */
byte at[READERS];             /* the next number that it will take */
byte holds[READERS];          /* the slots that it holds */
byte tail[STREAMS] = 1;       /* a reader that joins begins here or later */
byte published[STREAMS];      /* a number that is published, and perhaps not the last */
byte readers_wait, writers_wait;
/* Stands for two futex words and the count of deaths: whether the word on which a party would park has changed since the
 * party read it. A published frame changes the word of the readers, a slot that may be free that of the writers, if
 * anybody waits; an announced death changes all. */
bool stirred[PARTIES];

/* --- What the daemon knows ----------------------------------------------- */

byte live[PARTIES] = 1; /* generation of the living user of the place; 0: none */

/* --- What is true, and in no memory -------------------------------------- */

bool dead[PARTIES];
byte content[SLOTS]; /* which frame the bytes are; 0: half written */
byte tag[STREAMS * (TOTAL + 2)]; /* by number: which frame was published */
byte n_over;         /* writers that write no more */
byte last[STREAMS];  /* the last number that was published */
bool stage_over;     /* reader 0 passes no more frames on */

/* The ids of writers have a place and a generation; writers are not replaced here. */
#define IS_DEAD_OWNER(o) ((o) != 0 && live[(o) - 1] == 0)
#define IS_GONE(r)       (user[r] == 0 || live[READER(r)] != user[r])

/* Two steps: the bell is rung after the look at the number of those who wait. */
inline stir_readers()
{
    if
    :: atomic { readers_wait > 0 -> skip }
        atomic { stirred[READER(0)] = true; stirred[PARTIES - 1] = true }
    :: atomic { else -> skip }
    fi
}

inline stir_writers()
{
    if
    :: atomic { writers_wait > 0 -> skip }
        atomic { stirred[0] = true; stirred[WRITERS - 1] = true }
    :: atomic { else -> skip }
    fi
}

#ifdef FAULT_PLAIN_LOAN /* stores without a comparison */
#define UNCHANGED(word, seen) true
#else
#define UNCHANGED(word, seen) ((word) == (seen))
#endif
#ifdef FAULT_LAST_FRAME /* does not look again after the last writer has ended */
#define IS_LAST(seq) true
#else
#define IS_LAST(seq) (SEQ(CELL(STREAM(r), (seq) + 1)) <= (seq))
#endif

/* --- Writer -------------------------------------------------------------- */

/* Clears the number of slot f in stream k unless a reader is still to take that frame; sets free to whether it is so. */
inline reclaim()
{
    atomic {
        seq = SHOWS(k, f);
        seq = (CELL(k, seq) == ENTRY(seq, f) -> seq : 0); /* 0: none, or a writer died before it published */
#ifndef FAULT_NOT_COUNTED
        published[k] = (seq > published[k] -> seq : published[k]); /* or before it counted */
#endif
        r = 0;
#ifdef LATEST
        free = (seq == 0 || seq + HISTORY < published[k])
#else
        free = (seq == 0 || seq + HISTORY <= published[k])
#endif
    };
#ifndef LATEST
    /* A reader that joins sees this, or is seen below. */
#ifndef FAULT_TAIL_LATE
    if
    :: atomic { free && seq != 0 -> tail[k] = (tail[k] > seq -> tail[k] : seq + 1) }
    :: atomic { else -> skip }
    fi;
#endif
    do
    :: atomic { r < READERS && free && seq != 0 && (STREAM(r) != k || IS_GONE(r)) -> r++ }
    :: atomic { r < READERS && free && seq != 0 && STREAM(r) == k && !IS_GONE(r) -> skip }
        atomic { free = at[r] > seq; r = (free -> r + 1 : r) }
    :: atomic { else -> r = 0; break }
    od;
#ifdef FAULT_TAIL_LATE
    if
    :: atomic { free && seq != 0 -> tail[k] = (tail[k] > seq -> tail[k] : seq + 1) }
    :: atomic { else -> skip }
    fi;
#endif
#endif
#ifndef FAULT_HELD_FIRST
    if
    :: atomic { free && seq != 0 -> SHOWS(k, f) = 0 }
    :: atomic { else -> skip }
    fi;
#endif
    seq = 0
}

/* Sets free to whether slot f, which the caller owns, can be filled. */
inline try_slot()
{
    do
    :: k = 0;
        do
        :: atomic { k < STREAMS -> skip }
            reclaim();
            atomic { k = (free -> k + 1 : STREAMS) }
        :: atomic { k == STREAMS -> k = 0; break }
        od;
        do
#ifdef FAULT_DEAD_HOLDS
        :: atomic { r < READERS && free && user[r] == 0 -> r++ }
        :: atomic { r < READERS && free && user[r] != 0 -> skip }
#else
        :: atomic { r < READERS && free && IS_GONE(r) -> r++ }
        :: atomic { r < READERS && free && !IS_GONE(r) -> skip }
#endif
            atomic { free = !(holds[r] & BIT(f)); r = (free -> r + 1 : r) }
        :: atomic { else -> r = 0; break }
        od;
#ifdef FAULT_HELD_FIRST
        if
        :: atomic { free -> SHOWS(0, f) = 0 }
        :: atomic { else -> skip }
        fi;
#endif
        /* Nobody holds it now. Somebody who did may have passed it on since it was looked at. */
#if STREAMS > 1 && !defined FAULT_PASSED_EARLY
        if
        :: atomic { free && SHOWS(1, f) != 0 && CELL(1, SHOWS(1, f)) == ENTRY(SHOWS(1, f), f) -> skip }
        :: atomic { else -> SHOWS(1, f) = (free -> 0 : SHOWS(1, f)); break }
        fi
#else
        break
#endif
    od
}

/* Takes a slot: one that nobody owns, or that of a dead writer. The frame of a dead writer counts if the ring has it. */
inline loan()
{
    do
    :: atomic { writers_wait++; stirred[me] = false; f = 0; free = false };
        do
        :: atomic { f < SLOTS -> value = owner[f]; gone = IS_DEAD_OWNER(value) }
            if
            :: atomic { (value == 0 || gone) && UNCHANGED(owner[f], value) ->
                owner[f] = me + 1;
                value = 0; gone = false }
                try_slot();
                if
                :: atomic { free -> break }
                :: atomic { else -> owner[f] = 0; f++ }
                fi
            :: atomic { else -> f++ }
            fi
        :: atomic { else -> value = 0; gone = false; break }
        od;
        if
        :: atomic { free -> writers_wait--; break }
        :: atomic { !free && stirred[me] -> writers_wait--; f = 0 } /* parked until then */
        fi
    od
}

/* Publishes frame, which is in slot f, in stream k. */
inline announce_frame()
{
    seq = published[k] + 1;
    do
    :: SHOWS(k, f) = seq; /* no reader comes here before the ring has it */
        if
        :: atomic { SEQ(CELL(k, seq)) < seq -> CELL(k, seq) = ENTRY(seq, f); TAG(k, seq) = frame; last[k] = seq }; break
        :: SEQ(CELL(k, seq)) >= seq -> seq++
        fi
    od;
    atomic { published[k] = (published[k] > seq -> published[k] : seq); seq = 0 }
}

inline publish()
{
    announce_frame();
    atomic { owner[f] = 0; f = 0 };
#if WRITERS > 1 && !defined FAULT_GIVEN_SILENTLY
    stir_writers(); /* one may have passed the slot by, because it was owned */
#endif
#ifdef FAULT_BELL_NOT_RUNG
    skip
#else
    stir_readers()
#endif
}

proctype writer(byte me)
{
    byte f, k, r, seq, value, frame;
    bool free, gone;
    {
        frame = me * FRAMES + 1;
        do
        :: frame <= (me + 1) * FRAMES ->
            loan();
            content[f] = 0; /* half written */
#ifdef FAULT_PUBLISHED_EARLY
            publish();
            content[f] = frame;
#else
            content[f] = frame;
            publish();
#endif
            frame++
        :: else -> break
        od
    } unless { dead[me] };
    atomic { n_over++; f = 0; r = 0; seq = 0; value = 0; free = 0; gone = 0 }
}

/* --- Reader -------------------------------------------------------------- */

inline join()
{
    user[r] = 0; /* nobody looks at the words of an earlier reader from now on */
#ifndef FAULT_HOLDS_INHERITED
    holds[r] = 0;
#endif
    k = STREAM(r);
    next = (published[k] + 1 > HISTORY -> published[k] + 1 - HISTORY : 1);
    next = (next == 0 -> 1 : next);
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

inline take()
{
    do
    :: atomic { entry = CELL(k, next); f = SLOT(entry); entry = SEQ(entry) }
        if
        :: atomic { entry == next ->
            entry = 0;
#ifdef FAULT_SHOWN_FIRST
            held = (SHOWS(k, f) == next) }
            atomic { holds[r] = holds[r] | BIT(f) }
#elif defined FAULT_SHOWS_ANY
            holds[r] = holds[r] | BIT(f) }
            held = (SHOWS(k, f) != 0);
#else
            holds[r] = holds[r] | BIT(f) }
            held = (SHOWS(k, f) == next);
#endif
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
        :: atomic { entry < next -> f = 0; entry = 0; readers_wait++; stirred[READER(r)] = false }
            if
            :: atomic { SEQ(CELL(k, next)) >= next -> readers_wait-- }
            :: atomic { SEQ(CELL(k, next)) < next -> skip }
                if
                :: atomic { stirred[READER(r)] -> readers_wait-- } /* was parked */
                :: atomic { OVER(k) && IS_LAST(next - 1) -> is_over = true; readers_wait--; break }
                fi
            fi
        fi
    od
}

proctype reader(byte r)
{
    byte f, k, next, entry, generation, seq, frame;
    bool held, is_over;
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
            :: r == 0 ->
                atomic { frame = content[f]; k = 1 };
#ifdef FAULT_RELEASED_FIRST
                atomic { holds[r] = holds[r] & ~BIT(f) };
#endif
                announce_frame();
                stir_readers();
                atomic { frame = 0; k = 0 }
            :: else -> skip
            fi;
#endif
            atomic { holds[r] = holds[r] & ~BIT(f); f = 0 };
#ifndef FAULT_FREED_SILENTLY
            stir_writers();
#endif
#if !defined LATEST && defined FAULT_PLACE_LATE
            at[r] = next + 1;
#endif
            next++
        od;
        assert(next > last[k]);
        atomic { at[r] = NOWHERE; f = 0; next = 0; is_over = false };
        stir_writers()
    } unless { dead[READER(r)] };
    stage_over = (r == 0 -> true : stage_over);
    if
    :: atomic { dead[READER(r)] ->
        f = 0; k = 0; next = 0; entry = 0; held = 0; is_over = 0; seq = 0; frame = 0 }
#ifdef REUSE
        atomic { live[READER(r)] == 0 -> live[READER(r)] = generation + 1; dead[READER(r)] = false };
        goto again
#endif
    :: atomic { else -> skip }
    fi
}

/* --- Deaths -------------------------------------------------------------- */

inline announce()
{
    atomic { who = 0; do :: who < PARTIES -> stirred[who] = true; who++ :: else -> who = 0; break od }
}

proctype daemon()
{
    byte left = DEATHS, who, d;
end:
    do
    :: left > 0 ->
        select(who : 0 .. PARTIES - 1);
        if
        :: atomic { !dead[who] && live[who] != 0 -> dead[who] = true };
#ifdef FAULT_DEATH_TOLD_FIRST
            d = who; announce(); live[d] = 0;
#else
            live[who] = 0; announce();
#endif
            left--
        :: else -> skip
        fi
    :: left == 0 -> break
    :: break
    od
}

init
{
    byte i;
    atomic {
        for (i : 0 .. WRITERS - 1) { run writer(i) }
        for (i : 0 .. READERS - 1) { run reader(i) }
        run daemon()
    }
}
