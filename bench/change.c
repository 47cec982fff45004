/* SPDX-License-Identifier: Apache-2.0 */
/* The time from a notify until a waiting process sees the change: one that still spins, and one
 * that has parked. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define NOTIFIES 61
#define SOON_NS  2000
#define LATER_NS 1000000
#define PATIENCE 10000000000

struct shared {
    _Alignas(128) volatile uint32_t waiting;
    _Alignas(128) volatile uint32_t done;
    volatile int64_t got_ns;
};

struct telling {
    struct shmview_segment *segment;
    struct shared *shared;
    const struct cpus *cpus;
    int64_t delay_ns; /* from the wait to the notify */
};

static void run_waiter(void *arg)
{
    struct telling *t = arg;
    struct shared *s = t->shared;
    uint32_t seen = 0;
    place_process(t->cpus, PLACE_TWO, 1, 0);
    for (uint32_t i = 1; i <= NOTIFIES; i++) {
        seen = shmview_change(t->segment);
        s->waiting = i;
        if (shmview_wait_change(t->segment, seen, SHMVIEW_FOREVER, &seen))
            return;
        s->got_ns = now_ns();
        s->done = i;
    }
}

/* Like wait_for(), but busy, because the word changes at once. Returns 0 or -1. */
static int watch_for(const volatile uint32_t *word, uint32_t value)
{
    int64_t limit = now_ns() + PATIENCE;
    while (*word < value)
        if (now_ns() > limit)
            return -1;
    return 0;
}

static int tell(struct telling *t, double *ret)
{
    struct shared *s = t->shared;
    double taken[NOTIFIES];
    for (uint32_t i = 1; i <= NOTIFIES; i++) {
        if (watch_for(&s->waiting, i))
            return failed("the waiter does not come");
        int64_t until = now_ns() + t->delay_ns, start;
        while ((start = now_ns()) < until)
            continue;
        if (shmview_notify(t->segment) || watch_for(&s->done, i))
            return failed("the waiter is not told");
        taken[i - 1] = (double)(s->got_ns - start);
    }
    *ret = median(taken, NOTIFIES);
    return 0;
}

static int run_telling(void *arg, double *ret)
{
    struct telling *t = arg;
    memset(t->shared, 0, sizeof *t->shared);
    pid_t waiter = child_start(run_waiter, t);
    int r = tell(t, ret);
    child_end(waiter);
    return r;
}

void bench_change(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    if (!place_exists(&bench->cpus, PLACE_TWO))
        return;
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || shmview_create(bench->connection, "change", 4096, NULL, &segment)) {
        failed("no change to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        struct telling soon = {segment, p, &bench->cpus, SOON_NS};
        struct telling later = {segment, p, &bench->cpus, LATER_NS};
        struct contest contest = {
            .what = "notify to one who looks, two cores",
            .unit = "us",
            .scale = 1e-3,
            .rounds = 21,
            .rounds_quick = 5,
            .n = 2,
            .list = {{"shmview", run_telling, &soon, {0}},
                     {"to one who has parked", run_telling, &later, {TARGET_RATIO, 0.2}}},
        };
        place_process(&bench->cpus, PLACE_TWO, 0, 0);
        contest_run(bench, &contest);
        place_process(&bench->cpus, PLACE_FREE, 0, 0);
    }
    shmview_detach(segment);
    if (p != MAP_FAILED)
        munmap(p, sizeof(struct shared));
}
