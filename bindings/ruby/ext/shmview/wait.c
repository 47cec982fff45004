/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and waits without the GVL.
 *
 * A wait must end when Ruby interrupts its Thread (Thread#raise, Timeout, Ctrl-C). RUBY_UBF_IO
 * sends signals to the native thread until the Thread has noticed the interrupt. A signal ends the
 * system call, and then libshmview asks is_interrupted() whether the wait goes on. The interrupt
 * itself, which may run any Ruby code, runs after libshmview has returned.
 *
 * rb_thread_call_without_gvl() would run interrupts before it returns, and so raise after a call
 * that has taken a lock; nobody would then release the lock. So every call uses
 * rb_thread_call_without_gvl2(), which raises nothing. */
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

/* An interrupt that raises nothing, such as a handler of Signal.trap, ends a wait for the daemon,
 * and the call is made again. After so many of them another thread makes the call (once.c), because
 * otherwise frequent signals could end every attempt. */
#define RETRIES 3

/* One call of call_unlocked(). Both flags stay false if Ruby did not make the call, because an
 * interrupt was pending before it. */
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

/* For shmview_on_wait(). Runs in the native thread of *thread, without the GVL. */
static int is_interrupted(void *thread)
{
    return rb_thread_interrupted(*(VALUE *)thread);
}

static void *run_plain(void *arg)
{
    struct plain *plain = arg;
    shmview_on_wait(is_interrupted, &plain->thread);
    /* Only the result shows whether an interrupt ended the call. A call that has done its work
     * succeeds, even if an interrupt came in the last moment. */
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
    return call_unrepeated(call, arg, told);
}

/* One call of wait_unlocked(). */
struct wait {
    struct shmview_segment *handle;
    wait_call *call;
    void *arg;
    int64_t deadline;
    VALUE thread;
    bool over; /* not ended by an interrupt */
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
    struct wait w = {.call = call, .arg = arg, .deadline = deadline, .thread = rb_thread_current()};
    int state = 0;
    if (segment) {
        w.handle = segment->handle;
        call_begins(segment);
    }
    while (!w.over && !state) {
        rb_thread_call_without_gvl2(run_wait, &w, RUBY_UBF_IO, NULL);
        if (!w.over)
            state = run_interrupts();
    }
    if (segment)
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
    /* 0 tries once. From 3e9 seconds (95 years) on there is no deadline, because the nanoseconds
     * would overflow at 9e9. */
    return seconds == 0    ? 0
           : seconds > 3e9 ? SHMVIEW_FOREVER
                           : shmview_deadline((int64_t)(seconds * 1e9));
}
