/* SPDX-License-Identifier: Apache-2.0 */
/* A stream as a Promela model: frames in slots, a ring of the published ones, and of each reader the slots that it
 * holds. stream_writer.pml and stream_reader.pml have the parties. README.md explains what is checked, what is left out,
 * and what the flags of a run mean. */
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
#ifndef CELLS /* of each ring */
#define CELLS SLOTS
#endif
#ifdef PASS /* the first PASSERS readers pass each frame on to a second stream, from which the others take */
#ifndef PASSERS
#define PASSERS 1
#endif
#define STREAMS   2
#define STREAM(r) ((r) < PASSERS -> 0 : 1)
#define OVER(k)   ((k) -> n_passers_over == PASSERS : n_over == WRITERS)
#else
#define PASSERS   READERS
#define STREAMS   1
#define STREAM(r) 0
#define OVER(k)   (n_over == WRITERS)
#endif
#define PARTIES (WRITERS + READERS)
#define TOTAL   (2 * WRITERS * FRAMES) /* numbers of a stream; some frames may be passed on twice */
#define READER(r) (WRITERS + (r))
#ifdef LATEST /* the newest frame counts as history */
#define KEPT (HISTORY + 1)
#else
#define KEPT HISTORY
#endif

/* --- What is in memory --------------------------------------------------- */

/* An entry of the ring: a sequence number, which counts from 1, and the slot of that frame. */
#define ENTRY(seq, slot) ((seq) * 4 + (slot))
#define SEQ(entry)       ((entry) / 4)
#define SLOT(entry)      ((entry) & 3)
#define CELL(k, seq)     ring[(k) * CELLS + (seq) % CELLS]
#define SHOWS(k, slot)   shows[(k) * SLOTS + (slot)]
#define TAG(k, seq)      tag[(k) * (TOTAL + 2) + (seq)]

/* What a slot shows while a reader passes its frame on, besides the number. The bit is cleared after the ring has the
 * entry, and before that is overwritten. */
#define PASSING 128
#define NUMBER(shown) ((shown) & ~PASSING)

/* Of a slot, in the word of those that a reader holds; of a stream, in a mask. */
#define BIT(i) (1 << (i))

/* The place of a reader that waits for no number, because it has left. */
#define NOWHERE 255

byte ring[STREAMS * CELLS];
byte owner[SLOTS];            /* the writer that has the slot, + 1; 0: none */
byte shows[STREAMS * SLOTS];  /* the number of the frame in it, in each stream; 0: none */
byte user[READERS];           /* generation of the reader that has joined here; 0: none */
byte at[READERS];             /* the next number that it will take */
byte holds[READERS];          /* the slots that it holds */
byte tail[STREAMS] = 1;       /* a reader that joins begins here or later */
byte published[STREAMS];      /* a number that is published, and perhaps not the last */
/* The gates of the readers of each stream, and of the writers: whether somebody may be parked there. */
bool readers_wait[STREAMS], writers_wait;
/* Whether the gate or the count of deaths has changed since the party has read both. A party parks until then. */
bool stirred[PARTIES];

/* --- What the daemon knows ----------------------------------------------- */

byte live[PARTIES] = 1; /* generation of the living user of the place; 0: none */

/* --- What is true, and in no memory -------------------------------------- */

bool dead[PARTIES];
byte content[SLOTS]; /* which frame the bytes are; 0: half written */
byte tag[STREAMS * (TOTAL + 2)]; /* by number: which frame was published */
byte n_over;         /* writers that write no more */
byte last[STREAMS];  /* the last number that was published */
byte n_passers_over; /* readers that pass no more frames on */
byte passed;         /* frames that the second stream has or had */
bool is_passed[SLOTS]; /* whether it has the frame in the slot */

/* The ids of writers have a place and a generation; writers are not replaced here. */
#define IS_DEAD_OWNER(o) ((o) != 0 && live[(o) - 1] == 0)
#define IS_GONE(r)       (user[r] == 0 || live[READER(r)] != user[r])

/* Two steps: those who wait are woken after the look at the gate. */
inline stir_readers(k)
{
    if
    :: atomic { readers_wait[k] -> skip }
        atomic {
            readers_wait[k] = false;
            stirred[READER(0)] = stirred[READER(0)] || STREAM(0) == k;
#if READERS > 2
            stirred[READER(1)] = stirred[READER(1)] || STREAM(1) == k;
#endif
            stirred[PARTIES - 1] = stirred[PARTIES - 1] || STREAM(READERS - 1) == k
        }
    :: atomic { else -> skip }
    fi
}

inline stir_writers()
{
    if
    :: atomic { writers_wait -> skip }
        atomic { writers_wait = false; stirred[0] = true; stirred[WRITERS - 1] = true }
    :: atomic { else -> skip }
    fi
}

/* Sets seq to the last number of stream k. */
inline find_last()
{
    seq = published[k];
#ifndef FAULT_NOT_COUNTED /* the writer of the last frame may have died before it counted */
    do
    :: SEQ(CELL(k, seq + 1)) == seq + 1 -> seq++
    :: else -> break
    od
#endif
}

/* Clears the bit PASSING of the frame of which a cell has the entry, before that is overwritten: the slot then shows
 * that its frame was published. */
inline settle()
{
#if defined PASS && !defined FAULT_NOT_SETTLED
    atomic {
        if
        :: entry != 0 && SHOWS(k, SLOT(entry)) == (SEQ(entry) | PASSING) -> SHOWS(k, SLOT(entry)) = SEQ(entry)
        :: else -> skip
        fi }
#else
    skip
#endif
}

#include "stream_writer.pml"
#include "stream_reader.pml"

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
#ifdef FAULT_DEATH_ANNOUNCED_FIRST
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
