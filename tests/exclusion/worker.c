/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exclusion/arena.h"
#include "exclusion/mishap.h"
#include "exclusion/worker.h"

/* Longer than the daemon is ever away. A thread that waits longer reports a violation, because
 * then no thread can get the lock. */
#define PATIENCE_NS 30000000000

/* xorshift64, Marsaglia 2003 */
uint64_t draw(uint64_t *random, uint64_t n)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return (*random >> 11) % n;
}

/* --- Holding ------------------------------------------------------------- */

static int take(struct thread *t, struct shmview_segment *s, bool exclusive)
{
    if (draw(&t->random, 4) == 0)
        return exclusive ? shmview_trylock(s) : shmview_trylock_shared(s);
    int64_t deadline = shmview_deadline(PATIENCE_NS);
    int r = exclusive ? shmview_lock_until(s, deadline) : shmview_lock_shared_until(s, deadline);
    if (r == -SHMVIEW_ERR_TIMED_OUT && !atomic_load(&arena->over))
        violation("'%s' has not been free for %d s", shmview_name(s),
                  (int)(PATIENCE_NS / 1000000000));
    return r;
}

/* Called after SHMVIEW_OWNER_DIED. Reports a violation if the dead owner is a process that this
 * program has not killed. */
static void check_death(struct shmview_segment *s)
{
    struct shmview_death death;
    arena_count(COUNT_OWNER_DIED);
    int r = shmview_owner_died(s, &death);
    if (r || (death.pid && !oracle_knows_dead((pid_t)death.pid)))
        violation("'%s': the death of process %u is reported, which lives", shmview_name(s),
                  r ? 0 : death.pid);
}

/* Checks that the thread still holds what it took, by taking and releasing it once more. */
static void check_held(struct shmview_segment *s, bool exclusive)
{
    int r = exclusive ? shmview_lock(s) : shmview_lock_shared(s);
    if (r == 0)
        r = shmview_unlock(s);
    if (r)
        violation("process %d has lost the lock of '%s': %d (%s)", getpid(), shmview_name(s), r,
                  shmview_error_text());
}

static void hold(struct thread *t, unsigned number, bool exclusive)
{
    struct worker *w = t->worker;
    struct shmview_segment *s = w->segments[number];
    oracle_enter(number, w->party, t->number, exclusive ? INSIDE_EXCLUSIVE : INSIDE_SHARED);
    arena_count(exclusive ? COUNT_EXCLUSIVE : COUNT_SHARED);
    for (uint64_t n = draw(&t->random, 4); n > 0 && !atomic_load(&arena->over); n--) {
        calls_any(t, s, exclusive);
        check_held(s, exclusive);
    }
    oracle_leave(number, w->party, t->number);
}

static void lock_one(struct thread *t)
{
    unsigned number = (unsigned)draw(&t->random, SEGMENTS);
    struct shmview_segment *s = t->worker->segments[number];
    bool exclusive = draw(&t->random, 3), mishap = draw(&t->random, 8) == 0;
    if (arena->plant && t->worker->party == 0 && draw(&t->random, 64) == 0) {
        oracle_enter(number, t->worker->party, t->number, INSIDE_EXCLUSIVE);
        usleep(1000);
        oracle_leave(number, t->worker->party, t->number);
        return;
    }
    if (mishap)
        mishap_begin(MISHAP_MEMORY, 1, true, 0);
    int r = take(t, s, exclusive);
    bool failed = mishap && mishap_end();
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        return;
    if (r < 0) {
        calls_judge("lock", r, atomic_load(&arena->unrest), true, failed);
        return;
    }
    if (r == SHMVIEW_OWNER_DIED)
        check_death(s);
    hold(t, number, exclusive || r == SHMVIEW_OWNER_DIED);
    if (mishap)
        mishap_begin(MISHAP_MEMORY, 1, true, 0);
    r = shmview_unlock(s);
    mishap_end();
    if (r)
        violation("process %d has lost the lock of '%s': %d (%s)", getpid(), shmview_name(s), r,
                  shmview_error_text());
}

/* --- Children ------------------------------------------------------------ */

