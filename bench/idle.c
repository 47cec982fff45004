/* SPDX-License-Identifier: Apache-2.0 */
/* The processor time that a wait of a second takes: of the process that waits, and of the daemon,
 * to which a process that waits for a lock reports its holder. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define WAIT_NS    1000000000
#define SECONDS    (WAIT_NS / 1e9)
#define ROUNDS_MAX 3
/* A thousandth of a processor. */
#define MOST_US 1000

struct shared {
    volatile uint32_t held, done;
    volatile double used_us; /* a second, by the one that waits and by the daemon */
};

/* A call that waits for WAIT_NS in vain. */
struct idle {
    int (*wait)(struct idle *idle, int64_t deadline);
    bool is_for_holder; /* it waits because another process has the lock */
    struct shmview_segment *segment;
    struct shared *shared;
    clockid_t daemon; /* its processor time */
};

static int wait_change(struct idle *idle, int64_t deadline)
{
    uint32_t seen = shmview_change(idle->segment);
    return shmview_wait_change(idle->segment, seen, deadline, &seen);
}

static int wait_lock(struct idle *idle, int64_t deadline)
{
    return shmview_lock_until(idle->segment, deadline);
}

static int wait_shared(struct idle *idle, int64_t deadline)
{
    return shmview_lock_shared_until(idle->segment, deadline);
}

/* --- One wait ------------------------------------------------------------ */

static double used_us(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void run_holder(void *arg)
{
    struct idle *idle = arg;
    if (shmview_lock(idle->segment) < 0) /* after the first holder the owner has died */
        return;
    idle->shared->held = 1;
    for (;;)
        pause();
}

static void run_waiter(void *arg)
{
    struct idle *idle = arg;
    /* the first call of a forked child attaches the segment, which is no part of a wait */
    if (idle->wait(idle, shmview_deadline(0)) != -SHMVIEW_ERR_TIMED_OUT)
        return;
    double before = used_us(CLOCK_PROCESS_CPUTIME_ID) + used_us(idle->daemon);
    int r = idle->wait(idle, shmview_deadline(WAIT_NS));
    double after = used_us(CLOCK_PROCESS_CPUTIME_ID) + used_us(idle->daemon);
    idle->shared->used_us = (after - before) / SECONDS;
    idle->shared->done = r == -SHMVIEW_ERR_TIMED_OUT;
}

static int run_wait(struct idle *idle, double *ret)
{
    memset(idle->shared, 0, sizeof *idle->shared);
    pid_t holder = idle->is_for_holder ? child_start(run_holder, idle) : -1, waiter = -1;
    int r = idle->is_for_holder ? wait_for(&idle->shared->held, 1) : 0;
    if (r == 0) {
        waiter = child_start(run_waiter, idle);
        r = wait_for(&idle->shared->done, 1);
        *ret = idle->shared->used_us;
    }
    child_end(waiter);
    child_end(holder);
    return r ? failed("a wait does not end in time") : 0;
}

/* --- The reference ------------------------------------------------------- */

/* Returns the processor time, of a second, of a process that sleeps ten times: what the kernel
 * takes to end a sleep and to begin the next one. */
static double sleep_ten_times(void)
{
    const struct timespec tenth = {.tv_nsec = WAIT_NS / 10};
    double before = used_us(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 10; i++)
        nanosleep(&tenth, NULL);
    return (used_us(CLOCK_PROCESS_CPUTIME_ID) - before) / SECONDS;
}

/* --- The rows ------------------------------------------------------------ */

static void run(struct bench *bench, const char *what, struct idle *idle)
{
    unsigned rounds = bench->quick ? 1 : ROUNDS_MAX;
    double used[ROUNDS_MAX], sleeps[ROUNDS_MAX], ratios[ROUNDS_MAX];
    struct row row = {.unit = "us/s", .target = {TARGET_VALUE, MOST_US}};
    if (!bench_wants(bench, what))
        return;
    int r = clock_getcpuclockid(bench->instance->daemon, &idle->daemon)
                ? failed("the daemon's time cannot be read")
                : 0;
    for (unsigned i = 0; i < rounds && r == 0; i++) {
        r = run_wait(idle, &used[i]);
        sleeps[i] = sleep_ten_times();
        ratios[i] = used[i] / sleeps[i];
    }
    if (r) {
        bench->n_failed++;
        return;
    }
    snprintf(row.what, sizeof row.what, "%s", what);
    snprintf(row.reference_name, sizeof row.reference_name, "ten sleeps");
    row.ours = median(used, rounds);
    row.reference = median(sleeps, rounds);
    row.ratio = median(ratios, rounds); /* sorts them */
    row.ratio_min = ratios[0];
    row.ratio_max = ratios[rounds - 1];
    table_add(&bench->table, &row);
}

void bench_idle(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || shmview_create(bench->connection, "idle", 4096, NULL, &segment)) {
        failed("nothing to wait for: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        struct idle change = {wait_change, false, segment, p, 0};
        struct idle lock = {wait_lock, true, segment, p, 0};
        struct idle shared = {wait_shared, true, segment, p, 0};
        run(bench, "processor, a wait for a change", &change);
        run(bench, "processor, a wait for the lock", &lock);
        run(bench, "processor, a wait for a shared lock", &shared);
    }
    shmview_detach(segment);
    if (p != MAP_FAILED)
        munmap(p, sizeof(struct shared));
}
