/* SPDX-License-Identifier: Apache-2.0 */
/* Create, and the detach that destroys the segment. The references are the same system calls in one
 * process, and a loop that makes the same objects without JSON; that loop also with both sides
 * polling, as shmview's do. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/layout.h>
#include <shmview/many.h>

#include "bench.h"
#include "echo.h"

#define SEGMENT   "made"
#define TOGETHER  16
#define MAP_BYTES (sizeof(struct shmview_control) + SHMVIEW_SLOTS_MAX * sizeof(struct shmview_slot))

enum {
    EXCHANGE_CREATE,
    EXCHANGE_DETACH,
    EXCHANGES
};

static const struct size {
    const char *name;
    const char *bytes;
    uint64_t n;
    int calls; /* of one measurement */
} sizes[] = {
    {"4 KiB", "4096", 4096, 100},
    {"1 MiB", "1048576", 1 << 20, 20},
    {"64 MiB", "67108864", 64 << 20, 2},
};

struct creation {
    struct bench *bench;
    const struct size *size;
    struct exchange exchanges[EXCHANGES];
    struct echo echo;
    char raw[ECHO_NAME_BYTES];
};

static int finish(const struct creation *c, int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / c->size->calls;
    return 0;
}

static int run_shmview(void *arg, double *ret)
{
    struct creation *c = arg;
    int64_t start = now_ns();
    for (int i = 0; i < c->size->calls; i++) {
        struct shmview_segment *s;
        if (shmview_create(c->bench->connection, SEGMENT, c->size->n, NULL, &s) ||
            shmview_detach(s))
            return failed("create: %s", shmview_error_text());
    }
    return finish(c, start, ret);
}

/* At least as many as run_shmview(), so many at a time. */
static int run_many(void *arg, double *ret)
{
    static const char *const names[TOGETHER] = {"m0",  "m1",  "m2",  "m3", "m4",  "m5",
                                                "m6",  "m7",  "m8",  "m9", "m10", "m11",
                                                "m12", "m13", "m14", "m15"};
    struct creation *c = arg;
    uint64_t bytes[TOGETHER];
    struct shmview_segment *made[TOGETHER];
    int n = 0;
    for (int i = 0; i < TOGETHER; i++)
        bytes[i] = c->size->n;
    int64_t start = now_ns();
    for (; n < c->size->calls; n += TOGETHER)
        if (shmview_create_many(c->bench->connection, names, bytes, TOGETHER, NULL, made) ||
            shmview_detach_many(made, TOGETHER))
            return failed("create: %s", shmview_error_text());
    *ret = (double)(now_ns() - start) / n;
    return 0;
}

