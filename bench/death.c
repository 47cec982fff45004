/* SPDX-License-Identifier: Apache-2.0 */
/* The time from the kill of a process that holds the lock until a waiting process has it. The
 * kernel frees the memory of the process before it reports the end, so it takes longer for a large
 * one. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "locks.h"

struct shared {
    volatile uint32_t held, waiting, done;
    volatile int64_t got_ns;
    volatile bool told; /* that the owner died */
    uint32_t watched;   /* WATCHED_* */
};

/* How one of the locks is taken; lock returns 1 for "the owner died". */
struct mortal {
    int (*lock)(void *lock);
    int (*unlock)(void *lock); /* of an owner that puts things in order */
    void *of;
    struct shared *shared;
    const struct cpus *cpus;
    enum place place;
    size_t heap;     /* bytes that the holder has touched */
    bool is_watched; /* a process watches the holder */
    int ends[2];     /* then: a socket pair, of the holder and of that process */
};

static void run_holder(void *arg)
{
    struct mortal *m = arg;
    void *heap = m->heap ? malloc(m->heap) : NULL;
    if (m->is_watched)
        close(m->ends[1]);
    place_process(m->cpus, m->place, 0, 0);
    if (heap)
        memset(heap, 1, m->heap);
    if (m->lock(m->of))
        return;
    m->shared->held = 1;
    for (;;)
        pause();
}

static void run_waiter(void *arg)
{
    struct mortal *m = arg;
    struct shared *s = m->shared;
    place_process(m->cpus, m->place, 1, 0);
    s->waiting = 1;
    int r = m->lock(m->of);
    s->got_ns = now_ns();
    s->told = r == 1;
    m->unlock(m->of);
    s->done = 1;
}

/* --- The floor ----------------------------------------------------------- */

/* What a process can do at best that is not the kernel: it polls a socket of the holder, and wakes
 * the waiter when that hangs up. */
enum {
    WATCHED_FREE,
    WATCHED_HELD,
    WATCHED_DEAD
};

static int lock_watched(void *lock)
{
    struct shared *s = lock;
    if (s->watched == WATCHED_FREE) {
        s->watched = WATCHED_HELD;
        return 0;
    }
    while (__atomic_load_n(&s->watched, __ATOMIC_ACQUIRE) == WATCHED_HELD)
        syscall(SYS_futex, &s->watched, FUTEX_WAIT, WATCHED_HELD, NULL, NULL, 0);
    return 1;
}

static int unlock_watched(void *lock)
{
    (void)lock;
    return 0;
}

