/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips: ping, and attach with detach. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/many.h>

#include "bench.h"
#include "echo.h"

#define SEGMENT       "bench"
#define SEALED        "bench-sealed"
#define SEGMENT_BYTES 65536
#define CALLS         200
#define TOGETHER      16
/* More segments than a process keeps mapped after it has detached them. */
#define MANY 48

enum {
    EXCHANGE_ATTACH,
    EXCHANGE_DETACH,
    EXCHANGE_PING
};

static const char *const requests[ECHO_EXCHANGES] = {
    "{\"method\":\"io.shmview.Attach\",\"parameters\":{\"name\":\"" SEGMENT
    "\",\"access\":\"write\"}}",
    "{\"method\":\"io.shmview.Detach\",\"parameters\":{\"attachment\":%}}",
    "{\"method\":\"io.shmview.Ping\",\"parameters\":{}}",
};

struct calls {
    struct bench *bench;
    struct exchange exchanges[ECHO_EXCHANGES];
    struct echo with_json, without;
    struct shmview_segment *segment, *sealed; /* keep them alive */
    char names[MANY][16];
    size_t next; /* of names */
    char raw[ECHO_NAME_BYTES];
};

static int finish(int64_t start, double *ret)
{
    *ret = (double)(now_ns() - start) / CALLS;
    return 0;
}

/* --- Ours ---------------------------------------------------------------- */

static int run_ping(void *arg, double *ret)
{
    struct calls *calls = arg;
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++)
        if (shmview_ping(calls->bench->connection))
            return failed("ping: %s", shmview_error_text());
    return finish(start, ret);
}

static int attach(const struct calls *calls, const char *name, double *ret)
{
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++) {
        struct shmview_segment *s;
        if (shmview_attach(calls->bench->connection, name, SHMVIEW_WRITE, 0, &s) ||
            shmview_detach(s))
            return failed("attach: %s", shmview_error_text());
    }
    return finish(start, ret);
}

static int run_attach(void *arg, double *ret)
{
    return attach(arg, SEGMENT, ret);
}

static int run_attach_sealed(void *arg, double *ret)
{
    return attach(arg, SEALED, ret);
}

/* Like run_attach(), for the first n of the names by turns. */
static int attach_by_turns(struct calls *calls, size_t n)
{
    for (int i = 0; i < CALLS; i++) {
        struct shmview_segment *s;
        calls->next = (calls->next + 1) % n;
        if (shmview_attach(calls->bench->connection, calls->names[calls->next], SHMVIEW_WRITE, 0,
                           &s) ||
            shmview_detach(s))
            return failed("attach: %s", shmview_error_text());
    }
    return 0;
}

/* The process has had all of them lately, and has none of them now. */
static int run_attach_again(void *arg, double *ret)
{
    struct calls *calls = arg;
    if (attach_by_turns(calls, TOGETHER))
        return -1;
    int64_t start = now_ns();
    return attach_by_turns(calls, TOGETHER) ? -1 : finish(start, ret);
}

static int run_attach_unmapped(void *arg, double *ret)
{
    int64_t start = now_ns();
    return attach_by_turns(arg, MANY) ? -1 : finish(start, ret);
}

/* As many as run_attach(), so many at a time. */
static int run_attach_many(void *arg, double *ret)
{
    struct calls *calls = arg;
    const char *names[TOGETHER];
    struct shmview_segment *segments[TOGETHER];
    int n = 0;
    for (int i = 0; i < TOGETHER; i++)
        names[i] = calls->names[i];
    int64_t start = now_ns();
    for (; n < CALLS; n += TOGETHER) {
        if (shmview_attach_many(calls->bench->connection, names, TOGETHER, SHMVIEW_WRITE, 0,
                                segments))
            return failed("attach: %s", shmview_error_text());
        if (shmview_detach_many(segments, TOGETHER))
            return failed("detach: %s", shmview_error_text());
    }
    *ret = (double)(now_ns() - start) / n;
    return 0;
}

/* --- References ---------------------------------------------------------- */

static int run_echo_ping(void *arg, double *ret)
{
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++)
        if (echo_call(arg, EXCHANGE_PING, NULL) < 0)
            return -1;
    return finish(start, ret);
}

static int run_echo_attach(void *arg, double *ret)
{
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++)
        if (echo_call(arg, EXCHANGE_ATTACH, NULL) < 0 || echo_call(arg, EXCHANGE_DETACH, NULL) < 0)
            return -1;
    return finish(start, ret);
}

static int run_raw(void *arg, double *ret)
{
    struct calls *calls = arg;
    int64_t start = now_ns();
    for (int i = 0; i < CALLS; i++) {
        int fd = shm_open(calls->raw, O_RDWR, 0);
        void *p = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (fd < 0 || p == MAP_FAILED)
            return failed("%s: %s", calls->raw, strerror(errno));
        munmap(p, SEGMENT_BYTES);
        close(fd);
    }
    return finish(start, ret);
}

/* --- The rows ------------------------------------------------------------ */

