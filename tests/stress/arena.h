/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory of the test itself: which processes take part, what they do, and what went
 * wrong. It outlives every one of them.
 *
 * A party is a process. The supervisor spawns workers; workers and guests fork guests.
 *
 *    free -> reserved (guests: by the forker) -> living -> doomed -> free
 *
 * Only the supervisor reaps. So no pid is used again while its party is in the table, and it is
 * safe to kill by pid. */
#ifndef STRESS_ARENA_H
#define STRESS_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "stress/place.h"

#define PARTIES_MAX      64
#define WORKERS_MAX      32 /* the first of the parties; the others are guests */
#define THREADS_MAX      4
#define INCARNATIONS_MAX 65536 /* parties whose times of death are kept */
#define LATENCIES_MAX    500000

/* X(NAME, text of the message) */
#define VIOLATION_LIST(X)                                                                          \
    X(TWO_INSIDE, "another owner is inside")                                                       \
    X(TORN, "torn data, but no death was reported")                                                \
    X(READER_TORN, "a reader sees torn data")                                                      \
    X(READER_MOVED, "the data changes under a reader")                                             \
    X(OPTIMISTIC, "an optimistic read is valid and torn")                                          \
    X(PHASE, "phase and data do not match")                                                        \
    X(CHILD_RELEASED, "a forked child gives back what its parent holds")                           \
    X(UNLOCK, "unlock fails")                                                                      \
    X(CALL, "an unexpected result")                                                                \
    X(CRASH, "a process ended by itself")                                                          \
    X(LEFT, "something is left")

enum violation {
#define X(name, text) VIOLATION_##name,
    VIOLATION_LIST(X)
#undef X
    N_VIOLATIONS
};

/* X(NAME, what it counts) */
#define COUNT_LIST(X)                                                                              \
    X(EXCLUSIVE, "exclusive")                                                                      \
    X(SHARED, "shared")                                                                            \
    X(TIMED_OUT, "timed out")                                                                      \
    X(OPTIMISTIC, "optimistic")                                                                    \
    X(SWITCHES, "switches")                                                                        \
    X(STALE, "stale views")                                                                        \
    X(CHANGES, "changes heard")                                                                    \
    X(NOT_REPAIRED, "not repaired")                                                                \
    X(ATTACHES, "attachments")                                                                     \
    X(FORKS, "forks")                                                                              \
    X(THREAD_EXITS, "thread exits inside")                                                         \
    X(OWNER_DIED, "owner died")                                                                    \
    X(TORN, "of them torn")

enum count {
#define X(name, text) COUNT_##name,
    COUNT_LIST(X)
#undef X
    N_COUNTS
};

/* A thread. Written by that thread, and by its successor. */
struct actor {
    _Alignas(128) _Atomic int64_t waits_since; /* without a deadline; 0: it does not */
    _Atomic bool acting;                       /* it is within an action */
    _Atomic bool holds;                        /* in a siege: keeps the lock */
    _Atomic int at;                            /* the place that it reached last */
    _Atomic uint64_t count[N_COUNTS];
    _Atomic uint64_t reached[N_PLACES];
};

enum party_state {
    PARTY_FREE,
    PARTY_RESERVED,
    PARTY_LIVING,
    PARTY_DOOMED
};

struct party {
    /* pid:24 incarnation:32 enum party_state:8; while it is reserved, the pid of the process
     * that reserved it */
    _Atomic uint64_t state;
    _Atomic int64_t awake_since; /* when it last continued after a SIGSTOP */
    bool stopped;                /* used by the supervisor only */
    struct actor actors[THREADS_MAX];
};

struct arena {
    _Atomic bool over;
    _Atomic bool quiet;    /* nobody dies, and parks have no net */
    _Atomic bool lull;     /* no thread begins an action */
    _Atomic uint32_t turn; /* counts turns; idle threads park on it */
    _Atomic bool one_each; /* each thread does one action in a turn */
    _Atomic bool siege;
    _Atomic bool duel; /* only the first thread of each party takes part in the siege */
    _Atomic int64_t siege_killed_ns; /* when the holder was killed; 0: it lives */
    pid_t supervisor;
    int threads;
    uint64_t seed;
    _Atomic uint32_t incarnations;
    _Atomic uint32_t period[N_PLACES]; /* one visit in so many is a death */
    _Atomic uint64_t deaths[N_PLACES];
    _Atomic uint64_t violations[N_VIOLATIONS];
    _Atomic uint32_t stalls;
    _Atomic int64_t killed_ns[INCARNATIONS_MAX];
    _Atomic uint32_t n_latencies;
    uint32_t latency_ns[LATENCIES_MAX];
    struct party parties[PARTIES_MAX];
};
extern struct arena *arena;

/* The state of the running thread. */
struct me {
    struct party *party; /* NULL: the supervisor */
    struct actor *actor;
    uint32_t incarnation;
    uint64_t random;
    int index;
    int patience;       /* a guest: actions until it leaves; a worker: -1 */
    bool blind;         /* it has no futex_waitv */
    bool borrowed;      /* it uses a handle other than the process's main one */
    bool forever;       /* waits without a deadline */
    bool leaving;       /* this thread ends, and keeps what it holds */
    uint32_t turn;      /* the turn in which it acted last */
    int slow;           /* a place where it dawdles more often; -1: nowhere */
    int64_t waits_from; /* when the last call that takes the lock began */
};
extern __thread struct me me;

/* Maps the arena. Returns 0, or -errno. */
int arena_open(uint64_t seed, int threads);

/* Takes a free party among [from, to) for a process that the caller will fork. Returns NULL if
 * there is none. */
struct party *party_reserve(unsigned from, unsigned to, uint64_t *ret_reservation);
/* Gives the party back, because no process was forked for it. */
void party_unreserve(struct party *party, uint64_t reservation);
/* Called in the new process, which is living from here on. Returns false if the process that
 * reserved the party has died since: then another process may have the party. */
bool party_begin(struct party *party, uint64_t reservation);
/* Marks the party as about to die now. Returns the pid of its process, or 0 if it is not living.
 * A pid read from the state before could be that of the process that reserved the party. */
pid_t party_doom(struct party *party);
/* The process with that pid was reaped: frees its own party and those that it reserved. Returns
 * false if it had no party. */
bool party_end(pid_t pid);

static inline enum party_state party_state(const struct party *party)
{
    return (enum party_state)(atomic_load(&party->state) & 0xff);
}

static inline pid_t party_pid(const struct party *party)
{
    return (pid_t)(atomic_load(&party->state) >> 40);
}

/* Makes this thread the one with that index in the party. */
void me_become(struct party *party, int index);
uint32_t me_random(void);
/* Returns true once in n times, at random. */
bool me_chance(uint32_t n);
void me_count(enum count what);
/* The mark that this thread writes into the data while it is inside, and the incarnation in such
 * a mark. */
uint64_t me_token(void);
uint32_t token_incarnation(uint64_t token);

/* Counts a violation, and prints the first ones. */
__attribute__((format(printf, 2, 3))) void report(enum violation what, const char *format, ...);

uint64_t arena_count(enum count what);
uint64_t arena_reached(int place);
uint64_t arena_violations(void);

#endif
