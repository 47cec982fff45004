/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/worker.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/util.h"
#include "stress/action.h"
#include "stress/fate.h"
#include "stress/siege.h"

#define STACK_BYTES ((size_t)256 * 1024)

/* --- Handles ------------------------------------------------------------- */

int worker_attach(struct worker_handle *handle, struct shmview_connection *connection)
{
    int r = 0;
    *handle = (struct worker_handle){0};
    if (!connection) {
        r = shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &handle->connection);
        connection = handle->connection;
    }
    if (r == 0)
        r = shmview_attach(connection, WORKER_SEGMENT, SHMVIEW_WRITE, 0, &handle->segment);
    if (r == 0)
        return 0;
    if (!atomic_load(&arena->over))
        report(VIOLATION_CALL, "attaching: %d %s", r, shmview_error_text());
    shmview_disconnect(handle->connection);
    return r;
}

void worker_detach(struct worker_handle *handle)
{
    int r = shmview_detach(handle->segment);
    if (r == 0)
        r = shmview_disconnect(handle->connection);
    if (r)
        report(VIOLATION_CALL, "detaching: %d %s", r, shmview_error_text());
}

/* --- Threads ------------------------------------------------------------- */

struct start {
    struct me me;
    struct shmview_segment *segment;
};

static void run_thread(struct shmview_segment *segment);

static void *thread_main(void *arg)
{
    struct start *start = arg;
    struct shmview_segment *segment = start->segment;
    me = start->me;
    free(start);
    if (me_chance(2)) /* the others come first, and are at work */
        usleep(me_random() % 400);
    run_thread(segment);
    return NULL;
}

/* Starts another thread of this party. */
static void start_thread(struct shmview_segment *segment, int index)
{
    pthread_t thread;
    pthread_attr_t attr;
    struct start *start = malloc(sizeof *start);
    if (!start)
        worker_exit();
    *start = (struct start){.me = me, .segment = segment};
    start->me.index = index;
    start->me.actor = &me.party->actors[index];
    start->me.leaving = false;
    start->me.random = (uint64_t)me_random() << 32 | 1;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attr, thread_main, start))
        free(start); /* no slot is free for it now */
    pthread_attr_destroy(&attr);
}

/* Returns whether the next action may begin. If not, it has waited for the next turn for a
 * while. */
static bool may_act(void)
{
    static const struct timespec while_ns = {.tv_nsec = 5000000};
    uint32_t turn = atomic_load(&arena->turn);
    atomic_store(&me.actor->acting, true);
    if (!atomic_load(&arena->lull) && (!atomic_load(&arena->one_each) || me.turn != turn)) {
        me.turn = turn;
        return true;
    }
    atomic_store(&me.actor->acting, false);
    syscall(SYS_futex, &arena->turn, FUTEX_WAIT, turn, &while_ns, NULL, 0);
    return false;
}

/* The life of a thread. A thread that leaves what it holds ends here, and another one takes its
 * place. */
static void run_thread(struct shmview_segment *segment)
{
    while (!atomic_load(&arena->over) && me.patience != 0 && !me.leaving) {
        if (!may_act())
            continue;
        if (atomic_load(&arena->siege))
            siege_join(segment);
        action_any(segment);
        if (me.patience > 0)
            me.patience--;
        atomic_store(&me.actor->acting, false);
    }
    if (me.leaving)
        start_thread(segment, me.index);
}

/* --- Workers ------------------------------------------------------------- */

/* Gives some processes a handicap: one in eight is pinned to one processor, so that it never
 * spins; one in 16 is blind, so that it sees no deaths while it is parked. */
static void draw_handicaps(void)
{
    cpu_set_t all, one;
    me.blind = me_chance(16);
    if (!me_chance(8) || sched_getaffinity(0, sizeof all, &all))
        return;
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && (CPU_COUNT(&one) == 0 || me_chance(2))) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
        }
    sched_setaffinity(0, sizeof one, &one);
}

void worker_live(struct party *party, uint64_t reservation, struct shmview_segment *inherited)
{
    struct worker_handle handle = {.segment = inherited};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != arena->supervisor || !party_begin(party, reservation))
        _exit(0);
    me_become(party, 0);
    draw_handicaps();
    if (me_chance(2) && worker_attach(&handle, NULL))
        worker_exit();
    uint32_t threads = 1 + me_random() % (uint32_t)arena->threads;
    for (uint32_t i = 1; i < threads; i++)
        start_thread(handle.segment, (int)i);
    run_thread(handle.segment);
    worker_exit();
}

void worker_exit(void)
{
    _exit(0);
}

/* --- Guests -------------------------------------------------------------- */

/* A child must not be able to release what its parent holds. */
static void try_to_steal(struct shmview_segment *segment)
{
    int r = shmview_unlock(segment);
    if (r != -SHMVIEW_ERR_NOT_OWNER)
        report(VIOLATION_CHILD_RELEASED, "%d %s", r, r < 0 ? shmview_error_text() : "");
}

__attribute__((noreturn)) static void guest_live(struct shmview_segment *segment, bool holding)
{
    bool detaches = me_chance(4);
    me.patience = 1 + (int)(me_random() % 50);
    me.borrowed = false;
    fate_place(AT_GUEST_BEGINS);
    if (me_chance(5))
        worker_exit();
    /* two threads use the handle at once, before any other thread of this process */
    if (arena->threads > 1 && me_chance(4)) {
        start_thread(segment, 1);
        detaches = false;
    }
    if (holding)
        try_to_steal(segment);
    run_thread(segment);
    if (me_chance(3))
        fate_die();
    if (detaches && !me.leaving && shmview_detach(segment))
        report(VIOLATION_CALL, "a guest that detaches: %s", shmview_error_text());
    worker_exit();
}

void worker_fork(struct shmview_segment *segment, bool holding)
{
    uint64_t reservation;
    struct party *party = party_reserve(WORKERS_MAX, PARTIES_MAX, &reservation);
    if (!party)
        return;
    me_count(COUNT_FORKS);
    pid_t pid = fork();
    if (pid == 0) {
        bool blind = me.blind;
        if (!party_begin(party, reservation))
            _exit(0);
        me_become(party, 0);
        me.blind = blind;
        guest_live(segment, holding);
    }
    if (pid < 0)
        party_unreserve(party, reservation);
}