/* A forked child: takes a lock for itself while its parent may hold the same lock, and exits. */
__attribute__((noreturn)) static void live_as_child(struct thread *t, pid_t parent)
{
    struct worker *w = t->worker;
    unsigned number = (unsigned)draw(&t->random, SEGMENTS);
    bool exclusive = draw(&t->random, 2);
    w->party += WORKERS_MAX;
    atomic_store(&arena->pid[w->party], getpid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    uint32_t unrest = atomic_load(&arena->unrest);
    int64_t deadline = shmview_deadline(200000000);
    struct shmview_segment *s = w->segments[number];
    int r = exclusive ? shmview_lock_until(s, deadline) : shmview_lock_shared_until(s, deadline);
    if (r < 0 && r != -SHMVIEW_ERR_TIMED_OUT)
        calls_judge("lock in a child", r, unrest, false, false);
    if (r == SHMVIEW_OWNER_DIED)
        check_death(s);
    if (r >= 0) {
        exclusive = exclusive || r == SHMVIEW_OWNER_DIED;
        oracle_enter(number, w->party, t->number, exclusive ? INSIDE_EXCLUSIVE : INSIDE_SHARED);
        check_held(s, exclusive);
        oracle_leave(number, w->party, t->number);
        r = shmview_unlock(s);
        if (r)
            violation("a child has lost the lock of '%s': %d (%s)", shmview_name(s), r,
                      shmview_error_text());
    }
    _exit(0);
}

static void fork_one(struct thread *t)
{
    int status = 0;
    pid_t parent = getpid();
    if (atomic_exchange(&t->worker->forks, true))
        return;
    pid_t pid = fork();
    if (pid == 0)
        live_as_child(t, parent);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status)
        violation("a child ended with status 0x%x", (unsigned)status);
    atomic_store(&arena->pid[t->worker->party + WORKERS_MAX], 0);
    arena_count(COUNT_FORKS);
    atomic_store(&t->worker->forks, false);
}

/* --- From beginning to end ----------------------------------------------- */

static void *run_thread(void *arg)
{
    struct thread *t = arg;
    while (!atomic_load(&arena->over)) {
        lock_one(t);
        if (draw(&t->random, 200) == 0)
            fork_one(t);
    }
    return NULL;
}

/* Connects and attaches all segments. Repeats a call as long as its error is permitted, because
 * the daemon may be away. Returns 0, or the last error. */
static int begin(struct worker *w)
{
    char name[64];
    uint32_t unrest;
    int r;
    do {
        unrest = atomic_load(&arena->unrest);
        r = shmview_connect(arena->socket, 0, &w->connection);
    } while (r && calls_judge("connect", r, unrest, false, false) && !atomic_load(&arena->over));
    for (unsigned i = 0; r == 0 && i < SEGMENTS; i++) {
        snprintf(name, sizeof name, SEGMENT_NAME, i);
        do {
            unrest = atomic_load(&arena->unrest);
            r = shmview_attach(w->connection, name, SHMVIEW_WRITE, 0, &w->segments[i]);
        } while (r && calls_judge("attach", r, unrest, false, false) && !atomic_load(&arena->over));
    }
    return r;
}

void worker_run(unsigned party, uint64_t seed)
{
    static struct worker w;
    pthread_t threads[THREADS_MAX];
    w.party = party;
    pthread_rwlock_init(&w.descriptors, NULL);
    atomic_store(&arena->pid[party], getpid());
    if (begin(&w))
        _exit(0);
    for (unsigned i = 0; i < arena->n_threads; i++) {
        w.threads[i] = (struct thread){&w, i, (seed * 1000003 + party * 4099 + i) | 1};
        for (int k = 0; k < 8; k++)
            draw(&w.threads[i].random, 2);
        if (pthread_create(&threads[i], NULL, run_thread, &w.threads[i]))
            _exit(2);
    }
    for (unsigned i = 0; i < arena->n_threads; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SEGMENTS; i++)
        if (shmview_detach(w.segments[i]))
            violation("detach at the end: %s", shmview_error_text());
    if (shmview_disconnect(w.connection))
        violation("disconnect at the end: %s", shmview_error_text());
    _exit(0);
}

int worker_found(void)
{
    static const int64_t ten = 10;
    const struct shmview_view_spec spec = {.name = "v", .format = "i", .ndim = 1, .shape = &ten};
    const struct shmview_create_options o = {.struct_bytes = sizeof o, .lifetime = SHMVIEW_MANUAL};
    struct shmview_connection *c;
    struct shmview_segment *s;
    char name[64];
    int r = shmview_connect(arena->socket, 0, &c);
    for (unsigned i = 0; r == 0 && i < SEGMENTS; i++) {
        snprintf(name, sizeof name, SEGMENT_NAME, i);
        r = shmview_create(c, name, SEGMENT_BYTES, &o, &s);
        if (r == 0)
            r = shmview_define(s, "a", &spec, 1);
        if (r == 0)
            r = shmview_define(s, "b", &spec, 1);
    }
    if (r)
        fprintf(stderr, "exclusion: cannot begin: %s\n", shmview_error_text());
    return r ? -1 : 0;
}
