/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are made only once.
 *
 * A Create that was interrupted may have reached the daemon. If it were sent again, it would find
 * the segment of the first one and fail with Exists. So only an interrupt that raises may end the
 * wait, and the only way to learn whether an interrupt raises is to run it.
 *
 * The interrupt must run without libshmview on the stack, for three reasons. It may leave by
 * longjmp(). A handler of Signal.trap may use the library. Threads that have the GVL may wait for
 * the connection that the call uses. rb_thread_call_with_gvl() within the wait would break all of
 * that; even after rb_protect() it runs interrupts once more before it returns.
 *
 * So a separate native thread makes the call, which needs no GVL. The caller waits for that thread,
 * runs the interrupts of its own wait, and ends the call if one of them raises. */
#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

/* One call. It is on the stack of the caller, which therefore always joins the thread before it
 * returns. */
struct errand {
    int (*call)(void *arg);
    void *arg;
    struct told *told;
    sem_t event;             /* the call is over, or the caller is interrupted */
    atomic_bool done, ended; /* done: set by the thread, after *told; ended: by the caller */
    bool joined;
    pthread_t thread;
};

static void *run_errand(void *arg)
{
    struct errand *e = arg;
    shmview_on_wait(is_flag_set, &e->ended);
    told_by(e->told, e->call(e->arg));
    shmview_on_wait(NULL, NULL);
    atomic_store(&e->done, true);
    sem_post(&e->event);
    return NULL;
}

static void *wait_for_event(void *arg)
{
    struct errand *e = arg;
    while (sem_wait(&e->event) && errno == EINTR)
        ;
    return NULL;
}

static void *join(void *arg)
{
    struct errand *e = arg;
    e->joined = pthread_join(e->thread, NULL) == 0;
    return NULL;
}

static void interrupt(void *arg)
{
    sem_post(&((struct errand *)arg)->event);
}

/* Waits until the call is done. Returns 0, or the state of an exception; then the caller must end
 * the call. Also returns in a child that an interrupt forked. */
static int wait_for(struct errand *e, void *(*wait)(void *), struct use *use)
{
    unsigned forks = n_forks;
    int state = 0;
    while (!atomic_load(&e->done) && !state && forks == n_forks) {
        rb_thread_call_without_gvl2(wait, e, interrupt, e);
        if (!atomic_load(&e->done))
            state = use_interrupts(use);
    }
    return state;
}

/* call_unrepeated() without the use of objects. */
static int call_alone(struct use *use, int (*call)(void *arg), void *arg, struct told *told)
{
    struct errand e = {.call = call, .arg = arg, .told = told};
    int state = use_interrupts(use); /* those that came before: nothing was requested yet */
    if (state)
        return state;
    unsigned forks = n_forks;
    sem_init(&e.event, 0, 0);
    bool has_thread = pthread_create(&e.thread, NULL, run_errand, &e) == 0;
    /* If no thread can be created, this one makes the call, and nothing ends its wait. */
    state = wait_for(&e, has_thread ? wait_for_event : run_errand, use);
    if (forks != n_forks) /* a handler forked: the child lacks the thread, so it calls again */
        return state ? state : call_alone(use, call, arg, told);
    atomic_store(&e.ended, state != 0);
    if (has_thread)
        rb_thread_call_without_gvl2(join, &e, NULL, NULL); /* does nothing if interrupts wait */
    if (has_thread && !e.joined)
        join(&e);
    sem_destroy(&e.event);
    return state;
}

int call_unrepeated(VALUE objects, int (*call)(void *arg), void *arg, struct told *told)
{
    struct use use;
    use_begins(&use, objects);
    int state = call_alone(&use, call, arg, told);
    use_ends(&use);
    return state;
}
