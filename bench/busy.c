/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides that are both busy: a notify to a waiter that notifies in return, and a request to a
 * daemon that has just served one. Neither should sleep, so the references poll without end. */
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "echo.h"

#define TURNS        2000
#define TURNS_PAUSED 200

/* What both sides of a run see. */
struct shared {
    _Alignas(128) _Atomic uint32_t turn; /* of the references: counts both sides' steps */
    _Alignas(128) volatile uint32_t ready;
};

struct busy {
    void (*serve)(void *arg);       /* the peer, in a child; NULL: the daemon, or the echo server */
    int (*step)(struct busy *busy); /* there and back. Returns 0 or -1 */
    struct bench *bench;
    struct shmview_segment *segment;
    struct shared *shared;
    struct exchange *exchange; /* a ping, for an echo server */
    struct echo echo;
    uint32_t seen;
    enum place place;
    int64_t pause_ns; /* before each step, spent busy */
    bool mean;        /* the figure is the mean, otherwise the median */
};

static void place_peer(const struct busy *b)
{
    place_process(&b->bench->cpus, b->place, 1, 0);
    b->shared->ready = 1;
}

/* --- Notify -------------------------------------------------------------- */

static void serve_change(void *arg)
{
    struct busy *b = arg;
    uint32_t seen = shmview_change(b->segment);
    place_peer(b);
    while (shmview_wait_change(b->segment, seen, SHMVIEW_FOREVER, &seen) == 0) {
        shmview_notify(b->segment);
        seen++; /* this one's own */
    }
}

static int step_change(struct busy *b)
{
    uint32_t seen = shmview_change(b->segment) + 1;
    return shmview_notify(b->segment) ||
           shmview_wait_change(b->segment, seen, SHMVIEW_FOREVER, &seen);
}

static void serve_spinning(void *arg)
{
    struct busy *b = arg;
    place_peer(b);
    for (uint32_t mine = 1;; mine += 2) {
        while (atomic_load_explicit(&b->shared->turn, memory_order_acquire) != mine)
            continue;
        atomic_fetch_add(&b->shared->turn, 1);
    }
}

static int step_spinning(struct busy *b)
{
    uint32_t next = atomic_fetch_add(&b->shared->turn, 1) + 2;
    while (atomic_load_explicit(&b->shared->turn, memory_order_acquire) != next)
        continue;
    return 0;
}

/* Adds one to the word and sleeps until the other side has added one. */
static void turn_by_futex(struct shared *s, uint32_t until)
{
    for (uint32_t v; (v = atomic_load(&s->turn)) != until;)
        syscall(SYS_futex, &s->turn, FUTEX_WAIT, v, NULL, NULL, 0);
}

