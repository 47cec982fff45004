/* SPDX-License-Identifier: Apache-2.0 */
/* One notify and many processes that have parked in shmview_wait_change(), beside one futex on
 * which as many have parked. One notify and the descriptors of many event loops, beside a process
 * that writes to as many sockets. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"

#define WAITERS_MAX 64
#define NOTIFIES    11
#define PARKED_US   2000 /* after so long each waiter has parked */

struct shared {
    _Alignas(128) _Atomic uint32_t bare; /* the futex of the reference */
    _Alignas(128) volatile uint32_t waiting;
    _Alignas(128) volatile uint32_t done;
    volatile int64_t last_ns;
};

struct side {
    int (*wait)(struct side *, uint32_t *seen);
    void (*notify)(struct side *);
    struct shmview_segment *segment;
    struct shared *shared;
    int n;
    bool of_call; /* the figure is the time of the call, not until the last one has returned */
};

/* --- The two ways to wait ------------------------------------------------ */

static int wait_shmview(struct side *side, uint32_t *seen)
{
    return shmview_wait_change(side->segment, *seen, SHMVIEW_FOREVER, seen);
}

static void notify_shmview(struct side *side)
{
    shmview_notify(side->segment);
}

static int wait_bare(struct side *side, uint32_t *seen)
{
    while (atomic_load(&side->shared->bare) == *seen)
        syscall(SYS_futex, &side->shared->bare, FUTEX_WAIT, *seen, NULL, NULL, 0);
    ++*seen;
    return 0;
}

static void notify_bare(struct side *side)
{
    atomic_fetch_add(&side->shared->bare, 1);
    syscall(SYS_futex, &side->shared->bare, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* --- One run ------------------------------------------------------------- */

static void run_waiter(void *arg)
{
    struct side *side = arg;
    struct shared *s = side->shared;
    uint32_t seen = side->wait == wait_bare ? 0 : shmview_change(side->segment);
    for (int i = 0; i < NOTIFIES; i++) {
        __sync_fetch_and_add(&s->waiting, 1);
        if (side->wait(side, &seen))
            return;
        int64_t now = now_ns();
        if (__sync_add_and_fetch(&s->done, 1) == (uint32_t)(side->n * (i + 1)))
            s->last_ns = now;
    }
}

static int notify_all(struct side *side, double *ret)
{
    struct shared *s = side->shared;
    double taken[NOTIFIES];
    for (int i = 0; i < NOTIFIES; i++) {
        uint32_t all = (uint32_t)(side->n * (i + 1));
        if (wait_for(&s->waiting, all))
            return failed("%d waiters do not come", side->n);
        usleep(PARKED_US);
        int64_t start = now_ns();
        side->notify(side);
        int64_t called = now_ns();
        if (wait_for(&s->done, all))
            return failed("of %d waiters not all are woken", side->n);
        usleep(50); /* the last one writes its time after it has counted itself */
        taken[i] = (double)((side->of_call ? called : s->last_ns) - start);
    }
    *ret = median(taken, NOTIFIES);
    return 0;
}

static int run_side(void *arg, double *ret)
{
    struct side *side = arg;
    pid_t pids[WAITERS_MAX];
    memset(side->shared, 0, sizeof *side->shared);
    for (int i = 0; i < side->n; i++)
        pids[i] = child_start(run_waiter, side);
    int r = notify_all(side, ret);
    for (int i = 0; i < side->n; i++)
        child_end(pids[i]);
    return r;
}

/* --- Event loops --------------------------------------------------------- */

/* Descriptors that become readable, and what makes them so. Nobody has left them unread. */
struct loops {
    struct shmview_segment *segment;               /* of the notifier */
    struct shmview_segment *watching[WAITERS_MAX]; /* NULL for the reference */
    int fd[WAITERS_MAX];
    int n;
    /* the reference: a byte to bell[0] makes the writer write to peer[] */
    int bell[2], peer[WAITERS_MAX];
    pid_t writer;
};

/* Writes as the daemon does, once to each. The one that is measured, fd[0], comes last, as it does
 * in the daemon's list. */
static void run_writer(void *arg)
{
    const struct loops *l = arg;
    const uint64_t one = 1;
    char c;
    while (read(l->bell[1], &c, 1) == 1)
        for (int i = l->n - 1; i >= 0; i--)
            send(l->peer[i], &one, sizeof one, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int await_and_read(int fd, int64_t *ret_readable)
{
    char bytes[64];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, 10000);
    *ret_readable = now_ns();
    return n == 1 && read(fd, bytes, sizeof bytes) > 0 ? 0 : failed("an event loop is not woken");
}

/* From the notification until the last descriptor is readable. */
static int run_loops(void *arg, double *ret)
{
    const struct loops *l = arg;
    double taken[NOTIFIES];
    for (int i = 0; i < NOTIFIES; i++) {
        int64_t start = now_ns(), end, other;
        if (l->writer < 0 ? shmview_notify(l->segment) != 0 : write(l->bell[0], "", 1) != 1)
            return failed("no notification: %s", shmview_error_text());
        if (await_and_read(l->fd[0], &end))
            return -1;
        for (int f = 1; f < l->n; f++)
            if (await_and_read(l->fd[f], &other))
                return -1;
        taken[i] = (double)(end - start);
    }
    *ret = median(taken, NOTIFIES);
    return 0;
}

static int watch_all(struct loops *l, struct bench *bench)
{
    for (int i = 0; i < l->n; i++)
        if (shmview_attach(bench->connection, "notified", SHMVIEW_WRITE, 0, &l->watching[i]) ||
            shmview_change_fd(l->watching[i], &l->fd[i]))
            return failed("an event loop: %s", shmview_error_text());
    return 0;
}

static int start_writer(struct loops *l)
{
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, l->bell))
        return failed("socketpair: %s", strerror(errno));
    for (int i = 0; i < l->n; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends))
            return failed("socketpair: %s", strerror(errno));
        l->fd[i] = ends[0];
        l->peer[i] = ends[1];
    }
    l->writer = child_start(run_writer, l);
    return l->writer < 0 ? -1 : 0;
}

