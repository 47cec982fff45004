/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that want one lock all the time. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"
#include "locks.h"

#define SECONDS 0.04

struct side {
    _Alignas(128) uint64_t pairs;
    int64_t ns;
};

struct shared {
    struct side side[2];
    _Alignas(128) volatile uint32_t data[4]; /* what the lock protects */
    _Alignas(128) atomic_uint ready;
    volatile uint32_t done;
    atomic_bool go, stop, broken;
};

struct hammer {
    struct bench *bench;
    enum place place;
    struct shmview_segment *segment;
    struct locks *locks;
    struct shared *shared;
    double (*figure)(const struct side *);
};

struct hammer_child {
    const struct hammer *hammer;
    int (*lock)(const struct hammer *);
    int (*unlock)(const struct hammer *);
    int side;
};

/* The same work for every lock: four words inside, a short while outside. */
static void pound(const struct hammer_child *child)
{
    const struct hammer *h = child->hammer;
    struct shared *s = h->shared;
    uint64_t pairs = 0;
    int64_t start = now_ns();
    while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        if (child->lock(h)) {
            atomic_store(&s->broken, true);
            break;
        }
        for (size_t i = 0; i < ARRAY_LEN(s->data); i++)
            s->data[i] = s->data[i] + 1;
        child->unlock(h);
        pairs++;
        for (volatile int i = 0; i < 50; i++)
            continue;
    }
    s->side[child->side] = (struct side){pairs, now_ns() - start};
}

static void run_child(void *arg)
{
    const struct hammer_child *child = arg;
    const struct hammer *h = child->hammer;
    struct shared *s = h->shared;
    place_process(&h->bench->cpus, h->place, child->side, 0);
    if (child->lock(h) || child->unlock(h)) /* a forked process attaches at its first lock */
        atomic_store(&s->broken, true);
    atomic_fetch_add(&s->ready, 1);
    while (!atomic_load(&s->go))
        usleep(50);
    pound(child);
    __sync_fetch_and_add(&s->done, 1);
}

/* Lets two processes hammer for a while; what they did is in h->shared->side. */
static int hammer(const struct hammer *h, int (*lock)(const struct hammer *),
                  int (*unlock)(const struct hammer *))
{
    struct shared *s = h->shared;
    pid_t pids[2];
    memset(s, 0, sizeof *s);
    for (int i = 0; i < 2; i++) {
        struct hammer_child child = {h, lock, unlock, i};
        pids[i] = child_start(run_child, &child);
    }
    for (int64_t limit = now_ns() + 10000000000; atomic_load(&s->ready) < 2 && now_ns() < limit;)
        usleep(100);
    atomic_store(&s->go, true);
    usleep((useconds_t)(SECONDS * 1e6));
    atomic_store(&s->stop, true);
    int r = wait_for(&s->done, 2);
    for (int i = 0; i < 2; i++)
        child_end(pids[i]);
    if (r || atomic_load(&s->broken) || s->side[0].pairs + s->side[1].pairs == 0)
        return failed("two processes cannot share the lock");
    return 0;
}

/* The nanoseconds that a pair takes the two of them together. */
static double pair_ns(const struct side *side)
{
    double rate = 0;
    for (int i = 0; i < 2; i++)
        rate += (double)side[i].pairs / (double)side[i].ns;
    return 1 / rate;
}

/* How often the other got the lock for each time that the luckier one got it. */
static double fairness(const struct side *side)
{
    uint64_t a = side[0].pairs, b = side[1].pairs;
    return (double)(a < b ? a : b) / (double)(a < b ? b : a);
}

/* --- The locks ----------------------------------------------------------- */

static int lock_shmview(const struct hammer *h)
{
    return shmview_lock(h->segment);
}

static int unlock_shmview(const struct hammer *h)
{
    return shmview_unlock(h->segment);
}

static int lock_mutex(const struct hammer *h)
{
    return pthread_mutex_lock(&h->locks->mutex[MUTEX_ROBUST_RECURSIVE].mutex);
}

static int unlock_mutex(const struct hammer *h)
{
    return pthread_mutex_unlock(&h->locks->mutex[MUTEX_ROBUST_RECURSIVE].mutex);
}

static int run_shmview(void *arg, double *ret)
{
    struct hammer *h = arg;
    int r = hammer(h, lock_shmview, unlock_shmview);
    *ret = h->figure(h->shared->side);
    return r;
}

static int run_mutex(void *arg, double *ret)
{
    struct hammer *h = arg;
    int r = hammer(h, lock_mutex, unlock_mutex);
    *ret = h->figure(h->shared->side);
    return r;
}

/* --- The rows ------------------------------------------------------------ */

static void run_place(struct hammer *h)
{
    static const struct {
        const char *what, *unit;
        double (*figure)(const struct side *);
        unsigned rounds;
    } kinds[] = {
        {"2 hammer", "ns/pair", pair_ns, 31},
        {"2 hammer, fairness", "min/max", fairness, 11},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct contest contest = {
            .unit = kinds[i].unit,
            .scale = 1,
            .rounds = kinds[i].rounds,
            .rounds_quick = 5,
            .n = 2,
            .list = {{"shmview", run_shmview, h, {0}},
                     {mutex_name(MUTEX_ROBUST_RECURSIVE), run_mutex, h, {0}}},
        };
        snprintf(contest.what, sizeof contest.what, "%s, %s", kinds[i].what, place_name(h->place));
        h->figure = kinds[i].figure;
        contest_run(h->bench, &contest);
    }
}

void bench_hammer(struct bench *bench)
{
    struct hammer h = {.bench = bench, .locks = locks_new()};
    if (!bench_wants_placed(bench, "2 hammer") &&
        !bench_wants_placed(bench, "2 hammer, fairness")) {
        locks_free(h.locks);
        return;
    }
    void *p =
        mmap(NULL, sizeof *h.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    h.shared = p == MAP_FAILED ? NULL : p;
    if (!h.locks || !h.shared ||
        shmview_create(bench->connection, "hammer", 4096, NULL, &h.segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        /* not PLACE_FREE: the scheduler puts them on one CPU or two as it likes */
        for (h.place = PLACE_TWO; h.place <= PLACE_SAME; h.place++)
            if (place_exists(&bench->cpus, h.place))
                run_place(&h);
    }
    shmview_detach(h.segment);
    if (h.shared)
        munmap(h.shared, sizeof *h.shared);
    locks_free(h.locks);
}