static void serve_sleeping(void *arg)
{
    struct busy *b = arg;
    place_peer(b);
    for (uint32_t mine = 1;; mine += 2) {
        turn_by_futex(b->shared, mine);
        atomic_fetch_add(&b->shared->turn, 1);
        syscall(SYS_futex, &b->shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}

static int step_sleeping(struct busy *b)
{
    uint32_t next = atomic_fetch_add(&b->shared->turn, 1) + 2;
    syscall(SYS_futex, &b->shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
    turn_by_futex(b->shared, next);
    return 0;
}

/* --- Calls --------------------------------------------------------------- */

static int step_ping(struct busy *b)
{
    return shmview_ping(b->bench->connection);
}

static int step_echo(struct busy *b)
{
    return echo_call(&b->echo, 0, NULL) < 0 ? -1 : 0;
}

/* --- One run ------------------------------------------------------------- */

static int take_turns(struct busy *b, double *ret)
{
    static double taken[TURNS];
    int n = b->pause_ns ? TURNS_PAUSED : TURNS;
    double sum = 0;
    for (int i = -n / 10; i < n; i++) { /* the first ones are not counted */
        int64_t start = now_ns(), until = start + b->pause_ns;
        while (start < until)
            start = now_ns();
        if (b->step(b))
            return failed("no answer: %s", shmview_error_text());
        double ns = (double)(now_ns() - start);
        if (i >= 0)
            sum += taken[i] = ns;
    }
    *ret = b->mean ? sum / n : median(taken, (size_t)n);
    return 0;
}

static int run_busy(void *arg, double *ret)
{
    struct busy *b = arg;
    memset(b->shared, 0, sizeof *b->shared);
    pid_t peer = b->serve ? child_start(b->serve, b) : -1;
    b->echo = (struct echo){.pid = -1, .fd = -1, .polls = true};
    int r = b->serve && wait_for(&b->shared->ready, 1) ? failed("the peer does not come") : 0;
    if (b->exchange && (r = echo_start(&b->echo, true, b->exchange, 1, 0)) == 0)
        place_process(&b->bench->cpus, b->place, 1, b->echo.pid);
    place_process(&b->bench->cpus, b->place, 0, 0);
    if (r == 0)
        r = take_turns(b, ret);
    echo_stop(&b->echo);
    child_end(peer);
    return r;
}

/* --- The rows ------------------------------------------------------------ */

static void run(struct bench *bench, const char *what, const struct busy *ours,
                const struct busy *reference, const char *name, double most)
{
    struct busy a = *ours, b = *reference;
    a.bench = bench;
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 21,
        .rounds_quick = 5,
        .n = 2,
        .list = {{"shmview", run_busy, &a, {0}}, {name, run_busy, &b, {0}}},
    };
    if (most > 0)
        contest.list[1].target = (struct target){TARGET_RATIO, most};
    b.bench = bench;
    b.segment = a.segment;
    b.shared = a.shared;
    b.place = a.place;
    b.pause_ns = a.pause_ns;
    b.mean = a.mean;
    snprintf(contest.what, sizeof contest.what, "%s%s, %s", what, a.mean ? ", mean" : "",
             place_name(a.place));
    contest_run(bench, &contest);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

static void run_notify(struct bench *bench, struct busy *b)
{
    const struct busy spinning = {.serve = serve_spinning, .step = step_spinning};
    const struct busy sleeping = {.serve = serve_sleeping, .step = step_sleeping};
    b->serve = serve_change;
    b->step = step_change;
    for (b->place = PLACE_TWO; b->place <= PLACE_FREE; b->place++)
        for (int mean = 0; mean < 2 && place_exists(&bench->cpus, b->place); mean++) {
            b->mean = mean;
            if (b->place == PLACE_SAME)
                run(bench, "notify and back", b, &sleeping, "a futex, both sleep", 1.5);
            else
                run(bench, "notify and back", b, &spinning, "both spin", 1.5);
        }
}

static void run_calls(struct bench *bench, struct busy *b)
{
    static const struct {
        const char *what;
        int64_t pause_ns;
        double most;
    } kinds[] = {{"ping at once", 0, 1.5},
                 {"ping after 30 us", 30000, 1.5},
                 {"ping after 1 ms", 1000000, 0}}; /* longer than the daemon polls */
    static const char *const request = "{\"method\":\"io.shmview.Ping\",\"parameters\":{}}";
    struct exchange exchange;
    if (!place_exists(&bench->cpus, PLACE_TWO))
        return;
    if (exchange_record(&exchange, 1, &request, bench->instance->socket)) {
        bench->n_failed++;
        return;
    }
    const struct busy polling = {.exchange = &exchange, .step = step_echo};
    b->serve = NULL;
    b->step = step_ping;
    b->place = PLACE_TWO;
    place_process(&bench->cpus, PLACE_TWO, 1, bench->instance->daemon);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        for (int mean = 0; mean < 2; mean++) {
            b->mean = mean;
            b->pause_ns = kinds[i].pause_ns;
            run(bench, kinds[i].what, b, &polling, "libuv+jansson, both poll", kinds[i].most);
        }
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
    exchange_free(&exchange, 1);
}

void bench_busy(struct bench *bench)
{
    struct busy b = {0};
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || shmview_create(bench->connection, "busy", 4096, NULL, &b.segment)) {
        failed("nothing to be busy with: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        b.shared = p;
        run_notify(bench, &b);
        run_calls(bench, &b);
    }
    shmview_detach(b.segment);
    if (p != MAP_FAILED)
        munmap(p, sizeof(struct shared));
}
