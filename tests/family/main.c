/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of several processes lock mutexes of both kinds. In the meantime a supervisor kills and
 * stops processes, threads end inside, and callers interrupt their waits. Violations are: two
 * owners inside at once, broken bytes without SHMVIEW_OWNER_DIED, the reported death of a living
 * owner, and a mutex that is never free again. With "plant", workers falsify the record of the
 * owner, so that the run must report violations. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/family.h>

#define WORKERS     4
#define THREADS     3
#define MUTEXES     3 /* processes own the first, threads the others */
#define PATIENCE_NS 30000000000
#define KILLS_MAX   (1 << 20)

/* A mutex and the data that it guards. first and second are equal unless an owner died inside or
 * unlocked as "not repaired". */
struct guarded {
    struct shmview_mutex mutex;
    _Atomic uint64_t inside; /* pid << 32 | thread; 0: no owner */
    uint64_t first, second;
    uint8_t pad[40];
};

static struct world {
    struct guarded guarded[MUTEXES];
    atomic_bool over;
    bool plant;
    _Atomic uint32_t n_locked, n_died, n_interrupted, n_ended, n_violations;
    _Atomic uint32_t ended[WORKERS][THREADS]; /* pid of a worker whose thread ends inside */
    _Atomic uint32_t n_killed, killed[KILLS_MAX];
    char first[200];
} * world;

struct thread {
    unsigned worker, number;
    uint64_t random;
};

/* xorshift64, Marsaglia 2003 */
static uint64_t draw(uint64_t *random, uint64_t n)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % n;
}

__attribute__((format(printf, 1, 2))) static void violation(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (atomic_fetch_add(&world->n_violations, 1) == 0)
        vsnprintf(world->first, sizeof world->first, format, ap);
    va_end(ap);
    atomic_store(&world->over, true);
}

/* --- What must be true ---------------------------------------------------- */

static bool was_killed(uint32_t pid)
{
    for (uint32_t i = 0; i < atomic_load(&world->n_killed); i++)
        if (atomic_load(&world->killed[i]) == pid)
            return true;
    return false;
}

/* Returns whether the recorded owner may have left without unlocking: its process was killed, or
 * the thread has ended inside. */
static bool may_be_left(uint64_t inside)
{
    uint32_t pid = (uint32_t)(inside >> 32), thread = (uint32_t)inside;
    for (unsigned i = 0; i < WORKERS; i++)
        if (atomic_load(&world->ended[i][thread]) == pid)
            return true;
    return was_killed(pid);
}

static void check_inside(struct guarded *g, uint64_t before, int r)
{
    struct shmview_mutex_status status;
    if (before && (r != SHMVIEW_OWNER_DIED || !may_be_left(before)))
        violation("process %u was inside, and lives", (unsigned)(before >> 32));
    if (r == 0 && g->first != g->second)
        violation("broken bytes, but the lock reported no dead owner");
    if (r == 0)
        return;
    atomic_fetch_add(&world->n_died, 1);
    if (shmview_mutex_query(&g->mutex, &status) || !status.is_mine || !status.died)
        violation("a dead owner, but the mutex's status does not report it");
}

/* --- A thread ------------------------------------------------------------- */

static int end_some(void *t)
{
    return draw(&((struct thread *)t)->random, 4) == 0;
}

static int take(struct thread *t, struct shmview_mutex *m)
{
    uint64_t form = draw(&t->random, 8);
    if (form == 0)
        return shmview_mutex_trylock(m);
    if (form == 1)
        return shmview_mutex_lock(m, shmview_deadline((int64_t)draw(&t->random, 3000000)));
    if (form == 2)
        shmview_on_wait(end_some, t);
    int r = shmview_mutex_lock(m, shmview_deadline(PATIENCE_NS));
    shmview_on_wait(NULL, NULL);
    if (r == -SHMVIEW_ERR_TIMED_OUT && !atomic_load(&world->over))
        violation("a mutex has not been free for 30 s");
    if (r == -SHMVIEW_ERR_INTERRUPTED)
        atomic_fetch_add(&world->n_interrupted, 1);
    return r;
}

/* Does the work of an owner. Returns whether the thread must now end with the mutex held. */
static bool be_inside(struct thread *t, struct guarded *g, int r)
{
    uint64_t me = (uint64_t)getpid() << 32 | t->number;
    check_inside(g, atomic_exchange(&g->inside, me), r);
    g->first = r ? g->second : g->first;
    g->first++;
    for (uint64_t n = draw(&t->random, 200); n > 0; n--)
        if (atomic_load(&g->inside) != me)
            violation("two owners inside");
    if (draw(&t->random, 500) == 0 && g != world->guarded) {
        atomic_store(&world->ended[t->worker][t->number], (uint32_t)getpid());
        atomic_fetch_add(&world->n_ended, 1);
        return true;
    }
    bool is_broken = draw(&t->random, 100) == 0;
    g->second += !is_broken;
    atomic_store(&g->inside, 0);
    r = is_broken ? shmview_mutex_unlock_not_repaired(&g->mutex) : shmview_mutex_unlock(&g->mutex);
    if (r)
        violation("an owner cannot unlock: %s", shmview_error_text());
    return false;
}

