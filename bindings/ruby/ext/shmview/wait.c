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
#include "stream.h"

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

/* --- Use of objects ------------------------------------------------------ */

static bool is_stream(VALUE object)
{
    return RTYPEDDATA_TYPE(object) == &stream_type;
}

static bool is_connection(VALUE object)
{
    return RTYPEDDATA_TYPE(object) == &connection_type;
}

/* The objects of a use, at most all that wait_any takes. */
static long n_objects(VALUE objects)
{
    return NIL_P(objects) ? 0 : RB_TYPE_P(objects, T_ARRAY) ? RARRAY_LEN(objects) : 1;
}
static VALUE object_at(VALUE objects, long i)
{
    return RB_TYPE_P(objects, T_ARRAY) ? RARRAY_AREF(objects, i) : objects;
}

void use_begins(struct use *use, VALUE objects)
{
    *use = (struct use){objects, n_forks};
    for (long i = 0; i < n_objects(objects); i++) {
        VALUE object = object_at(objects, i);
        if (is_stream(object)) {
            calls_of_stream(stream_of(object));
            stream_of(object)->n_calls++;
        } else if (is_connection(object)) {
            calls_of_link(connection_use(object));
            atomic_fetch_add(&connection_use(object)->n_calls, 1);
        } else {
            calls_of(segment_of(object));
            atomic_fetch_add(&segment_of(object)->n_calls, 1);
        }
    }
}

void use_ends(struct use *use)
{
    /* a child whose interrupt has raised did not count the call */
    for (long i = 0; use->forks == n_forks && i < n_objects(use->objects); i++) {
        VALUE object = object_at(use->objects, i);
        if (is_stream(object))
            stream_of(object)->n_calls--;
        else if (is_connection(object))
            atomic_fetch_sub(&connection_use(object)->n_calls, 1);
        else
            atomic_fetch_sub(&segment_of(object)->n_calls, 1);
    }
    RB_GC_GUARD(use->objects);
}

/* Raises Closed unless all objects are open. */
static VALUE check_open(VALUE objects)
{
    for (long i = 0; i < n_objects(objects); i++) {
        VALUE object = object_at(objects, i);
        if (is_stream(object))
            stream_use(object);
        else if (is_connection(object))
            connection_use(object);
        else
            segment_use(object);
    }
    return Qnil;
}

int use_interrupts(struct use *use)
{
    int state = run_interrupts();
    if (LIKELY(use->forks == n_forks) || state)
        return state;
    rb_protect(check_open, use->objects, &state);
    if (!state)
        use_begins(use, use->objects);
    return state;
}

/* --- Calls --------------------------------------------------------------- */

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

int call_unlocked(VALUE objects, int (*call)(void *arg), void *arg, struct told *told)
{
    struct plain plain = {.call = call, .arg = arg, .told = told, .thread = rb_thread_current()};
    struct use use;
    int n_ended = 0, state = 0;
    use_begins(&use, objects);
    while (!plain.done && !state && n_ended < RETRIES) {
        rb_thread_call_without_gvl2(run_plain, &plain, RUBY_UBF_IO, NULL);
        n_ended += plain.ended;
        plain.ended = false;
        if (!plain.done)
            state = use_interrupts(&use);
    }
    if (!plain.done && !state)
        state = call_unrepeated(objects, call, arg, told);
    use_ends(&use);
    return state;
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

int wait_unlocked(VALUE objects, wait_call *call, void *arg, int64_t deadline, int *ret)
{
    struct wait w = {.call = call, .arg = arg, .deadline = deadline, .thread = rb_thread_current()};
    int state = 0;
    if (n_objects(objects) && !RB_TYPE_P(objects, T_ARRAY) && !is_stream(objects))
        w.handle = segment_of(objects)->handle;
    struct use use;
    use_begins(&use, objects);
    while (!w.over && !state) {
        rb_thread_call_without_gvl2(run_wait, &w, RUBY_UBF_IO, NULL);
        if (!w.over)
            state = use_interrupts(&use);
    }
    use_ends(&use);
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
