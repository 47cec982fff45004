/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of one segment as a Promela model: the words in memory, and what must be true of
 * them. client.pml has the users of the lock, world.pml their deaths. README.md explains what is
 * checked, what is left out, and what the flags of a run mean. */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef DEATHS
#define DEATHS 0
#endif

/* Which thread has which slot. A crew is the set of threads of one process. */
#if defined TWIN
#define SLOTS           (THREADS - 1)
#define MY_SLOT         (_pid -> _pid - 1 : 0)
#define CREW(slot)      (slot -> 2 << slot : 3)
#define CREW_SIZE(slot) (slot -> 1 : 2)
#define COMES_BACK      (_pid != 1)
#elif defined EARLY
#define SLOTS           (THREADS - 1)
#define MY_SLOT         (_pid == SPARE -> 0 : _pid)
#define SPARE           (THREADS - 1)
#else
#define SLOTS           THREADS
#define MY_SLOT         _pid
#endif
#ifndef TWIN
#define CREW(slot)      (1 << slot)
#define CREW_SIZE(slot) 1
#define COMES_BACK      true
#endif

/* --- What is in memory --------------------------------------------------- */

/* The lock word. R:1 W:1 generation:2 slot:2, of which the low four bits are an id. */
#define R              32
#define W              16
#define OWNER(v)       ((v) & 15)
#define SLOT(v)        ((v) & 3)
#define GENERATION(v)  (((v) >> 2) & 3)
#define GENERATION_MAX 3
#define ID(g, slot)    ((g) * 4 + (slot))

#ifdef FAULT_NO_GENERATION /* an id is only a slot */
#define ME       ID(1, MY_SLOT)
#define ALIVE(v) (live[SLOT(v)] != 0)
#else
#define ME       ID(generation, MY_SLOT)
#define ALIVE(v) (USER_OF(SLOT(v)) == GENERATION(v))
#endif

/* A reader slot. generation:5 count:3, one number as in memory. */
#define COUNT(x)     ((x) & 7)
#define USER(x)      ((x) >> 3)
#define MY_READERS   readers[MY_SLOT]
#ifdef FAULT_SLOT_UNGUARDED /* changed although it may have a new user */
#define SLOT_IS_MINE true
#else
#define SLOT_IS_MINE (USER(MY_READERS) == generation)
#endif

/* The groups with readers. takeovers:4 groups:4, of which each has a bit. */
#ifdef GROUPED
#define GROUP(slot) 1
#else
#define GROUP(slot) (1 << (slot))
#endif
#define MY_GROUP    GROUP(MY_SLOT)
#define ALL_GROUPS  15
#define TAKEOVER    16

byte word;
byte readers[SLOTS] = 8;
#ifdef READ
byte groups = ALL_GROUPS;
#else
byte groups;
#endif
#ifdef FAULT_DIRTY_IS_ID /* only the owner that takes over from the one inside gets the report */
byte dirty;
#define MARK ME
#define TOLD (dirty && dirty == heir_of)
#else
bool dirty;
#define MARK true
#define TOLD dirty
#endif
byte live[SLOTS] = 1; /* generations, 0 = none, or with ENDED; only the daemon writes it */
#define ENDED         8
#define USER_OF(slot) (live[slot] & 7)

/* Sets of threads. An event counter is the set of threads that know its value, so emptying the
 * set advances the counter. */
#define MY_BIT    (1 << _pid)
#define join(set) set = set | MY_BIT
#define quit(set) set = set & ~MY_BIT
#define member(set) (set & MY_BIT)

byte deaths, gate, drain;
byte at_word, at_gate, at_drain; /* the queues of the kernel */

inline wake_one()
{
    if
    :: at_word & 1 -> at_word = at_word & ~1
    :: at_word & 2 -> at_word = at_word & ~2
    :: at_word & 4 -> at_word = at_word & ~4
    :: at_word & 8 -> at_word = at_word & ~8
    :: at_word == 0
    fi
}

/* --- What is true -------------------------------------------------------- */

bool killed[SLOTS];
byte n_gone[SLOTS];    /* threads that are dead, or have finished */
byte writing, reading; /* threads that are inside */
byte marking;          /* threads between setting and clearing dirty */
bool broken;           /* a thread was stopped while it wrote, and nobody has repaired it */
bool marked;           /* a thread was stopped while it marked, since dirty was cleared */

/* A thread that is declared dead while it runs is an outcast: the lock owes it nothing, and it
 * may damage nothing once the word was taken from it. */
#ifdef EARLY
bool declared;
#define OUTCAST (_pid == 0 && declared)
#else
#define OUTCAST false
#endif

inline go_reading()
{
    assert(OUTCAST || (!writing && !broken));
    if
    :: OUTCAST
    :: else -> join(reading)
    fi
}

inline go_writing()
{
    assert(OUTCAST || (!writing && !reading));
    assert(OUTCAST || !broken || told);
#ifndef EARLY
    assert(marked || !told);
#endif
    if
    :: OUTCAST
    :: else -> join(writing); join(marking)
    fi
}

inline stop(crew)
{
    broken = broken || (writing & (crew));
    marked = marked || (marking & (crew));
    writing = writing & ~(crew);
    marking = marking & ~(crew);
    reading = reading & ~(crew)
}

#include "client.pml"
#include "world.pml"