static void *run_thread(void *arg)
{
    struct thread *t = arg;
    while (!atomic_load(&world->over)) {
        struct guarded *g = &world->guarded[draw(&t->random, MUTEXES)];
        if (world->plant && draw(&t->random, 64) == 0)
            atomic_store(&g->inside, (uint64_t)getpid() << 32 | t->number);
        int r = take(t, &g->mutex);
        if (r < 0 && r != -SHMVIEW_ERR_TIMED_OUT && r != -SHMVIEW_ERR_INTERRUPTED)
            violation("lock: %s", shmview_error_text());
        if (r < 0)
            continue;
        atomic_fetch_add(&world->n_locked, 1);
        if (be_inside(t, g, r))
            return NULL;
    }
    return NULL;
}

static void run_worker(unsigned worker, uint64_t seed)
{
    pthread_t ids[THREADS];
    struct thread threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){worker, i, seed * 64 + i + 1};
        pthread_create(&ids[i], NULL, run_thread, &threads[i]);
    }
    /* a thread that ended inside is not replaced; the process exits when all have ended */
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    _exit(0);
}

/* --- The supervisor ------------------------------------------------------- */

static pid_t workers[WORKERS];
static uint64_t seed;

static void spawn(unsigned worker)
{
    uint64_t its_seed = draw(&seed, 1 << 30);
    workers[worker] = fork();
    if (workers[worker] == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run_worker(worker, its_seed);
    }
}

/* Waits for the end of a worker, after killing it if by_kill. Unless killed, it must exit with
 * status 0. */
static void end_worker(unsigned worker, bool by_kill)
{
    int status;
    if (by_kill) {
        atomic_store(&world->killed[world->n_killed], (uint32_t)workers[worker]);
        atomic_fetch_add(&world->n_killed, 1);
        kill(workers[worker], SIGKILL);
    }
    waitpid(workers[worker], &status, 0);
    if (!by_kill && status)
        violation("a worker ended with status 0x%x", (unsigned)status);
}

static void supervise(unsigned n_kills)
{
    for (unsigned i = 0; i < WORKERS; i++)
        spawn(i);
    while (atomic_load(&world->n_killed) < n_kills && !atomic_load(&world->over)) {
        unsigned worker = (unsigned)draw(&seed, WORKERS);
        usleep((useconds_t)draw(&seed, 8000));
        if (draw(&seed, 4) == 0) {
            kill(workers[worker], SIGSTOP);
            usleep((useconds_t)draw(&seed, 60000));
            kill(workers[worker], SIGCONT);
        }
        end_worker(worker, true);
        spawn(worker);
    }
    atomic_store(&world->over, true);
    for (unsigned i = 0; i < WORKERS; i++)
        end_worker(i, false);
}

/* Checks that every mutex can be locked at the end, because it is free or its owner is dead. */
static void settle(void)
{
    for (unsigned i = 0; i < MUTEXES; i++)
        if (shmview_mutex_lock(&world->guarded[i].mutex, shmview_deadline(PATIENCE_NS)) < 0)
            violation("mutex %u is never free again", i);
}

int main(int argc, char **argv)
{
    struct shmview_anonymous memory;
    unsigned n_kills = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 300;
    seed = argc > 2 ? strtoul(argv[2], NULL, 0) | 1 : (uint64_t)shmview_deadline(0) | 1;
    if (n_kills == 0 || n_kills >= KILLS_MAX)
        return fprintf(stderr, "Usage: family [KILLS [SEED [plant]]]\n"), 2;
    if (shmview_anonymous_create(sizeof *world, &memory))
        return fprintf(stderr, "family: %s\n", shmview_error_text()), 2;
    printf("seed %lu\n", (unsigned long)seed);
    fflush(stdout);
    world = memory.data;
    world->plant = argc > 3;
    for (unsigned i = 0; i < MUTEXES; i++)
        shmview_mutex_init(&world->guarded[i].mutex,
                           i ? SHMVIEW_MUTEX_OF_THREADS : SHMVIEW_MUTEX_OF_PROCESSES);
    supervise(n_kills);
    settle();
    printf("%u locked, %u after a death, %u interrupted, %u threads ended inside, %u killed\n",
           world->n_locked, world->n_died, world->n_interrupted, world->n_ended, world->n_killed);
    printf("%u violations%s%s\n", world->n_violations, world->n_violations ? "; the first: " : "",
           world->first);
    return world->n_violations ? 1 : 0;
}
