/* SPDX-License-Identifier: Apache-2.0 */
/* One-way latency of a frame from one process to another, beside other ways to pass it. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shmview/stream.h>

#include "courier.h"
#include "streams.h"

#define FRAMES        2000
#define FRAMES_PARKED 101
#define PARK_NS       1000000 /* long enough for any reader to park */
#define POLL_NS       500     /* long enough for it to call again */
#define WAIT_NS       10000000000

/* --- The courier of shmview ---------------------------------------------- */

int stream_make(struct bench *bench, const char *name, uint32_t mode, uint32_t n_slots,
                int64_t bytes, struct shmview_stream **ret)
{
    const struct shmview_view_spec view = {
        .name = "bytes", .format = "uint8", .ndim = 1, .shape = &bytes};
    const struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = mode,
        .n_slots = n_slots,
        .views = &view,
        .n_views = 1,
    };
    if (shmview_stream_create(bench->connection, name, &spec, ret))
        return failed("no stream: %s", shmview_error_text());
    return 0;
}

static int open_shmview(struct courier *c, bool writes)
{
    struct shmview_frame frame;
    int r = writes ? shmview_stream_loan(c->stream, shmview_deadline(WAIT_NS), &frame)
                   : shmview_stream_join(c->stream);
    if (r)
        return failed("no stream: %s", shmview_error_text());
    if (writes)
        shmview_frame_discard(&frame);
    return 0;
}

static int send_shmview(struct courier *c)
{
    struct shmview_frame frame;
    if (shmview_stream_loan(c->stream, shmview_deadline(WAIT_NS), &frame))
        return failed("no slot: %s", shmview_error_text());
    frame.time_ns = now_ns();
    return shmview_frame_publish(&frame) ? failed("%s", shmview_error_text()) : 0;
}

static int receive_shmview(struct courier *c, int64_t *ret_sent_ns)
{
    struct shmview_frame frame;
    if (shmview_stream_take(c->stream, SHMVIEW_FOREVER, &frame))
        return failed("no frame: %s", shmview_error_text());
    *ret_sent_ns = frame.time_ns;
    shmview_frame_release(&frame);
    return 0;
}

static const struct courier ours = {
    .name = "shmview",
    .open = open_shmview,
    .send = send_shmview,
    .receive = receive_shmview,
};

/* --- One run ------------------------------------------------------------- */

struct shared {
    _Alignas(128) volatile uint32_t got; /* frames that the reader has taken */
    _Alignas(128) volatile uint32_t reader_is_ready, reader_is_done, writer_is_done;
    double taken[FRAMES];
};

/* One side of a contest. */
struct side {
    struct courier courier;
    const struct cpus *cpus;
    enum place place;
    struct shared *shared;
};

static uint32_t frames_of(const struct side *side)
{
    return side->courier.polls ? FRAMES : FRAMES_PARKED;
}

static void run_reader(void *arg)
{
    struct side *side = arg;
    struct courier *c = &side->courier;
    struct shared *s = side->shared;
    place_process(side->cpus, side->place, 1, 0);
    if (c->open(c, false))
        return;
    s->reader_is_ready = 1;
    for (uint32_t i = 0; i < frames_of(side); i++) {
        int64_t sent;
        if (c->receive(c, &sent))
            return;
        s->taken[i] = (double)(now_ns() - sent);
        s->got = i + 1;
    }
    s->reader_is_done = 1;
    if (c->close)
        c->close(c, false);
}

/* Busy, unless the reader has the same CPU. */
static void pause_for(enum place place, int64_t ns)
{
    int64_t until = now_ns() + ns;
    struct timespec t = {0, ns};
    if (place == PLACE_SAME)
        nanosleep(&t, NULL);
    while (now_ns() < until)
        continue;
}

static int await_got(const struct side *side, uint32_t n)
{
    int64_t limit = now_ns() + WAIT_NS;
    if (side->place == PLACE_SAME)
        return wait_for(&side->shared->got, n);
    while (side->shared->got < n)
        if (now_ns() > limit)
            return -1;
    return 0;
}

static void run_writer(void *arg)
{
    struct side *side = arg;
    struct courier *c = &side->courier;
    struct shared *s = side->shared;
    place_process(side->cpus, side->place, 0, 0);
    if (c->open(c, true) || wait_for(&s->reader_is_ready, 1))
        return;
    for (uint32_t i = 0; i < frames_of(side); i++) {
        pause_for(side->place, c->polls ? POLL_NS : PARK_NS);
        if (c->send(c) || await_got(side, i + 1))
            return;
    }
    s->writer_is_done = 1;
    wait_for(&s->reader_is_done, 1); /* before the writer hangs up */
    if (c->close)
        c->close(c, true);
}

