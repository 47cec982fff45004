/* SPDX-License-Identifier: Apache-2.0 */
/* How much an attach is delayed while eight gigabytes are committed, and while they are freed. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "bench.h"

#define SEGMENT       "bench"
#define SEGMENT_BYTES 65536
#define LARGE         "large"
#define LARGE_BYTES   ((uint64_t)8 << 30)
#define SAMPLES_MAX   200000
#define SAMPLES_IDLE  4000
#define LOOK_EVERY    8 /* attaches */
#define PATIENCE_NS   60000000000

enum order {
    ORDER_CREATE = 1,
    ORDER_REMOVE
};

/* Shared by the process that measures and the one that disturbs it. */
struct shared {
    volatile uint32_t n_orders, n_done;
    enum order order;
};

struct large {
    struct bench *bench;
    struct shared *shared;
    const char *socket;
    double percentile;
    double *samples;
    size_t n;
};

/* --- Who creates and removes --------------------------------------------- */

static void obey(void *arg)
{
    const struct large *l = arg;
    struct shmview_connection *c;
    struct shmview_segment *s = NULL;
    static const struct shmview_create_options manual = {.struct_bytes = sizeof manual,
                                                         .lifetime = SHMVIEW_MANUAL};
    if (shmview_connect(l->socket, SHMVIEW_CONNECT_NO_START, &c))
        return;
    for (uint32_t n = 0;; n++) {
        while (l->shared->n_orders == n)
            usleep(200);
        int r = l->shared->order == ORDER_CREATE
                    ? shmview_create(c, LARGE, LARGE_BYTES, &manual, &s) || shmview_detach(s)
                    : shmview_remove(c, LARGE);
        if (r)
            failed("8 GiB: %s", shmview_error_text());
        __atomic_store_n(&l->shared->n_done, n + 1, __ATOMIC_SEQ_CST);
    }
}

static uint32_t give_order(struct large *l, enum order order)
{
    l->shared->order = order;
    return __atomic_add_fetch(&l->shared->n_orders, 1, __ATOMIC_SEQ_CST);
}

/* As wait_for(), for something that takes seconds on a machine that is busy. */
static int await_done(const struct large *l, uint32_t order)
{
    for (int64_t deadline = now_ns() + PATIENCE_NS; l->shared->n_done < order; usleep(200))
        if (now_ns() > deadline)
            return failed("8 GiB: no answer");
    return 0;
}

static uint64_t bytes_free(void)
{
    struct statvfs fs;
    return statvfs("/dev/shm", &fs) ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

/* --- Who measures -------------------------------------------------------- */

/* One more sample. Returns 0 or -1. */
static int sample(struct large *l)
{
    struct shmview_segment *s;
    int64_t start = now_ns();
    if (shmview_attach(l->bench->connection, SEGMENT, SHMVIEW_WRITE, 0, &s) || shmview_detach(s))
        return failed("attach: %s", shmview_error_text());
    if (l->n < SAMPLES_MAX)
        l->samples[l->n++] = (double)(now_ns() - start);
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int finish(struct large *l, double *ret)
{
    if (l->n < 100)
        return failed("only %zu attaches meanwhile", l->n);
    qsort(l->samples, l->n, sizeof *l->samples, compare);
    *ret = l->samples[(size_t)((double)(l->n - 1) * l->percentile)];
    return 0;
}

static int run_idle(void *arg, double *ret)
{
    struct large *l = arg;
    for (l->n = 0; l->n < SAMPLES_IDLE;)
        if (sample(l))
            return -1;
    return finish(l, ret);
}

static int await_free(uint64_t before)
{
    for (int64_t deadline = now_ns() + PATIENCE_NS; bytes_free() + LARGE_BYTES / 2 < before;)
        if (now_ns() > deadline)
            return failed("8 GiB are not given back");
        else
            usleep(1000);
    return 0;
}

static int run_creating(void *arg, double *ret)
{
    struct large *l = arg;
    uint64_t before = bytes_free();
    l->n = 0;
    uint32_t order = give_order(l, ORDER_CREATE);
    while (l->shared->n_done < order)
        if (sample(l))
            return -1;
    if (finish(l, ret))
        return -1;
    order = give_order(l, ORDER_REMOVE);
    return await_done(l, order) || await_free(before) ? -1 : 0;
}

static int run_removing(void *arg, double *ret)
{
    struct large *l = arg;
    uint64_t before = bytes_free();
    if (await_done(l, give_order(l, ORDER_CREATE)))
        return -1;
    l->n = 0;
    give_order(l, ORDER_REMOVE);
    do
        for (int i = 0; i < LOOK_EVERY; i++)
            if (sample(l))
                return -1;
    while (bytes_free() + SEGMENT_BYTES * 16 < before && l->n < SAMPLES_MAX);
    return finish(l, ret);
}

/* --- The rows ------------------------------------------------------------ */

static bool has_memory(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 &&
           (uint64_t)info.freeram * info.mem_unit > LARGE_BYTES + LARGE_BYTES / 4 &&
           bytes_free() > LARGE_BYTES + LARGE_BYTES / 4;
}

static const struct {
    const char *what;
    double percentile;
    int (*run)(void *, double *);
    unsigned rounds;
    struct target target;
} rows[] = {
    {"attach p50, 8 GiB being created", 0.5, run_creating, 3, {0}},
    {"attach p99, 8 GiB being created", 0.99, run_creating, 7, {TARGET_RATIO, 2}},
    {"attach p50, 8 GiB being removed", 0.5, run_removing, 3, {0}},
    {"attach p99, 8 GiB being removed", 0.99, run_removing, 7, {TARGET_RATIO, 2}},
};

static void run_rows(struct large *l)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct contest contest = {
            .unit = "us",
            .scale = 1e-3,
            .rounds = rows[i].rounds,
            .rounds_quick = 1,
            .n = 2,
            .list = {{"shmview", rows[i].run, l, {0}}, {"idle", run_idle, l, rows[i].target}},
        };
        snprintf(contest.what, sizeof contest.what, "%s", rows[i].what);
        l->percentile = rows[i].percentile;
        contest_run(l->bench, &contest);
    }
}

void bench_large(struct bench *bench)
{
    struct large l = {.bench = bench, .socket = bench->instance->socket};
    struct shmview_segment *segment = NULL;
    bool wanted = false;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        wanted |= bench_wants(bench, rows[i].what);
    if (!wanted)
        return;
    if (!has_memory()) {
        failed("no segment of 8 GiB: memory and /dev/shm are to have 10 GiB free");
        return;
    }
    l.samples = calloc(SAMPLES_MAX, sizeof *l.samples);
    l.shared =
        mmap(NULL, sizeof *l.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!l.samples || l.shared == MAP_FAILED ||
        shmview_create(bench->connection, SEGMENT, SEGMENT_BYTES, NULL, &segment)) {
        failed("not measured: %s", rows[0].what);
        bench->n_failed++;
        return;
    }
    pid_t other = child_start(obey, &l);
    run_rows(&l);
    child_end(other);
    shmview_detach(segment);
    munmap(l.shared, sizeof *l.shared);
    free(l.samples);
}
