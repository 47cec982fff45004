/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are made once. libshmview does not repeat them where it may be that the daemon has
 * done what was asked, for a second Create finds the segment of the first. So nothing may end
 * their wait but what raises, and whether an interrupt raises is known when it has run.
 *
 * It must run without libshmview on the stack: it may leave by longjmp(), a handler of Signal.trap
 * may use the library, and threads that have the GVL may wait for the connection that the call has.
 * rb_thread_call_with_gvl() within the wait would break all of that; even after rb_protect() it
 * runs interrupts once more on its way back. So a native thread of its own makes the call, which
 * needs no GVL; the caller waits for it, runs what interrupts the wait, and ends it if that raises.
 */
#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

struct errand {
    int (*call)(void *arg);
    void *arg;
    struct told *told;
    sem_t event; /* the call is over, or the caller is interrupted */
    atomic_bool done, ended;
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

/* Returns 0, or the state of what was raised; then the call is to end. */
static int wait_for(struct errand *e, void *(*wait)(void *), unsigned forks)
{
    int state = 0;
    while (!atomic_load(&e->done) && !state && forks == n_forks) {
        rb_thread_call_without_gvl2(wait, e, interrupt, e);
        if (!atomic_load(&e->done))
            state = run_interrupts();
    }
    return state;
}

int call_once(int (*call)(void *arg), void *arg, struct told *told)
{
    struct errand e = {.call = call, .arg = arg, .told = told};
    unsigned forks = n_forks;
    int state = run_interrupts(); /* of before: nothing is asked */
    if (state)
        return state;
    sem_init(&e.event, 0, 0);
    bool has_thread = pthread_create(&e.thread, NULL, run_errand, &e) == 0;
    /* if no thread can be made, nothing ends the wait */
    state = wait_for(&e, has_thread ? wait_for_event : run_errand, forks);
    if (forks != n_forks) /* a handler has forked: the child lacks that thread, and asks again */
        return state ? state : call_once(call, arg, told);
    atomic_store(&e.ended, state != 0);
    if (has_thread)
        rb_thread_call_without_gvl2(join, &e, NULL, NULL); /* not made where more interrupts wait */
    if (has_thread && !e.joined)
        join(&e);
    sem_destroy(&e.event);
    return state;
}
