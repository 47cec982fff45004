/* SPDX-License-Identifier: Apache-2.0 */
/* Readers: what a shared pair and an optimistic read cost, and whether two readers
 * on two cores disturb each other. */
#include <stdatomic.h>
#include <stdio.h>

#include "crowd.h"

#define PAIRS   200000
#define SECONDS 0.005

/* --- One reader ---------------------------------------------------------- */

static int finish(int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / PAIRS;
    return 0;
}

static int run_shared(void *arg, double *ret)
{
    struct shmview_segment *s = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (shmview_lock_shared(s) || shmview_unlock(s))
            return failed("lock: %s", shmview_error_text());
    return finish(start, ret);
}

static int run_optimistic(void *arg, double *ret)
{
    struct shmview_segment *s = arg;
    uint64_t version;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (shmview_read_begin(s, &version) || shmview_read_validate(s, version) != 1)
            return failed("an optimistic read fails");
    return finish(start, ret);
}

static int run_rwlock(void *arg, double *ret)
{
    pthread_rwlock_t *l = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (pthread_rwlock_rdlock(l) || pthread_rwlock_unlock(l))
            return failed("a rwlock refuses to be locked");
    return finish(start, ret);
}

static void run_uncontended(struct bench *bench, struct shmview_segment *segment,
                            struct locks *locks)
{
    struct contest shared = {
        .what = "shared pair, uncontended",
        .unit = "ns",
        .scale = 1,
        .rounds = 41,
        .rounds_quick = 11,
        .n = 4,
        .list = {{"shmview", run_shared, segment, {0}},
                 {rwlock_name(RWLOCK_WRITERS),
                  run_rwlock,
                  &locks->rwlock[RWLOCK_WRITERS].rwlock,
                  {TARGET_RATIO, 0.75}},
                 {rwlock_name(RWLOCK_DEFAULT),
                  run_rwlock,
                  &locks->rwlock[RWLOCK_DEFAULT].rwlock,
                  {TARGET_RATIO, 0.87}},
                 {TWO_LOCKED, run_two_locked, NULL, {0}}},
    };
    struct contest optimistic = {
        .what = "optimistic read",
        .unit = "ns",
        .scale = 1,
        .rounds = 41,
        .rounds_quick = 11,
        .n = 2,
        .list = {{"shmview", run_optimistic, segment, {0}},
                 {"shared pair", run_shared, segment, {TARGET_RATIO, 1}}},
    };
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    contest_run(bench, &shared);
    contest_run(bench, &optimistic);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

/* --- Two readers --------------------------------------------------------- */

static int lock_shared(void *of)
{
    return shmview_lock_shared(of);
}

static int unlock_shared(void *of)
{
    return shmview_unlock(of);
}

static int lock_rwlock(void *of)
{
    return pthread_rwlock_rdlock(of);
}

static int unlock_rwlock(void *of)
{
    return pthread_rwlock_unlock(of);
}

/* What two could do at best here: two threads of one core are not two cores. */
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

struct scaling {
    struct crowd *crowd;
    struct crowd_lock lock;
};

/* How many times as much two do as one does alone just before. */
static int run_scaling(void *arg, double *ret)
{
    struct scaling *s = arg;
    s->crowd->n = 1;
    if (crowd_run(s->crowd, &s->lock))
        return -1;
    double alone = crowd_rate(s->crowd);
    s->crowd->n = 2;
    if (crowd_run(s->crowd, &s->lock))
        return -1;
    *ret = crowd_rate(s->crowd) / alone;
    return 0;
}

static void run_two(struct bench *bench, struct shmview_segment *segment, struct locks *locks)
{
    struct crowd crowd;
    struct scaling ours = {&crowd, {"shmview", lock_shared, unlock_shared, segment}};
    struct scaling counter = {&crowd, {"a counter each", count_own, uncount_own, NULL}};
    struct scaling rwlock[RWLOCK_KINDS];
    struct contest contest = {
        .what = "readers, 2 cores over 1",
        .unit = "times",
        .scale = 1,
        .rounds = 31,
        .rounds_quick = 7,
        .n = 1,
        .list = {{"shmview", run_scaling, &ours, {0}}},
    };
    if (!place_exists(&bench->cpus, PLACE_TWO))
        return;
    for (enum rwlock_kind k = 0; k < RWLOCK_KINDS; k++) {
        rwlock[k] = (struct scaling){
            &crowd, {rwlock_name(k), lock_rwlock, unlock_rwlock, &locks->rwlock[k].rwlock}};
        contest.list[contest.n++] =
            (struct contestant){rwlock_name(k), run_scaling, &rwlock[k], {0}};
    }
    contest.list[contest.n++] =
        (struct contestant){"a counter each", run_scaling, &counter, {TARGET_LEAST, 1.7}};
    if (crowd_init(&crowd, bench)) {
        bench->n_failed++;
        return;
    }
    crowd.place = PLACE_TWO;
    crowd.seconds = SECONDS;
    crowd.reads = true;
    contest_run(bench, &contest);
    crowd_deinit(&crowd);
}

void bench_readers(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    struct locks *locks = locks_new();
    if (!locks || shmview_create(bench->connection, "readers", 4096, NULL, &segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        run_two(bench, segment, locks);
        run_uncontended(bench, segment, locks);
    }
    shmview_detach(segment);
    locks_free(locks);
}
