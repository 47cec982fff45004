/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library that talk to the daemon, made by a thread that holds a lock. A call may
 * fail only with an error of its own, an error of the injected failure, or, if the daemon is not
 * at rest, an error of that. It must not cost the thread its lock. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/access.h>
#include <shmview/describe.h>
#include <shmview/monitor.h>
#include <shmview/stats.h>

#include "exclusion/arena.h"
#include "exclusion/mishap.h"
#include "exclusion/worker.h"

/* --- The calls ----------------------------------------------------------- */

static const int64_t ten = 10;
static const struct shmview_view_spec spec = {.name = "v", .format = "i", .ndim = 1, .shape = &ten};

static int ping(struct thread *t, struct shmview_segment *held)
{
    (void)held;
    return shmview_ping(t->worker->connection);
}

static int describe(struct thread *t, struct shmview_segment *held)
{
    const struct shmview_description *d;
    int r = shmview_describe(t->worker->connection, shmview_name(held), &d);
    if (r == 0)
        shmview_description_free(d);
    return r;
}

static int stats(struct thread *t, struct shmview_segment *held)
{
    const struct shmview_stats *s;
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = 10};
    (void)held;
    int r = shmview_stats_get(t->worker->connection, &o, &s);
    if (r == 0)
        shmview_stats_free(s);
    return r;
}

static int attach(struct thread *t, struct shmview_segment *held)
{
    struct shmview_segment *s;
    int r = shmview_attach(t->worker->connection, shmview_name(held), SHMVIEW_READ, 0, &s);
    return r ? r : shmview_detach(s);
}

static int create(struct thread *t, struct shmview_segment *held)
{
    char name[64];
    struct shmview_segment *s;
    const struct shmview_create_options o = {.struct_bytes = sizeof o,
                                             .lifetime = SHMVIEW_ATTACHED};
    (void)held;
    snprintf(name, sizeof name, "own.%d.%u.%u", getpid(), t->number, (unsigned)draw(&t->random, 4));
    int r = shmview_create(t->worker->connection, name, SEGMENT_BYTES, &o, &s);
    if (r)
        return r;
    if (draw(&t->random, 2))
        r = shmview_define(s, "l", &spec, 1);
    if (r == 0 && draw(&t->random, 2))
        r = shmview_remove(t->worker->connection, name);
    int detached = shmview_detach(s);
    return r ? r : detached;
}

static int remove_none(struct thread *t, struct shmview_segment *held)
{
    (void)held;
    return shmview_remove(t->worker->connection, "none");
}

static int set_access(struct thread *t, struct shmview_segment *held)
{
    const struct shmview_access_change c = {
        .struct_bytes = sizeof c, .set = SHMVIEW_SET_MODE, .mode = 0600};
    return shmview_set_access(t->worker->connection, shmview_name(held), &c);
}

static int define_again(struct thread *t, struct shmview_segment *held)
{
    (void)t;
    return shmview_define(held, "a", &spec, 1);
}

static int open_view(struct thread *t, struct shmview_segment *held)
{
    struct shmview_view v;
    return shmview_view_open(held, draw(&t->random, 2) ? "a" : "none", "v", &v);
}

static int notify(struct thread *t, struct shmview_segment *held)
{
    (void)t;
    return shmview_notify(held);
}

static int change_fd(struct thread *t, struct shmview_segment *held)
{
    int fd;
    (void)t;
    return shmview_change_fd(held, &fd);
}

static int monitor(struct thread *t, struct shmview_segment *held)
{
    struct shmview_monitor *m;
    (void)held;
    int r = shmview_monitor_open(t->worker->connection, NULL, &m);
    return r ? r : shmview_monitor_close(m);
}

static int connect_again(struct thread *t, struct shmview_segment *held)
{
    struct shmview_connection *c;
    (void)t;
    (void)held;
    int r = shmview_connect(arena->socket, 0, &c);
    return r ? r : shmview_disconnect(c);
}

static const struct {
    const char *name;
    int (*run)(struct thread *, struct shmview_segment *);
} calls[] = {
    {"ping", ping},
    {"describe", describe},
    {"stats", stats},
    {"attach", attach},
    {"create", create},
    {"remove", remove_none},
    {"set access", set_access},
    {"define", define_again},
    {"open view", open_view},
    {"notify", notify},
    {"change fd", change_fd},
    {"monitor", monitor},
    {"connect", connect_again},
};
#define N_CALLS (sizeof calls / sizeof calls[0])

unsigned calls_number(void)
{
    return N_CALLS;
}

int calls_make(unsigned which, struct thread *thread, struct shmview_segment *held)
{
    return calls[which].run(thread, held);
}