static void run_watcher(void *arg)
{
    struct mortal *m = arg;
    struct pollfd p = {.fd = m->ends[1], .events = POLLIN};
    close(m->ends[0]);
    place_process(m->cpus, m->place, 1, 0);
    poll(&p, 1, -1);
    __atomic_store_n(&m->shared->watched, WATCHED_DEAD, __ATOMIC_RELEASE);
    syscall(SYS_futex, &m->shared->watched, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (;;)
        pause();
}

/* --- A kill -------------------------------------------------------------- */

/* Returns whether the kernel reports the process as sleeping. */
static bool is_asleep(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == 'S';
}

/* The waiter must have attached and parked before the kill counts. */
static int wait_parked(const struct mortal *m, pid_t waiter)
{
    if (wait_for(&m->shared->waiting, 1))
        return -1;
    int64_t limit = now_ns() + 10000000000;
    do {
        usleep(5000);
        if (now_ns() > limit)
            return -1;
    } while (!is_asleep(waiter));
    return 0;
}

/* Starts the holder, and the process that watches it if there is one. */
static void start_holder(struct mortal *m, pid_t *holder, pid_t *watcher)
{
    if (m->is_watched && socketpair(AF_UNIX, SOCK_STREAM, 0, m->ends))
        return;
    *holder = child_start(run_holder, m);
    if (!m->is_watched)
        return;
    *watcher = child_start(run_watcher, m);
    close(m->ends[0]);
    close(m->ends[1]);
}

static int kill_once(struct mortal *m, pid_t *holder, pid_t *waiter, pid_t *watcher, double *ret)
{
    struct shared *s = m->shared;
    start_holder(m, holder, watcher);
    if (wait_for(&s->held, 1))
        return failed("the holder does not get the lock");
    *waiter = child_start(run_waiter, m);
    if (wait_parked(m, *waiter))
        return failed("the waiter does not wait");
    int64_t start = now_ns();
    kill(*holder, SIGKILL);
    child_end(*holder); /* sleeps, because spinning would disturb what is measured */
    *holder = -1;
    if (wait_for(&s->done, 1) || !s->told)
        return failed("the next owner %s",
                      s->done ? "gets no report of the death" : "does not get the lock");
    *ret = (double)(s->got_ns - start);
    return 0;
}

static int run_kill(void *arg, double *ret)
{
    struct mortal *m = arg;
    pid_t holder = -1, waiter = -1, watcher = -1;
    memset(m->shared, 0, sizeof *m->shared);
    int r = kill_once(m, &holder, &waiter, &watcher, ret);
    child_end(holder);
    child_end(waiter);
    child_end(watcher);
    return r;
}

/* --- The locks ----------------------------------------------------------- */

static int lock_shmview(void *lock)
{
    return shmview_lock(lock);
}

static int unlock_shmview(void *lock)
{
    return shmview_unlock(lock);
}

static int lock_mutex(void *lock)
{
    int r = pthread_mutex_lock(lock);
    return r == EOWNERDEAD ? 1 : r ? -1 : 0;
}

static int unlock_mutex(void *lock)
{
    pthread_mutex_consistent(lock);
    return pthread_mutex_unlock(lock);
}

/* --- The rows ------------------------------------------------------------ */

#define MANY_KILLS 100

/* Many kills of one contest: the figure is one of the worst, and their median is the reference. */
struct kills {
    struct mortal *mortal;
    double took[MANY_KILLS];
};

static int run_many_kills(void *arg, double *ret)
{
    struct kills *k = arg;
    for (int i = 0; i < MANY_KILLS; i++)
        if (run_kill(k->mortal, &k->took[i]))
            return -1;
    median(k->took, MANY_KILLS); /* sorts them */
    *ret = k->took[MANY_KILLS - 2];
    return 0;
}

static int run_median(void *arg, double *ret)
{
    const struct kills *k = arg;
    *ret = k->took[MANY_KILLS / 2];
    return 0;
}

#define HEAP_BYTES ((size_t)256 << 20)

static void run_row(struct bench *bench, struct contest *contest, const char *what,
                    enum place place)
{
    contest->unit = "ms";
    contest->scale = 1e-6;
    snprintf(contest->what, sizeof contest->what, "%s, %s", what, place_name(place));
    contest_run(bench, contest);
}

static void run_place(struct bench *bench, enum place place, struct shmview_segment *segment,
                      struct locks *locks, struct shared *shared)
{
    struct mortal ours = {.lock = lock_shmview,
                          .unlock = unlock_shmview,
                          .of = segment,
                          .shared = shared,
                          .cpus = &bench->cpus,
                          .place = place};
    struct mortal mutex = ours;
    mutex.lock = lock_mutex;
    mutex.unlock = unlock_mutex;
    mutex.of = &locks->mutex[MUTEX_ROBUST].mutex;
    struct mortal large = ours, large_mutex = mutex, watched = ours;
    struct kills kills = {.mortal = &ours};
    const char *robust = mutex_name(MUTEX_ROBUST);
    struct contest small = {
        .rounds = 51,
        .rounds_quick = 15,
        .n = 3,
        .list = {{"shmview", run_kill, &ours, {0}},
                 {robust, run_kill, &mutex, {0}},
                 {"poll() of its socket", run_kill, &watched, {TARGET_RATIO, 1.8}}},
    };
    struct contest worst = {
        .rounds = 3,
        .rounds_quick = 1,
        .n = 2,
        .list = {{"shmview", run_many_kills, &kills, {0}},
                 {"their median", run_median, &kills, {TARGET_RATIO, 5}}},
    };
    struct contest heap = {
        .rounds = 15,
        .rounds_quick = 3,
        .n = 2,
        .list = {{"shmview", run_kill, &large, {0}},
                 {robust, run_kill, &large_mutex, {TARGET_VALUE, 1}}},
    };
    large.heap = large_mutex.heap = HEAP_BYTES;
    watched.lock = lock_watched;
    watched.unlock = unlock_watched;
    watched.of = shared;
    watched.is_watched = true;
    place_process(&bench->cpus, place, 0, 0);
    place_process(&bench->cpus, place, 1, bench->instance->daemon);
    run_row(bench, &small, "kill to next owner", place);
    run_row(bench, &worst, "kill to next owner, 99th of 100", place);
    run_row(bench, &heap, "kill to next owner, 256 MiB", place);
}

void bench_death(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    if (!bench_wants_placed(bench, "kill to next owner") &&
        !bench_wants_placed(bench, "kill to next owner, 99th of 100") &&
        !bench_wants_placed(bench, "kill to next owner, 256 MiB"))
        return;
    struct locks *locks = locks_new();
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!locks || shared == MAP_FAILED ||
        shmview_create(bench->connection, "death", 4096, NULL, &segment)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        for (enum place place = PLACE_TWO; place <= PLACE_FREE; place++)
            if (place_exists(&bench->cpus, place))
                run_place(bench, place, segment, locks, shared);
    }
    shmview_detach(segment);
    if (shared != MAP_FAILED)
        munmap(shared, sizeof(struct shared));
    locks_free(locks);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
}
