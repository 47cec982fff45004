/* SPDX-License-Identifier: Apache-2.0 */
/* A crowd: processes that take one lock again and again, for rows about speed and fairness under
 * contention. */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include "bench.h"
#include "locks.h"

#define CROWD_MAX CPUS_MAX

/* What one process of the crowd did. */
struct crowd_member {
    _Alignas(128) uint64_t pairs;
    int64_t ns;
    int64_t cpu_ns;
    int64_t longest_ns; /* that it waited for the lock; only if asked for */
};

/* A lock as the crowd takes it. Both return 0 for success. */
struct crowd_lock {
    const char *name;
    int (*lock)(void *of);
    int (*unlock)(void *of);
    void *of;
};

extern const struct crowd_lock crowd_shmview; /* exclusive; of: the segment */
extern const struct crowd_lock crowd_robust;  /* robust recursive mutex; of: it */

struct crowd_shared;

struct crowd {
    const struct cpus *cpus;
    const struct crowd_lock *first; /* how the first process takes the lock; NULL: as the others */
    enum place place;
    int n;
    double seconds;
    bool reads; /* inside: all but `first` look at the words and do not change them */
    bool timed; /* each wait for the lock */
    struct crowd_shared *shared;
    struct crowd_member member[CROWD_MAX]; /* of the last run */
};

/* Maps what its processes share. Returns 0 or -1 after failed(). */
int crowd_init(struct crowd *crowd, const struct bench *bench);
void crowd_deinit(struct crowd *crowd);
/* Lets n processes have at the lock for some seconds. Readers, who never sleep, are
 * let again, a few times, if something else ran on their CPUs.
 * Returns 0 or -1 after failed(). */
int crowd_run(struct crowd *crowd, const struct crowd_lock *lock);
/* Pairs a nanosecond, all of them together. */
double crowd_rate(const struct crowd *crowd);
/* Returns the pairs of the process that got fewest, divided by the mean. */
double crowd_least_share(const struct crowd *crowd);

#endif