const char *calls_name(unsigned which)
{
    return calls[which].name;
}

/* --- Judging ------------------------------------------------------------- */

static bool is_one_of(int r, const int *errors)
{
    for (; *errors; errors++)
        if (r == -*errors)
            return true;
    return false;
}

bool calls_judge(const char *what, int r, uint32_t unrest, bool out_of_memory, bool failed)
{
    static const int natural[] = {SHMVIEW_ERR_EXISTS,        SHMVIEW_ERR_NOT_FOUND,
                                  SHMVIEW_ERR_LAYOUT_EXISTS, SHMVIEW_ERR_NO_LAYOUT,
                                  SHMVIEW_ERR_LIMIT,         0};
    static const int of_memory[] = {SHMVIEW_ERR_NO_MEMORY, 0};
    static const int of_system[] = {SHMVIEW_ERR_SYSTEM, SHMVIEW_ERR_DISCONNECTED,
                                    SHMVIEW_ERR_NO_DAEMON, SHMVIEW_ERR_NO_MEMORY, 0};
    static const int of_unrest[] = {SHMVIEW_ERR_DISCONNECTED, SHMVIEW_ERR_NO_DAEMON,
                                    SHMVIEW_ERR_QUOTA, 0};
    bool calm = !(unrest & 1) && atomic_load(&arena->unrest) == unrest;
    if (r >= 0 || is_one_of(r, natural) ||
        (failed && is_one_of(r, out_of_memory ? of_memory : of_system)) ||
        (!calm && is_one_of(r, of_unrest)))
        return true;
    violation("%s: %d (%s) '%s'%s%s", what, r, shmview_strerror(r), shmview_error_text(),
              failed ? out_of_memory ? ", out of memory" : ", a system call failed" : "",
              calm ? "" : ", the daemon is not at rest");
    return false;
}

/* After a mishap the next call must work as usual. */
static void check_next(struct thread *t)
{
    uint32_t unrest = atomic_load(&arena->unrest);
    calls_judge("the next call", shmview_ping(t->worker->connection), unrest, false, false);
}

static void call_with_mishap(struct thread *t, struct shmview_segment *held)
{
    static const int errors[] = {EIO, ENOMEM, ENOBUFS, EMFILE, ECONNRESET, EPIPE, EBADF};
    unsigned which = (unsigned)draw(&t->random, N_CALLS);
    bool memory = draw(&t->random, 2), forever = draw(&t->random, 3) == 0;
    uint32_t unrest = atomic_load(&arena->unrest);
    mishap_begin(memory ? MISHAP_MEMORY : MISHAP_SYSTEM,
                 1 + (unsigned)draw(&t->random, memory ? 40 : 5), forever,
                 errors[draw(&t->random, sizeof errors / sizeof errors[0])]);
    int r = calls[which].run(t, held);
    bool failed = mishap_end();
    if (failed)
        arena_count(memory ? COUNT_MEMORY : COUNT_SYSTEM);
    if (calls_judge(calls[which].name, r, unrest, memory, failed))
        check_next(t);
}

/* Closes the sockets of this process, or makes the daemon hang up. Waits first until no other
 * thread is in a call. */
static void lose_connection(struct thread *t)
{
    bool closes = draw(&t->random, 2);
    pthread_rwlock_wrlock(&t->worker->descriptors);
    if (closes)
        mishap_close_sockets();
    else
        mishap_provoke_hang_up();
    arena_count(closes ? COUNT_CLOSES : COUNT_HANG_UPS);
    if (draw(&t->random, 2))
        usleep((useconds_t)draw(&t->random, 3000)); /* the daemon notices it before the next call */
    check_next(t);
    pthread_rwlock_unlock(&t->worker->descriptors);
}

void calls_any(struct thread *t, struct shmview_segment *held, bool exclusive)
{
    uint32_t unrest = atomic_load(&arena->unrest);
    unsigned what = (unsigned)draw(&t->random, 10);
    arena_count(COUNT_CALLS);
    if (what == 0) {
        lose_connection(t);
        return;
    }
    pthread_rwlock_rdlock(&t->worker->descriptors);
    if (what == 1 && exclusive) {
        calls_judge("switch", shmview_switch(held, draw(&t->random, 2) ? "a" : "b"), unrest, false,
                    false);
    } else if (what < 4) {
        unsigned which = (unsigned)draw(&t->random, N_CALLS);
        calls_judge(calls[which].name, calls[which].run(t, held), unrest, false, false);
    } else {
        call_with_mishap(t, held);
    }
    pthread_rwlock_unlock(&t->worker->descriptors);
}
