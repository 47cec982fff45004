/* SPDX-License-Identifier: Apache-2.0 */
/* What the attachments of others, who do nothing, cost an owner. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define PAIRS 200000
#define FEW   2
#define MANY  64

struct crowding {
    const struct instance *instance;
    volatile uint32_t *attached;
};

/* The other attachments of both segments. Each has locked once. */
static int attach_idle(struct shmview_connection *c, const char *name, int n)
{
    for (int i = 0; i < n; i++) {
        struct shmview_segment *s;
        if (shmview_attach(c, name, SHMVIEW_WRITE, 0, &s) || shmview_lock(s) || shmview_unlock(s))
            return failed("attach: %s", shmview_error_text());
    }
    return 0;
}

static void run_idle(void *arg)
{
    const struct crowding *crowding = arg;
    struct shmview_connection *c;
    if (shmview_connect(crowding->instance->socket, SHMVIEW_CONNECT_NO_START, &c) ||
        attach_idle(c, "slots-few", FEW - 1) || attach_idle(c, "slots-many", MANY - 1))
        return;
    *crowding->attached = 1;
    for (;;)
        pause();
}

static int run_pairs(void *arg, double *ret)
{
    struct shmview_segment *s = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PAIRS; i++)
        if (shmview_lock(s) || shmview_unlock(s))
            return failed("lock: %s", shmview_error_text());
    *ret = (double)(now_ns() - start) / PAIRS;
    return 0;
}

static void run_rows(struct bench *bench, struct shmview_segment *few, struct shmview_segment *many)
{
    struct contest contest = {
        .what = "lock+unlock, 64 attached",
        .unit = "ns",
        .scale = 1,
        .rounds = 31,
        .rounds_quick = 11,
        .n = 2,
        .list = {{"shmview", run_pairs, many, {0}},
                 {"2 attached", run_pairs, few, {TARGET_RATIO, 1.15}}},
    };
    struct contest after = contest;
    snprintf(after.what, sizeof after.what, "lock+unlock, 64 attached, read too");
    after.list[1].target = (struct target){0};
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    contest_run(bench, &contest);
    /* from the first reader on an owner looks at the slots */
    if (shmview_lock_shared(few) || shmview_unlock(few) || shmview_lock_shared(many) ||
        shmview_unlock(many)) {
        failed("lock: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        contest_run(bench, &after);
    }
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

void bench_slots(struct bench *bench)
{
    struct shmview_segment *few = NULL, *many = NULL;
    void *p =
        mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct crowding crowding = {bench->instance, p};
    pid_t idle = -1;
    if (p != MAP_FAILED && shmview_create(bench->connection, "slots-few", 4096, NULL, &few) == 0 &&
        shmview_create(bench->connection, "slots-many", 4096, NULL, &many) == 0) {
        idle = child_start(run_idle, &crowding);
        if (wait_for(crowding.attached, 1) == 0)
            run_rows(bench, few, many);
        else
            bench->n_failed++;
    } else {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    }
    child_end(idle);
    shmview_detach(few);
    shmview_detach(many);
    if (p != MAP_FAILED)
        munmap(p, sizeof(uint32_t));
}