static int run_raw(void *arg, double *ret)
{
    struct creation *c = arg;
    int64_t start = now_ns();
    for (int i = 0; i < c->size->calls; i++) {
        int fd = shm_open(c->raw, O_CREAT | O_EXCL | O_RDWR, 0600);
        if (fd < 0 || posix_fallocate(fd, 0, (off_t)c->size->n))
            return failed("%s: %s", c->raw, strerror(errno));
        void *p = mmap(NULL, c->size->n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (p == MAP_FAILED)
            return failed("%s: %s", c->raw, strerror(errno));
        close(fd);
        shm_unlink(c->raw);
        munmap(p, c->size->n);
    }
    return finish(c, start, ret);
}

/* What the library does with the descriptors of a reply. */
static int map_objects(const int *fds, const size_t *bytes, void **maps)
{
    for (int i = 0; i < ECHO_OBJECTS; i++) {
        struct stat st;
        maps[i] = MAP_FAILED;
        if (fstat(fds[i], &st) == 0)
            maps[i] = mmap(NULL, bytes[i], i < 2 ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                           fds[i], 0);
        close(fds[i]);
        if (maps[i] == MAP_FAILED)
            return failed("mmap: %s", strerror(errno));
    }
    return 0;
}

static int run_server(const struct creation *c, struct echo *echo, double *ret)
{
    const size_t bytes[ECHO_OBJECTS] = {c->size->n, MAP_BYTES, ECHO_LOCK_BYTES};
    int64_t start = now_ns();
    for (int i = 0; i < c->size->calls; i++) {
        int fds[ECHO_DESCRIPTORS];
        void *maps[ECHO_OBJECTS];
        if (echo_call(echo, EXCHANGE_CREATE, fds) != ECHO_OBJECTS ||
            map_objects(fds, bytes, maps) || echo_call(echo, EXCHANGE_DETACH, NULL) < 0)
            return failed("the echo server makes no objects");
        for (int k = 0; k < ECHO_OBJECTS; k++)
            munmap(maps[k], bytes[k]);
    }
    return finish(c, start, ret);
}

static int run_echo(void *arg, double *ret)
{
    struct creation *c = arg;
    return run_server(c, &c->echo, ret);
}

/* The server takes a processor as long as it runs, so it runs for this measurement alone. */
static int run_polling(void *arg, double *ret)
{
    struct creation *c = arg;
    struct echo echo = {.pid = -1, .fd = -1, .polls = true};
    int r = echo_start(&echo, false, c->exchanges, EXCHANGES, c->size->n);
    if (r == 0) {
        place_process(&c->bench->cpus, PLACE_TWO, 1, echo.pid);
        r = run_server(c, &echo, ret);
    }
    echo_stop(&echo);
    return r;
}

/* --- The rows ------------------------------------------------------------ */

static int creation_init(struct creation *c, struct bench *bench, const struct size *size)
{
    char create[256];
    const char *const requests[EXCHANGES] = {
        create,
        "{\"method\":\"io.shmview.Detach\",\"parameters\":{\"attachment\":%}}",
    };
    *c = (struct creation){.bench = bench, .size = size, .echo = {.pid = -1, .fd = -1}};
    instance_object_name(c->raw, sizeof c->raw, "raw");
    snprintf(create, sizeof create,
             "{\"method\":\"io.shmview.Create\",\"parameters\":{\"name\":\"" SEGMENT
             "\",\"size\":%s,\"access\":\"write\",\"lock\":true}}",
             size->bytes);
    if (exchange_record(c->exchanges, EXCHANGES, requests, bench->instance->socket))
        return -1;
    c->exchanges[EXCHANGE_CREATE].action = ECHO_MAKE;
    c->exchanges[EXCHANGE_DETACH].action = ECHO_UNMAKE;
    return echo_start(&c->echo, false, c->exchanges, EXCHANGES, size->n);
}

static void run_place(struct creation *c, enum place place)
{
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 21,
        .rounds_quick = 3,
        .n = place == PLACE_TWO ? 4 : 3,
        .list = {{"shmview", run_shmview, c, {0}},
                 {"the calls in process", run_raw, c, {0}},
                 {"libuv loop without JSON", run_echo, c, {0}},
                 {"the loop, both sides poll", run_polling, c, {0}}},
    };
    struct contest many = contest;
    many.n = 2;
    many.list[0].run = run_many;
    many.list[1] = contest.list[2];
    snprintf(contest.what, sizeof contest.what, "create+destroy %s, %s", c->size->name,
             place_name(place));
    snprintf(many.what, sizeof many.what, "create+destroy %s, 16 at once, %s", c->size->name,
             place_name(place));
    place_process(&c->bench->cpus, place, 0, 0);
    place_process(&c->bench->cpus, place, 1, c->bench->instance->daemon);
    place_process(&c->bench->cpus, place, 1, c->echo.pid);
    contest_run(c->bench, &contest);
    if (c->size == sizes)
        contest_run(c->bench, &many);
}

void bench_create(struct bench *bench)
{
    static struct creation c;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        char what[64];
        snprintf(what, sizeof what, "create+destroy %s", sizes[i].name);
        if (!bench_wants_placed(bench, what))
            continue;
        if (creation_init(&c, bench, &sizes[i]) == 0) {
            if (place_exists(&bench->cpus, PLACE_TWO))
                run_place(&c, PLACE_TWO);
            run_place(&c, PLACE_SAME);
        } else {
            bench->n_failed++;
        }
        echo_stop(&c.echo);
        exchange_free(c.exchanges, EXCHANGES);
    }
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
}
