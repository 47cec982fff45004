/* SPDX-License-Identifier: Apache-2.0 */
/* One lock and many processes, each on a CPU of its own: 1, 2, 4, ... as many as there are CPUs.
 *
 * docs/SCALING.md predicts these rows from the cache lines that each call writes. */
#include <stdatomic.h>
#include <stdio.h>

#include "crowd.h"

#define SECONDS 0.02

/* --- The locks ----------------------------------------------------------- */

static int lock_shared(void *of)
{
    return shmview_lock_shared(of);
}

static int unlock_shared(void *of)
{
    return shmview_unlock(of);
}

static int lock_read(void *of)
{
    return pthread_rwlock_rdlock(of);
}

static int lock_write(void *of)
{
    return pthread_rwlock_wrlock(of);
}

static int unlock_rwlock(void *of)
{
    return pthread_rwlock_unlock(of);
}

/* No reader can scale better: each process counts on a cache line that no other process uses. */
static _Alignas(128) _Atomic uint32_t own;

static int count_own(void *of)
{
    (void)of;
    atomic_fetch_add(&own, 1);
    return 0;
}

static int uncount_own(void *of)
{
    (void)of;
    atomic_fetch_sub(&own, 1);
    return 0;
}

/* --- Figures of one run -------------------------------------------------- */

/* One side of a contest. */
struct side {
    struct crowd *crowd;
    struct crowd_lock lock;   /* as all processes take it, */
    struct crowd_lock writer; /* but for the first one, if this has a name */
    double (*figure)(const struct crowd *);
};

static int run_side(void *arg, double *ret)
{
    struct side *side = arg;
    side->crowd->first = side->writer.name ? &side->writer : NULL;
    if (crowd_run(side->crowd, &side->lock))
        return -1;
    *ret = side->figure(side->crowd);
    return 0;
}

/* The nanoseconds of a pair of one process, on average: constant if the lock scales. */
static double pair_of_each(const struct crowd *crowd)
{
    return crowd->n / crowd_rate(crowd);
}

/* The nanoseconds of a pair, of all processes together: constant if contention costs nothing. */
static double pair_of_all(const struct crowd *crowd)
{
    return 1 / crowd_rate(crowd);
}

/* The microseconds of a pair of the first process, that writes where the others read. */
static double pair_of_first(const struct crowd *crowd)
{
    return (double)crowd->member[0].ns / (double)crowd->member[0].pairs / 1000;
}

/* --- The rows ------------------------------------------------------------ */

static void run(struct bench *bench, const char *what, const char *unit, const struct side *sides,
                size_t n)
{
    struct contest contest = {.unit = unit, .scale = 1, .rounds = 11, .rounds_quick = 3, .n = n};
    snprintf(contest.what, sizeof contest.what, "many %s, %d CPU%s", what, sides[0].crowd->n,
             sides[0].crowd->n == 1 ? "" : "s");
    for (size_t i = 0; i < n; i++)
        contest.list[i] = (struct contestant){sides[i].lock.name, run_side, (void *)&sides[i], {0}};
    contest_run(bench, &contest);
}

static void run_readers(struct bench *bench, struct crowd *crowd, struct shmview_segment *segment,
                        struct locks *locks)
{
    struct side sides[] = {
        {crowd, {"shmview", lock_shared, unlock_shared, segment}, {0}, pair_of_each},
        {crowd,
         {rwlock_name(RWLOCK_DEFAULT), lock_read, unlock_rwlock,
          &locks->rwlock[RWLOCK_DEFAULT].rwlock},
         {0},
         pair_of_each},
        {crowd, {"a counter each", count_own, uncount_own, NULL}, {0}, pair_of_each},
    };
    crowd->reads = true;
    run(bench, "readers", "ns/pair", sides, ARRAY_LEN(sides));
}

static void run_owners(struct bench *bench, struct crowd *crowd, struct shmview_segment *segment,
                       struct locks *locks)
{
    struct side sides[2] = {{crowd, crowd_shmview, {0}, pair_of_all},
                            {crowd, crowd_robust, {0}, pair_of_all}};
    sides[0].lock.of = segment;
    sides[1].lock.of = &locks->mutex[MUTEX_ROBUST_RECURSIVE].mutex;
    crowd->reads = false;
    run(bench, "owners", "ns/pair", sides, 2);
    if (crowd->n == 1)
        return;
    sides[0].figure = sides[1].figure = crowd_least_share;
    run(bench, "owners, least share", "of mean", sides, 2);
}

static void run_mixed(struct bench *bench, struct crowd *crowd, struct shmview_segment *segment,
                      struct locks *locks)
{
    pthread_rwlock_t *rwlock = &locks->rwlock[RWLOCK_WRITERS].rwlock;
    const char *name = rwlock_name(RWLOCK_WRITERS);
    struct side sides[2] = {{crowd,
                             {"shmview", lock_shared, unlock_shared, segment},
                             {"shmview", crowd_shmview.lock, crowd_shmview.unlock, segment},
                             pair_of_each},
                            {crowd,
                             {name, lock_read, unlock_rwlock, rwlock},
                             {name, lock_write, unlock_rwlock, rwlock},
                             pair_of_each}};
    if (crowd->n == 1)
        return;
    crowd->reads = true;
    run(bench, "with a writer", "ns/pair", sides, 2);
    sides[0].figure = sides[1].figure = pair_of_first;
    run(bench, "with a writer, its own", "us/pair", sides, 2);
}

void bench_many(struct bench *bench)
{
    struct crowd crowd = {0};
    struct shmview_segment *segment = NULL;
    struct locks *locks = locks_new();
    if (!locks || crowd_init(&crowd, bench) ||
        shmview_create(bench->connection, "many", 4096, NULL, &segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        crowd.place = PLACE_TWO;
        crowd.seconds = SECONDS;
        for (crowd.n = 1; crowd.n <= bench->cpus.n; crowd.n *= 2) {
            run_readers(bench, &crowd, segment, locks);
            run_owners(bench, &crowd, segment, locks);
            run_mixed(bench, &crowd, segment, locks);
        }
    }
    shmview_detach(segment);
    crowd_deinit(&crowd);
    locks_free(locks);
}
