/* SPDX-License-Identifier: Apache-2.0 */
/* One notify and many processes that have parked in shmview_wait_change(), beside one futex on
 * which as many have parked. */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define WAITERS_MAX 64
#define NOTIFIES    11
#define PARKED_US   2000 /* after so long each waiter has parked */

struct shared {
    _Alignas(128) _Atomic uint32_t bare; /* the futex of the reference */
    _Alignas(128) volatile uint32_t waiting;
    _Alignas(128) volatile uint32_t done;
    volatile int64_t last_ns;
};

struct side {
    int (*wait)(struct side *, uint32_t *seen);
    void (*notify)(struct side *);
    struct shmview_segment *segment;
    struct shared *shared;
    int n;
    bool of_call; /* the figure is the time of the call, not until the last one has returned */
};

/* --- The two ways to wait ------------------------------------------------ */

static int wait_shmview(struct side *side, uint32_t *seen)
{
    return shmview_wait_change(side->segment, *seen, SHMVIEW_FOREVER, seen);
}

static void notify_shmview(struct side *side)
{
    shmview_notify(side->segment);
}

static int wait_bare(struct side *side, uint32_t *seen)
{
    while (atomic_load(&side->shared->bare) == *seen)
        syscall(SYS_futex, &side->shared->bare, FUTEX_WAIT, *seen, NULL, NULL, 0);
    ++*seen;
    return 0;
}

static void notify_bare(struct side *side)
{
    atomic_fetch_add(&side->shared->bare, 1);
    syscall(SYS_futex, &side->shared->bare, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- One run ------------------------------------------------------------- */

static void run_waiter(void *arg)
{
    struct side *side = arg;
    struct shared *s = side->shared;
    uint32_t seen = side->wait == wait_bare ? 0 : shmview_change(side->segment);
    for (int i = 0; i < NOTIFIES; i++) {
        __sync_fetch_and_add(&s->waiting, 1);
        if (side->wait(side, &seen))
            return;
        int64_t now = now_ns();
        if (__sync_add_and_fetch(&s->done, 1) == (uint32_t)(side->n * (i + 1)))
            s->last_ns = now;
    }
}

static int notify_all(struct side *side, double *ret)
{
    struct shared *s = side->shared;
    double taken[NOTIFIES];
    for (int i = 0; i < NOTIFIES; i++) {
        uint32_t all = (uint32_t)(side->n * (i + 1));
        if (wait_for(&s->waiting, all))
            return failed("%d waiters do not come", side->n);
        usleep(PARKED_US);
        int64_t start = now_ns();
        side->notify(side);
        int64_t called = now_ns();
        if (wait_for(&s->done, all))
            return failed("of %d waiters not all are woken", side->n);
        usleep(50); /* the last one writes its time after it has counted itself */
        taken[i] = (double)((side->of_call ? called : s->last_ns) - start);
    }
    *ret = median(taken, NOTIFIES);
    return 0;
}

static int run_side(void *arg, double *ret)
{
    struct side *side = arg;
    pid_t pids[WAITERS_MAX];
    memset(side->shared, 0, sizeof *side->shared);
    for (int i = 0; i < side->n; i++)
        pids[i] = child_start(run_waiter, side);
    int r = notify_all(side, ret);
    for (int i = 0; i < side->n; i++)
        child_end(pids[i]);
    return r;
}

/* --- The rows ------------------------------------------------------------ */

static void run(struct bench *bench, struct shmview_segment *segment, struct shared *shared, int n,
                bool of_call)
{
    struct side ours = {wait_shmview, notify_shmview, segment, shared, n, of_call};
    struct side bare = {wait_bare, notify_bare, segment, shared, n, of_call};
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"shmview", run_side, &ours, {0}}, {"one futex", run_side, &bare, {0}}},
    };
    snprintf(contest.what, sizeof contest.what, "many notified, %d parked%s", n,
             of_call ? ", the call" : "");
    contest_run(bench, &contest);
}

void bench_many_notified(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || shmview_create(bench->connection, "notified", 4096, NULL, &segment)) {
        failed("no change to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        for (int n = 1; n <= WAITERS_MAX; n *= 4) {
            run(bench, segment, p, n, false);
            run(bench, segment, p, n, true);
        }
    }
    shmview_detach(segment);
    if (p != MAP_FAILED)
        munmap(p, sizeof(struct shared));
}
