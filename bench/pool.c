/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that are created and written once, also with data that the daemon has made ahead (the
 * key "pool" of its configuration). The reference is raw system calls in one process. Rounds take
 * turns, so the daemon makes the next objects while the reference runs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define SEGMENT   "pooled"
#define RAW_BYTES 64
#define BYTES     ((size_t)1 << 20)
#define CALLS     6

struct pooled {
    struct bench *bench;
    struct instance instance; /* with a pool */
    struct shmview_connection *with, *without;
    char raw[RAW_BYTES];
};

/* One side of a contest. connection is NULL for the raw calls. */
struct side {
    struct pooled *pooled;
    struct shmview_connection *connection;
};

static int once(const struct side *side)
{
    const struct shmview_create_options o = {.struct_bytes = sizeof o, .flags = SHMVIEW_POPULATE};
    struct shmview_segment *s;
    if (shmview_create(side->connection, SEGMENT, BYTES, &o, &s))
        return failed("create: %s", shmview_error_text());
    memset(shmview_data(s), 1, BYTES);
    return shmview_detach(s) ? failed("detach: %s", shmview_error_text()) : 0;
}

static int once_raw(const struct side *side)
{
    int fd = shm_open(side->pooled->raw, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)BYTES))
        return failed("%s: %s", side->pooled->raw, strerror(errno));
    void *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    shm_unlink(side->pooled->raw);
    if (p == MAP_FAILED)
        return failed("mmap: %s", strerror(errno));
    memset(p, 1, BYTES);
    munmap(p, BYTES);
    return 0;
}

static int run(void *arg, double *ret)
{
    const struct side *side = arg;
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++)
        if (side->connection ? once(side) : once_raw(side))
            return -1;
    *ret = (double)(now_ns() - start) / CALLS;
    return 0;
}

static void run_row(struct pooled *p, const char *what, struct side side, double most)
{
    struct side raw = side;
    struct contest contest = {.unit = "us",
                              .scale = 1e-3,
                              .rounds = 21,
                              .rounds_quick = 3,
                              .n = 2,
                              .list = {{"shmview", run, &side, {0}},
                                       {"shm_open, written", run, &raw, {TARGET_RATIO, most}}}};
    raw.connection = NULL;
    snprintf(contest.what, sizeof contest.what, "%s, %s", what, place_name(PLACE_TWO));
    contest_run(p->bench, &contest);
}

static void run_rows(struct pooled *p)
{
    struct bench *bench = p->bench;
    place_process(&bench->cpus, PLACE_TWO, 0, 0);
    place_process(&bench->cpus, PLACE_TWO, 1, p->instance.daemon);
    place_process(&bench->cpus, PLACE_TWO, 1, bench->instance->daemon);
    run_row(p, "create+write 1 MiB, pool", (struct side){p, p->with}, 0.5);
    run_row(p, "create+write 1 MiB", (struct side){p, p->without}, 1.1);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
}

void bench_pool(struct bench *bench)
{
    static struct pooled p;
    if (!place_exists(&bench->cpus, PLACE_TWO) ||
        (!bench_wants_placed(bench, "create+write 1 MiB, pool") &&
         !bench_wants_placed(bench, "create+write 1 MiB")))
        return;
    p = (struct pooled){.bench = bench, .without = bench->connection};
    instance_object_name(p.raw, sizeof p.raw, "pooled");
    if (instance_start_with_pool(&p.instance, bench->instance, "pool") == 0 &&
        shmview_connect(p.instance.socket, SHMVIEW_CONNECT_NO_START, &p.with) == 0)
        run_rows(&p);
    else
        bench->n_failed++;
    shmview_disconnect(p.with);
    if (p.instance.directory[0])
        instance_stop(&p.instance);
}
