/* SPDX-License-Identifier: Apache-2.0 */
/* From the release of a lock to the moment when one who has parked for it has it,
 * beside a bare futex. */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define HANDOFFS 61
#define HOLD_NS  300000

struct shared {
    _Alignas(128) _Atomic uint32_t turn; /* handoffs that were begun; a futex */
    _Alignas(128) _Atomic uint32_t done; /* that were ended; a futex */
    _Alignas(128) volatile uint32_t waiting;
    volatile uint32_t ready; /* 1: the waiter has attached */
    volatile int64_t got_ns;
    _Alignas(128) _Atomic uint32_t bare; /* 1: held */
};

struct handoff {
    void (*take)(struct handoff *); /* by the holder: it is free */
    void (*wait)(struct handoff *); /* by the waiter */
    void (*give)(struct handoff *);
    struct shmview_segment *segment;
    struct shared *shared;
    const struct cpus *cpus;
    enum place place;
};

static void futex_wait(_Atomic uint32_t *at, uint32_t value)
{
    syscall(SYS_futex, at, FUTEX_WAIT, value, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *at)
{
    syscall(SYS_futex, at, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void await(_Atomic uint32_t *at, uint32_t value)
{
    for (uint32_t v; (v = atomic_load(at)) != value;)
        futex_wait(at, v);
}

/* --- Both sides ---------------------------------------------------------- */

static void run_waiter(void *arg)
{
    struct handoff *h = arg;
    struct shared *s = h->shared;
    place_process(h->cpus, h->place, 1, 0);
    if (shmview_lock(h->segment) == 0) /* a forked process attaches at its first lock */
        shmview_unlock(h->segment);
    s->ready = 1;
    for (uint32_t i = 1; i <= HANDOFFS; i++) {
        await(&s->turn, i);
        s->waiting = i;
        h->wait(h);
        s->got_ns = now_ns();
        h->give(h);
        atomic_store(&s->done, i);
        futex_wake(&s->done);
    }
}

/* Long enough for the waiter to park: busy where that does not keep it from it. */
static void hold(enum place place)
{
    int64_t until = now_ns() + HOLD_NS;
    struct timespec t = {0, HOLD_NS};
    if (place == PLACE_SAME)
        nanosleep(&t, NULL);
    while (now_ns() < until)
        continue;
}

static int run_handoffs(void *arg, double *ret)
{
    struct handoff *h = arg;
    struct shared *s = h->shared;
    double taken[HANDOFFS];
    memset(s, 0, sizeof *s);
    pid_t waiter = child_start(run_waiter, h);
    int r = wait_for(&s->ready, 1);
    for (uint32_t i = 1; i <= HANDOFFS && r == 0; i++) {
        h->take(h);
        atomic_store(&s->turn, i);
        futex_wake(&s->turn);
        r = wait_for(&s->waiting, i);
        hold(h->place);
        int64_t start = now_ns();
        h->give(h);
        if (r == 0)
            await(&s->done, i);
        taken[i - 1] = (double)(s->got_ns - start);
    }
    child_end(waiter);
    if (r)
        return failed("the waiter does not come");
    *ret = median(taken, HANDOFFS);
    return 0;
}

/* --- The locks ----------------------------------------------------------- */

static void take_shmview(struct handoff *h)
{
    shmview_lock(h->segment);
}

static void give_shmview(struct handoff *h)
{
    shmview_unlock(h->segment);
}

static void take_bare(struct handoff *h)
{
    atomic_store(&h->shared->bare, 1);
}

static void wait_bare(struct handoff *h)
{
    await(&h->shared->bare, 0);
}

/* What a waiter needs that also learns of a death: the kernel looks at two words, and sets a timer
 * of a millisecond, after which the waiter reports the holder. */
static void wait_two(struct handoff *h)
{
    static uint32_t never;
    int64_t end = now_ns() + 1000000;
    struct timespec t = {end / 1000000000, end % 1000000000};
    for (uint32_t v; (v = atomic_load(&h->shared->bare)) != 0;) {
        struct futex_waitv both[2] = {
            {.val = v, .uaddr = (uintptr_t)&h->shared->bare, .flags = FUTEX_32},
            {.uaddr = (uintptr_t)&never, .flags = FUTEX_32},
        };
        syscall(SYS_futex_waitv, both, 2, 0, &t, CLOCK_MONOTONIC);
    }
}

static void give_bare(struct handoff *h)
{
    if (atomic_exchange(&h->shared->bare, 0))
        futex_wake(&h->shared->bare);
}

/* --- The rows ------------------------------------------------------------ */

static void run_place(struct bench *bench, enum place place, struct shmview_segment *segment,
                      struct shared *shared)
{
    struct handoff ours = {take_shmview, take_shmview, give_shmview, segment,
                           shared,       &bench->cpus, place};
    struct handoff bare = {take_bare, wait_bare, give_bare, segment, shared, &bench->cpus, place};
    struct handoff two = bare;
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 21,
        .rounds_quick = 5,
        .n = 3,
        .list = {{"shmview", run_handoffs, &ours, {0}},
                 {"bare futex", run_handoffs, &bare, {TARGET_RATIO, 1.15}},
                 {"futex_waitv, a timer", run_handoffs, &two, {0}}},
    };
    two.wait = wait_two;
    snprintf(contest.what, sizeof contest.what, "handoff to a parked one, %s", place_name(place));
    place_process(&bench->cpus, place, 0, 0);
    contest_run(bench, &contest);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

void bench_handoff(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || shmview_create(bench->connection, "handoff", 4096, NULL, &segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        for (enum place place = PLACE_TWO; place <= PLACE_SAME; place++)
            if (place_exists(&bench->cpus, place))
                run_place(bench, place, segment, p);
    }
    shmview_detach(segment);
    if (p != MAP_FAILED)
        munmap(p, sizeof(struct shared));
}