static int calls_init(struct calls *calls, struct bench *bench)
{
    *calls = (struct calls){.bench = bench};
    calls->with_json.pid = calls->without.pid = -1;
    calls->with_json.fd = calls->without.fd = -1;
    instance_object_name(calls->raw, sizeof calls->raw, "raw");
    int fd = shm_open(calls->raw, O_CREAT | O_EXCL | O_RDWR, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, SEGMENT_BYTES))
        return failed("%s: %s", calls->raw, strerror(errno));
    close(fd);
    if (shmview_create(bench->connection, SEGMENT, SEGMENT_BYTES, NULL, &calls->segment))
        return failed("create: %s", shmview_error_text());
    const struct shmview_create_options sealed = {.struct_bytes = sizeof sealed,
                                                  .backing = SHMVIEW_BACKING_SEALED};
    if (shmview_create(bench->connection, SEALED, SEGMENT_BYTES, &sealed, &calls->sealed))
        return failed("create: %s", shmview_error_text());
    for (size_t i = 0; i < MANY; i++) {
        const struct shmview_create_options manual = {.struct_bytes = sizeof manual,
                                                      .lifetime = SHMVIEW_MANUAL};
        struct shmview_segment *s;
        snprintf(calls->names[i], sizeof calls->names[i], SEGMENT "%zu", i);
        if (shmview_create(bench->connection, calls->names[i], SEGMENT_BYTES, &manual, &s) ||
            shmview_detach(s))
            return failed("create: %s", shmview_error_text());
    }
    struct exchange *list = calls->exchanges;
    if (exchange_record(list, ECHO_EXCHANGES, requests, bench->instance->socket) ||
        echo_start(&calls->with_json, true, list, ECHO_EXCHANGES, 0))
        return -1;
    return echo_start(&calls->without, false, list, ECHO_EXCHANGES, 0);
}

static void calls_deinit(struct calls *calls)
{
    echo_stop(&calls->with_json);
    echo_stop(&calls->without);
    exchange_free(calls->exchanges, ECHO_EXCHANGES);
    shmview_detach(calls->segment);
    shmview_detach(calls->sealed);
    for (size_t i = 0; i < MANY && calls->names[i][0]; i++)
        shmview_remove(calls->bench->connection, calls->names[i]);
    shm_unlink(calls->raw);
}

static void run_place(struct calls *calls, enum place place)
{
    struct bench *b = calls->bench;
    struct contest ping = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 3,
        .list = {{"shmview", run_ping, calls, {0}},
                 {"libuv+jansson echo", run_echo_ping, &calls->with_json, {0}},
                 {"libuv echo of bytes", run_echo_ping, &calls->without, {0}}},
    };
    struct contest attach = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 4,
        .list = {{"shmview", run_attach, calls, {0}},
                 {"libuv+jansson echo", run_echo_attach, &calls->with_json, {TARGET_RATIO, 1.1}},
                 {"libuv echo of bytes", run_echo_attach, &calls->without, {0}},
                 {"shm_open mmap munmap close", run_raw, calls, {0}}},
    };
    struct contest many = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 2,
        .list = {{"shmview", run_attach_many, calls, {0}},
                 {"libuv+jansson echo", run_echo_attach, &calls->with_json, {TARGET_RATIO, 0.6}}},
    };
    struct contest again = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 2,
        .list = {{"shmview", run_attach_again, calls, {0}},
                 {"not mapped yet", run_attach_unmapped, calls, {TARGET_RATIO, 0.6}}},
    };
    struct contest sealed = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 7,
        .n = 2,
        .list = {{"sealed", run_attach_sealed, calls, {0}},
                 {"file", run_attach, calls, {TARGET_RATIO, 1.1}}},
    };
    snprintf(sealed.what, sizeof sealed.what, "attach+detach sealed, %s", place_name(place));
    snprintf(again.what, sizeof again.what, "attach+detach again, %s", place_name(place));
    snprintf(ping.what, sizeof ping.what, "ping, %s", place_name(place));
    snprintf(attach.what, sizeof attach.what, "attach+detach, %s", place_name(place));
    snprintf(many.what, sizeof many.what, "attach+detach, 16 at once, %s", place_name(place));
    place_process(&b->cpus, place, 0, 0);
    place_process(&b->cpus, place, 1, b->instance->daemon);
    place_process(&b->cpus, place, 1, calls->with_json.pid);
    place_process(&b->cpus, place, 1, calls->without.pid);
    contest_run(b, &ping);
    contest_run(b, &attach);
    contest_run(b, &many);
    contest_run(b, &again);
    contest_run(b, &sealed);
}

void bench_calls(struct bench *bench)
{
    static struct calls calls;
    if (!bench_wants_placed(bench, "ping") && !bench_wants_placed(bench, "attach+detach") &&
        !bench_wants_placed(bench, "attach+detach, 16 at once") &&
        !bench_wants_placed(bench, "attach+detach again") &&
        !bench_wants_placed(bench, "attach+detach sealed"))
        return;
    if (calls_init(&calls, bench) == 0) {
        if (place_exists(&bench->cpus, PLACE_TWO))
            run_place(&calls, PLACE_TWO);
        run_place(&calls, PLACE_SAME);
    } else {
        bench->n_failed++;
    }
    calls_deinit(&calls);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
}
