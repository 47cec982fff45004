/* SPDX-License-Identifier: Apache-2.0 */
/* What the attachments of others, who do nothing, cost an owner. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "locks.h"

#define PAIRS LOCKS_PAIRS
#define FEW   2
#define MANY  64

/* Segments that many have read, and how many attachments each has with that of this process. */
static const int readers[] = {2, 64, 999};
#define N_READ ((int)ARRAY_LEN(readers))

struct crowding {
    const struct instance *instance;
    volatile uint32_t *attached;
    struct shmview_segment *read[N_READ];
};

static void name_read(char name[32], int i)
{
    snprintf(name, 32, "slots-read-%d", readers[i]);
}

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

/* The other attachments of the segments that were read. Each has shared the lock once. */
static int attach_readers(struct shmview_connection *c)
{
    for (int i = 0; i < N_READ; i++)
        for (int k = 1; k < readers[i]; k++) {
            char name[32];
            struct shmview_segment *s;
            name_read(name, i);
            if (shmview_attach(c, name, SHMVIEW_READ, 0, &s) || shmview_lock_shared(s) ||
                shmview_unlock(s))
                return failed("attach: %s", shmview_error_text());
        }
    return 0;
}

static void run_idle(void *arg)
{
    const struct crowding *crowding = arg;
    struct shmview_connection *c;
    if (shmview_connect(crowding->instance->socket, SHMVIEW_CONNECT_NO_START, &c) ||
        attach_idle(c, "slots-few", FEW - 1) || attach_idle(c, "slots-many", MANY - 1) ||
        attach_readers(c))
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
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    contest_run(bench, &contest);
    if (shmview_lock_shared(few) || shmview_unlock(few) || shmview_lock_shared(many) ||
        shmview_unlock(many)) {
        failed("lock: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        contest_run(bench, &after);
    }
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

/* Exclusive pairs in segments that were read. `state`: of the readers. */
static void run_read(struct bench *bench, struct crowding *crowding, struct locks *locks,
                     const char *state)
{
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    for (int i = 0; i < N_READ; i++) {
        struct contest contest = {
            .unit = "ns",
            .scale = 1,
            .rounds = 31,
            .rounds_quick = 11,
            .n = 2,
            .list = {{"shmview", run_pairs, crowding->read[i], {0}},
                     {mutex_name(MUTEX_ROBUST),
                      run_mutex_pairs,
                      &locks->mutex[MUTEX_ROBUST].mutex,
                      {TARGET_RATIO, 0.83}}},
        };
        snprintf(contest.what, sizeof contest.what, "lock+unlock, read, %d %s", readers[i], state);
        contest_run(bench, &contest);
    }
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

static int create_read(struct shmview_connection *c, struct crowding *crowding)
{
    for (int i = 0; i < N_READ; i++) {
        char name[32];
        name_read(name, i);
        if (shmview_create(c, name, 4096, NULL, &crowding->read[i]))
            return -1;
    }
    return 0;
}

void bench_slots(struct bench *bench)
{
    struct locks *locks = locks_new();
    struct shmview_segment *few = NULL, *many = NULL;
    void *p =
        mmap(NULL, sizeof(uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct crowding crowding = {bench->instance, p, {NULL}};
    pid_t idle = -1;
    if (p != MAP_FAILED && locks &&
        shmview_create(bench->connection, "slots-few", 4096, NULL, &few) == 0 &&
        shmview_create(bench->connection, "slots-many", 4096, NULL, &many) == 0 &&
        create_read(bench->connection, &crowding) == 0) {
        idle = child_start(run_idle, &crowding);
        if (wait_for(crowding.attached, 1) == 0) {
            run_rows(bench, few, many);
            run_read(bench, &crowding, locks, "attached");
            child_end(idle);
            idle = -1;
            run_read(bench, &crowding, locks, "detached");
        } else {
            bench->n_failed++;
        }
    } else {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    }
    child_end(idle);
    shmview_detach(few);
    shmview_detach(many);
    for (int i = 0; i < N_READ; i++)
        shmview_detach(crowding.read[i]);
    locks_free(locks);
    if (p != MAP_FAILED)
        munmap(p, sizeof(uint32_t));
}
