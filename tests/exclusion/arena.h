/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle: shared memory in which each thread notes what it holds. It uses nothing of the
 * library, so a fault of the library cannot hide here. It detects two owners inside at once, and
 * a living process that has lost its lock.
 *
 * A party is a worker, or the child that a worker forks. The supervisor announces its death here
 * (oracle_doom()) before it kills it, and wipes its notes after it is gone. */
#ifndef EXCLUSION_ARENA_H
#define EXCLUSION_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SEGMENTS    3
#define WORKERS_MAX 16
#define PARTIES     (2 * WORKERS_MAX) /* the second half: children of workers */
#define THREADS_MAX 4
#define DEAD_MAX    65536 /* pids that were killed */
#define TEXT_BYTES  500

enum inside {
    INSIDE_NOT,
    INSIDE_SHARED,
    INSIDE_EXCLUSIVE
};

/* X(NAME, what is counted) */
#define COUNT_LIST(X)                                                                              \
    X(EXCLUSIVE, "exclusive")                                                                      \
    X(SHARED, "shared")                                                                            \
    X(CALLS, "calls while inside")                                                                 \
    X(MEMORY, "out of memory")                                                                     \
    X(SYSTEM, "failed system calls")                                                               \
    X(CLOSES, "descriptors closed")                                                                \
    X(HANG_UPS, "hang-ups")                                                                        \
    X(FORKS, "forks")                                                                              \
    X(OWNER_DIED, "owner died")                                                                    \
    X(DEATHS, "deaths")                                                                            \
    X(RESTARTS, "restarts of the daemon")                                                          \
    X(HOGS, "times without buffers")

enum count {
#define X(name, text) COUNT_##name,
    COUNT_LIST(X)
#undef X
    N_COUNTS
};

struct arena {
    char socket[108];
    unsigned n_workers, n_threads;
    bool plant; /* worker 0 sometimes goes inside without the lock, and the oracle must detect it */
    uint64_t seed;
    atomic_bool over;
    _Atomic uint32_t unrest; /* odd: the daemon is down, or has no buffers; even: it is at rest */
    _Atomic uint8_t inside[SEGMENTS][PARTIES][THREADS_MAX];
    _Atomic bool doomed[PARTIES];
    _Atomic pid_t pid[PARTIES];
    _Atomic uint32_t n_dead;
    _Atomic pid_t dead[DEAD_MAX];
    _Atomic uint64_t count[N_COUNTS];
    _Atomic uint32_t n_violations;
    char first[TEXT_BYTES]; /* the first violation */
};
extern struct arena *arena;

/* Maps the arena. Returns 0, or -errno. */
int arena_open(void);

void arena_count(enum count what);

/* Reports a violation, and ends the run. */
__attribute__((format(printf, 1, 2))) void violation(const char *format, ...);

/* oracle_enter(): this thread has got the lock of the segment. oracle_leave(): it is about to
 * release it. */
void oracle_enter(unsigned segment, unsigned party, unsigned thread, enum inside how);
void oracle_leave(unsigned segment, unsigned party, unsigned thread);

/* Returns whether this program has killed the process, so that its death may be reported. */
bool oracle_knows_dead(pid_t pid);

/* For the supervisor. oracle_doom(): the party is about to be killed. oracle_wipe(): it is gone. */
void oracle_doom(unsigned party);
void oracle_wipe(unsigned party);

#endif
