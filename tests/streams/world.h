/* SPDX-License-Identifier: Apache-2.0 */
/* What the supervisor and its parties share: a page of memory that they inherit. */
#ifndef STREAMS_WORLD_H
#define STREAMS_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PARTIES_MAX 8
#define HISTORY     1

/* One process that takes part: it writes, or takes from a stage. */
struct party {
    _Atomic int64_t progress; /* when it last finished a call; 0: not begun */
    _Atomic uint64_t n;       /* frames that all users of the place have published or taken */
    int last_step;            /* at which it died, for people */
};

struct world {
    atomic_bool over;
    bool plant; /* writers go on to write after they have published */
    uint32_t mode, flags;
    bool passes; /* the first reader passes frames on to the others */
    unsigned n_writers, n_readers;
    uint32_t period; /* a party dies at one step of so many */
    _Atomic uint32_t n_violations, n_writer_deaths_seen;
    char first[300];
    char socket[108];
    struct party parties[PARTIES_MAX];
};

extern struct world *world;

/* The party that this process is; -1: none. */
extern int me;
extern uint64_t my_random;

/* xorshift64, Marsaglia 2003 */
static inline uint64_t draw(uint64_t n)
{
    my_random ^= my_random << 13;
    my_random ^= my_random >> 7;
    my_random ^= my_random << 17;
    return (my_random >> 11) % n;
}

/* Records that something is as it must not be, and ends the run. */
__attribute__((format(printf, 1, 2))) void violation(const char *format, ...);

/* Runs a party, until the run is over. */
void party_run(int number);

#endif