static void await_end(pid_t pid)
{
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

static int run_side(void *arg, double *ret)
{
    struct side *side = arg;
    struct courier *c = &side->courier;
    struct shared *s = side->shared;
    memset(s, 0, sizeof *s);
    if (c->begin && c->begin(c))
        return -1;
    fflush(NULL); /* some children end by exit() */
    pid_t reader = child_start(run_reader, side);
    pid_t writer = child_start(run_writer, side);
    await_end(writer);
    if (s->reader_is_done)
        await_end(reader);
    else
        child_end(reader);
    if (c->end)
        c->end(c);
    if (!s->writer_is_done)
        return failed("%s passes no frames", c->name);
    uint32_t n = frames_of(side), warm_up = n / 10;
    *ret = median(s->taken + warm_up, n - warm_up);
    return 0;
}

/* --- The rows ------------------------------------------------------------ */

struct latency {
    struct bench *bench;
    struct shared *shared;
    struct shmview_stream *small, *large;
    bool has_roudi;
};

static void add_side(const struct latency *l, struct side *ret, const struct courier *courier,
                     struct shmview_stream *stream, enum place place, bool polls)
{
    *ret = (struct side){*courier, &l->bench->cpus, place, l->shared};
    ret->courier.polls = polls;
    ret->courier.stream = stream;
    ret->courier.instance = l->bench->instance;
}

static void add_contestant(struct contest *contest, struct side *side, const char *name,
                           struct target target)
{
    contest->list[contest->n++] = (struct contestant){name, run_side, side, target};
}

static void run_latency(const struct latency *l, enum place place, bool polls)
{
    struct bench *bench = l->bench;
    const struct courier *others[] = {l->has_roudi ? courier_iceoryx : NULL, courier_zeromq,
                                      &courier_pipe, &courier_bare};
    struct side sides[ARRAY_LEN(others) + 1];
    struct contest contest = {.unit = "us", .scale = 1e-3, .rounds = 11, .rounds_quick = 3};
    snprintf(contest.what, sizeof contest.what, "frame to a %s reader, %s",
             polls ? "polling" : "parked", place_name(place));
    add_side(l, &sides[0], &ours, l->small, place, polls);
    add_contestant(&contest, &sides[0], ours.name, (struct target){0});
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct target target = {0};
        if (!others[i])
            continue;
        if (others[i] == courier_iceoryx && !polls)
            target = (struct target){TARGET_RATIO, 0.8};
        if (others[i] == &courier_bare && polls)
            target = (struct target){TARGET_VALUE, 0.3};
        add_side(l, &sides[i + 1], others[i], NULL, place, polls);
        add_contestant(&contest, &sides[i + 1],
                       others[i] == &courier_bare && polls ? "a bare ring" : others[i]->name,
                       target);
    }
    contest_run(bench, &contest);
}

/* The frame is as large as it is: nobody writes or reads its bytes, as neither call does. */
static void run_sizes(const struct latency *l, bool polls)
{
    struct side large, small;
    struct contest contest = {.unit = "us", .scale = 1e-3, .rounds = 21, .rounds_quick = 5};
    snprintf(contest.what, sizeof contest.what, "64 MiB to a %s reader, two cores",
             polls ? "polling" : "parked");
    add_side(l, &large, &ours, l->large, PLACE_TWO, polls);
    add_side(l, &small, &ours, l->small, PLACE_TWO, polls);
    add_contestant(&contest, &large, ours.name, (struct target){0});
    add_contestant(&contest, &small, "64 bytes", (struct target){TARGET_RATIO, 1.1});
    contest_run(l->bench, &contest);
}

static void run_rows(struct latency *l)
{
    bool two = place_exists(&l->bench->cpus, PLACE_TWO);
    if (two)
        run_latency(l, PLACE_TWO, false);
    run_latency(l, PLACE_SAME, false);
    if (!two)
        return;
    run_latency(l, PLACE_TWO, true);
    if (stream_make(l->bench, "large-frames", SHMVIEW_LOSSLESS, 8, STREAM_LARGE_BYTES, &l->large))
        return; /* these rows need half a GiB of /dev/shm */
    run_sizes(l, true);
    run_sizes(l, false);
    shmview_stream_close(l->large);
}

/* Any row of these groups: they share RouDi. */
static bool wants_any(const struct bench *bench)
{
    return bench_wants_placed(bench, "frame to a parked reader") ||
           bench_wants_placed(bench, "frame to a polling reader") ||
           bench_wants_placed(bench, "64 MiB to a polling reader") ||
           bench_wants_placed(bench, "64 MiB to a parked reader");
}

void bench_streams(struct bench *bench)
{
    struct latency l = {.bench = bench};
    pid_t roudi = -1;
    if (!wants_any(bench) && !stream_costs_wanted(bench))
        return;
    l.has_roudi = courier_iceoryx && roudi_start(&roudi) == 0;
    if (!l.has_roudi)
        failed("rows beside iceoryx are left out");
    if (!courier_zeromq)
        failed("rows beside ZeroMQ are left out");
    void *p =
        mmap(NULL, sizeof *l.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || stream_make(bench, "frames", SHMVIEW_LOSSLESS, 8, 64, &l.small)) {
        failed("no streams to measure");
        bench->n_failed++;
    } else {
        l.shared = p;
        if (wants_any(bench))
            run_rows(&l);
        bench_stream_costs(bench, l.has_roudi);
    }
    shmview_stream_close(l.small);
    if (p != MAP_FAILED)
        munmap(p, sizeof *l.shared);
    roudi_end(roudi);
}