static void end_writer(struct loops *l)
{
    child_end(l->writer);
    for (int i = 0; i < l->n; i++) {
        close(l->fd[i]);
        close(l->peer[i]);
    }
    close(l->bell[0]);
    close(l->bell[1]);
}

/* --- The rows ------------------------------------------------------------ */

static void run_event_loops(struct bench *bench, struct shmview_segment *segment, int n)
{
    struct loops ours = {.segment = segment, .n = n, .writer = -1};
    struct loops bare = {.n = n, .bell = {-1, -1}, .writer = -1};
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 31,
        .rounds_quick = 7,
        .n = 2,
        .list = {{"shmview", run_loops, &ours, {0}}, {"as many writes", run_loops, &bare, {0}}},
    };
    if (n > 1) /* a single write is little beside a turn of the daemon's loop */
        contest.list[1].target = (struct target){TARGET_RATIO, 1.5};
    memset(bare.fd, -1, sizeof bare.fd);
    memset(bare.peer, -1, sizeof bare.peer);
    snprintf(contest.what, sizeof contest.what, "many notified, %d event loop%s", n,
             n == 1 ? "" : "s");
    if (!bench_wants(bench, contest.what))
        return;
    if (watch_all(&ours, bench) || start_writer(&bare)) {
        bench->n_failed++;
    } else {
        place_process(&bench->cpus, PLACE_SAME, 0, 0);
        place_process(&bench->cpus, PLACE_SAME, 1, bench->instance->daemon);
        place_process(&bench->cpus, PLACE_SAME, 1, bare.writer);
        contest_run(bench, &contest);
        place_process(&bench->cpus, PLACE_FREE, 0, 0);
        place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
    }
    end_writer(&bare);
    for (int i = 0; i < n; i++)
        shmview_detach(ours.watching[i]);
}

static void run(struct bench *bench, struct shmview_segment *segment, struct shared *shared, int n,
                bool of_call)
{
    struct side ours = {wait_shmview, notify_shmview, segment, shared, n, of_call};
    struct side bare = {wait_bare, notify_bare, segment, shared, n, of_call};
    struct contest contest = {
        .unit = "us",
        .scale = 1e-3,
        .rounds = 11,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"shmview", run_side, &ours, {0}}, {"one futex", run_side, &bare, {0}}},
    };
    if (!of_call)
        contest.list[1].target = (struct target){TARGET_RATIO, 1.5};
    snprintf(contest.what, sizeof contest.what, "many notified, %d parked%s", n,
             of_call ? ", the call" : "");
    contest_run(bench, &contest);
}

void bench_many_notified(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    void *p = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    if (p == MAP_FAILED || shmview_create(bench->connection, "notified", 4096, NULL, &segment)) {
        failed("no change to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        for (int n = 1; n <= WAITERS_MAX; n *= 4) {
            run(bench, segment, p, n, false);
            run(bench, segment, p, n, true);
        }
        for (int n = 1; n <= WAITERS_MAX; n *= n == 1 ? 16 : 4)
            run_event_loops(bench, segment, n);
    }
    shmview_detach(segment);
    if (p != MAP_FAILED)
        munmap(p, sizeof(struct shared));
}
