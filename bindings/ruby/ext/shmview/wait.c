/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and waits without the GVL. RUBY_UBF_IO wakes a thread that is interrupted by a signal, and
 * goes on with it until the thread has noticed; libshmview then asks whether the wait goes on. All
 * is done by rb_thread_call_without_gvl2(), which raises nothing: a lock that was taken would be
 * lost. */
#include "core.h"

#include <math.h>

static VALUE check_ints(VALUE unused)
{
    rb_thread_check_ints();
    return unused;
}

int run_interrupts(void)
{
    int state;
    rb_protect(check_ints, Qnil, &state);
    return state;
}

/* Interrupts that raise nothing, as of a handler of Signal.trap, end a wait for the daemon, and the
 * call is made again. After so many, another thread makes it (once.c), whose wait they do not end:
 * a request that is sent again and again might never be answered. */
#define RETRIES 3

struct plain {
    int (*call)(void *arg);
    void *arg;
    struct told *told;
    bool done;
    bool ended; /* by an interrupt */
    VALUE thread;
};

int is_flag_set(void *flag)
{
    return atomic_load((atomic_bool *)flag);
}

/* For shmview_on_wait(), in the thread's own native thread. */
static int is_interrupted(void *thread)
{
    return rb_thread_interrupted(*(VALUE *)thread);
}

static void *run_plain(void *arg)
{
    struct plain *plain = arg;
    shmview_on_wait(is_interrupted, &plain->thread);
    /* only the result shows whether it was made: a call that has done its work succeeds, although
     * an interrupt has ended what it would have waited for besides */
    told_by(plain->told, plain->call(plain->arg));
    plain->ended = plain->told->r == -SHMVIEW_ERR_INTERRUPTED;
    shmview_on_wait(NULL, NULL);
    plain->done = !plain->ended;
    return NULL;
}

int call_unlocked(int (*call)(void *arg), void *arg, struct told *told)
{
    struct plain plain = {.call = call, .arg = arg, .told = told, .thread = rb_thread_current()};
    int n_ended = 0;
    while (n_ended < RETRIES) {
        rb_thread_call_without_gvl2(run_plain, &plain, RUBY_UBF_IO, NULL);
        if (plain.done)
            return 0;
        n_ended += plain.ended;
        plain.ended = false;
        int state = run_interrupts();
        if (state)
            return state;
    }
    return call_once(call, arg, told);
}

struct wait {
    struct shmview_segment *handle;
    wait_call *call;
    void *arg;
    int64_t deadline;
    VALUE thread;
    bool over;
    int r;
};

static void *run_wait(void *arg)
{
    struct wait *w = arg;
    shmview_on_wait(is_interrupted, &w->thread);
    w->r = w->call(w->handle, w->deadline, w->arg);
    w->over = w->r != -SHMVIEW_ERR_INTERRUPTED;
    shmview_on_wait(NULL, NULL);
    return NULL;
}

int wait_unlocked(struct segment *segment, wait_call *call, void *arg, int64_t deadline, int *ret)
{
    struct wait w = {segment->handle, call, arg, deadline, rb_thread_current(), false, 0};
    int state = 0;
    call_begins(segment);
    while (!w.over && !state) {
        rb_thread_call_without_gvl2(run_wait, &w, RUBY_UBF_IO, NULL);
        if (!w.over)
            state = run_interrupts();
    }
    call_ends(segment);
    *ret = w.r;
    return state;
}

int64_t parse_timeout(VALUE timeout)
{
    if (NIL_P(timeout))
        return SHMVIEW_FOREVER;
    double seconds = NUM2DBL(timeout);
    if (isnan(seconds) || seconds < 0)
        rb_raise(rb_eArgError, "a timeout is a number of seconds, 0 or more, or nil: %+" PRIsVALUE,
                 timeout);
    /* 0 tries once; what is longer than a hundred years has no deadline */
    return seconds == 0    ? 0
           : seconds > 3e9 ? SHMVIEW_FOREVER
                           : shmview_deadline((int64_t)(seconds * 1e9));
}
