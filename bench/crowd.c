/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct crowd_shared {
    struct crowd_member member[CROWD_MAX];
    _Alignas(128) volatile uint32_t data[4]; /* what the lock protects */
    _Alignas(128) volatile uint32_t ready;
    volatile uint32_t done;
    atomic_bool go, stop, broken;
};

/* Attempts at an undisturbed run, and what counts as one. */
#define ATTEMPTS    20
#define UNDISTURBED 0.95

struct seat {
    const struct crowd *crowd;
    const struct crowd_lock *lock;
    int number;
};

int crowd_init(struct crowd *crowd, const struct bench *bench)
{
    void *p = mmap(NULL, sizeof *crowd->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    *crowd = (struct crowd){.cpus = &bench->cpus};
    if (p == MAP_FAILED)
        return failed("mmap: %s", strerror(errno));
    crowd->shared = p;
    return 0;
}

void crowd_deinit(struct crowd *crowd)
{
    if (crowd->shared)
        munmap(crowd->shared, sizeof *crowd->shared);
    crowd->shared = NULL;
}

/* Readers without a writer never sleep, and need no pause to let others in. */
static bool only_readers(const struct crowd *crowd)
{
    return crowd->reads && !crowd->first;
}

/* --- One of them --------------------------------------------------------- */

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int take(const struct seat *seat, struct crowd_member *me)
{
    if (!seat->crowd->timed)
        return seat->lock->lock(seat->lock->of);
    int64_t start = now_ns();
    int r = seat->lock->lock(seat->lock->of);
    int64_t waited = now_ns() - start;
    if (waited > me->longest_ns)
        me->longest_ns = waited;
    return r;
}

/* Whether this process only looks at the words. */
static bool only_reads(const struct seat *seat)
{
    return seat->crowd->reads && seat->lock != seat->crowd->first;
}

/* Uses a lock once: changes four words while holding it, or looks at them. Equal for all locks, so
 * that only the lock makes a difference. */
static void use(const struct seat *seat)
{
    volatile uint32_t *data = seat->crowd->shared->data;
    bool reads = only_reads(seat);
    for (size_t i = 0; i < ARRAY_LEN(seat->crowd->shared->data); i++)
        if (reads)
            (void)data[i];
        else
            data[i] = data[i] + 1;
}

static void pound(const struct seat *seat)
{
    struct crowd_shared *s = seat->crowd->shared;
    struct crowd_member me = {0};
    int pause = only_readers(seat->crowd) ? 0 : 50;
    int64_t start = now_ns(), start_cpu = cpu_ns();
    while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
        if (take(seat, &me)) {
            atomic_store(&s->broken, true);
            break;
        }
        use(seat);
        seat->lock->unlock(seat->lock->of);
        me.pairs++;
        for (volatile int i = 0; i < pause; i++)
            continue;
    }
    me.ns = now_ns() - start;
    me.cpu_ns = cpu_ns() - start_cpu;
    s->member[seat->number] = me;
}

static void run_member(void *arg)
{
    const struct seat *seat = arg;
    const struct crowd_lock *lock = seat->lock;
    struct crowd_shared *s = seat->crowd->shared;
    place_process(seat->crowd->cpus, seat->crowd->place, seat->number, 0);
    if (lock->lock(lock->of) || lock->unlock(lock->of)) /* a forked process attaches here */
        atomic_store(&s->broken, true);
    __sync_fetch_and_add(&s->ready, 1);
    while (!atomic_load(&s->go))
        usleep(50);
    pound(seat);
    __sync_fetch_and_add(&s->done, 1);
}

/* --- All of them --------------------------------------------------------- */

static int run_once(struct crowd *crowd, const struct crowd_lock *lock)
{
    struct crowd_shared *s = crowd->shared;
    pid_t pids[CROWD_MAX];
    memset(s, 0, sizeof *s);
    for (int i = 0; i < crowd->n; i++) {
        struct seat seat = {crowd, i == 0 && crowd->first ? crowd->first : lock, i};
        pids[i] = child_start(run_member, &seat);
    }
    int r = wait_for(&s->ready, (uint32_t)crowd->n);
    atomic_store(&s->go, true);
    usleep((useconds_t)(crowd->seconds * 1e6));
    atomic_store(&s->stop, true);
    r |= wait_for(&s->done, (uint32_t)crowd->n);
    for (int i = 0; i < crowd->n; i++)
        child_end(pids[i]);
    memcpy(crowd->member, s->member, sizeof crowd->member);
    if (r || atomic_load(&s->broken))
        return failed("%d processes cannot share %s", crowd->n, lock->name);
    return 0;
}

static bool is_disturbed(const struct crowd *crowd)
{
    for (int i = 0; i < crowd->n; i++) {
        const struct crowd_member *m = &crowd->member[i];
        if ((double)m->ns < UNDISTURBED * crowd->seconds * 1e9 ||
            (double)m->cpu_ns < UNDISTURBED * (double)m->ns)
            return true;
    }
    return false;
}

int crowd_run(struct crowd *crowd, const struct crowd_lock *lock)
{
    int r, attempts = only_readers(crowd) ? ATTEMPTS : 1;
    do
        r = run_once(crowd, lock);
    while (r == 0 && --attempts > 0 && is_disturbed(crowd));
    if (r == 0 && !(crowd_rate(crowd) > 0))
        return failed("%s is never taken", lock->name);
    return r;
}

double crowd_rate(const struct crowd *crowd)
{
    double rate = 0;
    for (int i = 0; i < crowd->n; i++)
        rate += (double)crowd->member[i].pairs / (double)crowd->member[i].ns;
    return rate;
}

double crowd_least_share(const struct crowd *crowd)
{
    uint64_t least = UINT64_MAX, sum = 0;
    for (int i = 0; i < crowd->n; i++) {
        sum += crowd->member[i].pairs;
        if (crowd->member[i].pairs < least)
            least = crowd->member[i].pairs;
    }
    return (double)least * crowd->n / (double)sum;
}

/* --- Exclusive locks ----------------------------------------------------- */

static int lock_shmview(void *of)
{
    return shmview_lock(of);
}

static int unlock_shmview(void *of)
{
    return shmview_unlock(of);
}

static int lock_mutex(void *of)
{
    return pthread_mutex_lock(of);
}

static int unlock_mutex(void *of)
{
    return pthread_mutex_unlock(of);
}

const struct crowd_lock crowd_shmview = {"shmview", lock_shmview, unlock_shmview, NULL};
const struct crowd_lock crowd_robust = {"robust recursive mutex", lock_mutex, unlock_mutex, NULL};
