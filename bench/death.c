/* SPDX-License-Identifier: Apache-2.0 */
/* The time from the kill of a process that holds the lock until a waiting process has it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "locks.h"

struct shared {
    volatile uint32_t held, waiting, done;
    volatile int64_t got_ns;
    volatile bool told; /* that the owner died */
};

/* How one of the locks is taken; lock returns 1 for "the owner died". */
struct mortal {
    int (*lock)(void *lock);
    int (*unlock)(void *lock); /* of an owner that puts things in order */
    void *of;
    struct shared *shared;
    const struct cpus *cpus;
    enum place place;
};

static void run_holder(void *arg)
{
    struct mortal *m = arg;
    place_process(m->cpus, m->place, 0, 0);
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

static int kill_once(struct mortal *m, pid_t *holder, pid_t *waiter, double *ret)
{
    struct shared *s = m->shared;
    *holder = child_start(run_holder, m);
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
    pid_t holder = -1, waiter = -1;
    memset(m->shared, 0, sizeof *m->shared);
    int r = kill_once(m, &holder, &waiter, ret);
    child_end(holder);
    child_end(waiter);
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

static void run_place(struct bench *bench, enum place place, struct shmview_segment *segment,
                      struct locks *locks, struct shared *shared)
{
    struct mortal ours = {lock_shmview, unlock_shmview, segment, shared, &bench->cpus, place};
    struct mortal mutex = {lock_mutex, unlock_mutex, &locks->mutex[MUTEX_ROBUST].mutex,
                           shared,     &bench->cpus, place};
    struct contest contest = {
        .unit = "ms",
        .scale = 1e-6,
        .rounds = 51,
        .rounds_quick = 15,
        .n = 2,
        .list = {{"shmview", run_kill, &ours, {0}},
                 {mutex_name(MUTEX_ROBUST), run_kill, &mutex, {TARGET_VALUE, 0.2}}},
    };
    snprintf(contest.what, sizeof contest.what, "kill to next owner, %s", place_name(place));
    place_process(&bench->cpus, place, 0, 0);
    place_process(&bench->cpus, place, 1, bench->instance->daemon);
    contest_run(bench, &contest);
}

void bench_death(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    if (!bench_wants_placed(bench, "kill to next owner"))
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
