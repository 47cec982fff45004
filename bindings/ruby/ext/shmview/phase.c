/* SPDX-License-Identifier: Apache-2.0 */
/* Phases and changes, by which the programs that use a segment inform each other.
 *
 * Calls that may wait for the daemon run between use_begins() and use_ends() without the GVL: a
 * phase whose layout this process has never seen needs one request. After that, waits for a change
 * or a phase are futexes of libshmview and do not use the daemon. */
#include "core.h"

/* --- Calls that may ask the daemon --------------------------------------- */

/* The arguments and results of one call; each of the four functions below uses some of them. */
struct plain_call {
    struct shmview_segment *handle;
    int (*notify)(struct shmview_segment *handle);
    const char *layout;
    struct shmview_phase phase;
    int fd;
    int r;
};

static int get_phase(void *arg)
{
    struct plain_call *c = arg;
    return c->r = shmview_phase_get(c->handle, &c->phase);
}
static int switch_phase(void *arg)
{
    struct plain_call *c = arg;
    return c->r = shmview_switch(c->handle, c->layout);
}
static int notify(void *arg)
{
    struct plain_call *c = arg;
    return c->r = c->notify(c->handle);
}
static int change_fd(void *arg)
{
    struct plain_call *c = arg;
    return c->r = shmview_change_fd(c->handle, &c->fd);
}

/* Makes the call without the GVL. Raises its errors, with facts, and the exceptions of
 * interrupts. */
static void make_call(VALUE self, int (*call)(void *), struct plain_call *c, VALUE facts)
{
    struct told told;
    c->handle = segment_use(self)->handle;
    int state = call_unlocked(self, call, c, &told);
    if (state)
        rb_jump_tag(state);
    if (c->r)
        raise_told(&told, facts);
}

/*
 * Returns the counter of changes, an Integer of 32 bits that wraps; 0 without a lock. notify and
 * switch add one; the users of the segment decide what a change means. Does not block. Raises
 * Closed.
 */
static VALUE segment_change(VALUE self)
{
    return UINT2NUM(shmview_change(segment_use(self)->handle));
}

/*
 * Returns the name of the current layout; nil before the first switch. Blocks for one round trip if
 * the layout is new to this object. Raises NoLock, Closed, Disconnected.
 */
static VALUE segment_phase(VALUE self)
{
    struct plain_call c = {0};
    make_call(self, get_phase, &c, Qnil);
    return c.phase.generation ? rb_utf8_str_new_cstr(c.phase.name) : Qnil;
}

/* Returns how often the phase was switched; 0: never. Blocks and raises like phase. */
static VALUE segment_generation(VALUE self)
{
    struct plain_call c = {0};
    make_call(self, get_phase, &c, Qnil);
    return UINT2NUM(c.phase.generation);
}

/*
 * call-seq: switch(layout)
 *
 * Makes the layout current; returns self. The caller must hold the lock exclusively. Views of other
 * phases become stale, and threads that wait for a phase or a change wake up. Raises NotOwner,
 * Lost, ReadOnly, NoLayout, NoLock, Closed, Disconnected.
 */
static VALUE segment_switch(VALUE self, VALUE layout)
{
    VALUE name = name_of(layout);
    struct plain_call c = {.layout = StringValueCStr(name)};
    make_call(self, switch_phase, &c, fact("layout", name));
    RB_GC_GUARD(name);
    return self;
}

/*
 * call-seq: notify(one: false)
 *
 * Adds one to the counter of changes and wakes all threads that wait for it, or one of them if
 * +one+ is true; returns self. The caller need not hold the lock. Raises NoLock, Closed.
 */
static VALUE segment_notify(int argc, VALUE *argv, VALUE self)
{
    const ID keywords[] = {id_one};
    VALUE options, one;
    rb_scan_args(argc, argv, "0:", &options);
    rb_get_kwargs(options, keywords, 0, 1, &one);
    struct plain_call c = {
        .notify = one != Qundef && RTEST(one) ? shmview_notify_one : shmview_notify,
    };
    make_call(self, notify, &c, Qnil);
    return self;
}

/* _change_fd: returns the descriptor of change_io, which belongs to the segment. */
static VALUE segment_change_fd(VALUE self)
{
    struct plain_call c = {0};
    make_call(self, change_fd, &c, Qnil);
    return INT2NUM(c.fd);
}

/* --- Waiting ------------------------------------------------------------- */

struct change_wait {
    uint32_t seen, change;
};

static int wait_change(struct shmview_segment *handle, int64_t deadline, void *arg)
{
    struct change_wait *wait = arg;
    return shmview_wait_change(handle, wait->seen, deadline, &wait->change);
}

struct phase_wait {
    const char *layout;
    uint32_t after;
    struct shmview_phase phase;
};

static int wait_phase(struct shmview_segment *handle, int64_t deadline, void *arg)
{
    struct phase_wait *wait = arg;
    return shmview_wait_phase(handle, wait->layout, wait->after, deadline, &wait->phase);
}

/* Converts value to an Integer of 32 bits. what names the argument in errors. */
static uint32_t count_of(VALUE value, const char *what)
{
    VALUE number = rb_Integer(value);
    if (!FIXNUM_P(number) || FIX2LONG(number) < 0 || FIX2LONG(number) > (long)UINT32_MAX)
        rb_raise(rb_eArgError, "%s: 0 to 4294967295, not %+" PRIsVALUE, what, value);
    return (uint32_t)FIX2LONG(number);
}

/* The keywords of wait, in the order of its array. */
enum {
    PHASE,
    GENERATION,
    CHANGE,
    TIMEOUT,
    N_KEYWORDS
};

/*
 * call-seq: wait(phase: nil, generation: nil, change: nil, timeout: nil)
 *
 * Waits, at most +timeout+ seconds:
 * [phase:] until the layout of this name is current; returns the generation
 * [generation:] until the generation is past this one; together with +phase+ both must hold
 * [change:] until the counter of changes is not this one; returns the counter
 * [none of them] until the next change from now on; returns the counter
 *
 * Waits without the GVL; signals, Thread#raise, Thread#kill and Timeout.timeout end the wait. A
 * phase that begins and ends before the thread wakes up is missed. Raises TimedOut, NoLayout (not
 * declared yet), NoLock, Closed, Disconnected.
 */
static VALUE segment_wait(int argc, VALUE *argv, VALUE self)
{
    const ID keywords[] = {id_phase, id_generation, id_change, id_timeout};
    VALUE options, values[N_KEYWORDS], name = Qnil;
    struct phase_wait for_phase = {0};
    struct change_wait for_change = {0};
    int r;
    rb_scan_args(argc, argv, "0:", &options);
    rb_get_kwargs(options, keywords, 0, N_KEYWORDS, values);
    for (int i = 0; i < N_KEYWORDS; i++)
        if (values[i] == Qundef)
            values[i] = Qnil;
    bool for_a_phase = !NIL_P(values[PHASE]) || !NIL_P(values[GENERATION]);
    if (for_a_phase && !NIL_P(values[CHANGE]))
        rb_raise(rb_eArgError, "wait for a phase or for a change, not for both");
    if (!NIL_P(values[PHASE])) {
        name = name_of(values[PHASE]);
        for_phase.layout = StringValueCStr(name);
    }
    if (!NIL_P(values[GENERATION]))
        for_phase.after = count_of(values[GENERATION], "generation");
    int64_t deadline = parse_timeout(values[TIMEOUT]);
    if (!NIL_P(values[CHANGE]))
        for_change.seen = count_of(values[CHANGE], "change");
    struct shmview_segment *handle = segment_use(self)->handle;
    if (NIL_P(values[CHANGE]))
        for_change.seen = shmview_change(handle);
    int state = for_a_phase ? wait_unlocked(self, wait_phase, &for_phase, deadline, &r)
                            : wait_unlocked(self, wait_change, &for_change, deadline, &r);
    if (state)
        rb_jump_tag(state);
    if (r) {
        VALUE facts = fact("name", segment_of(self)->name);
        if (!NIL_P(name))
            rb_hash_aset(facts, ID2SYM(rb_intern("layout")), name);
        raise_error(r, facts);
    }
    RB_GC_GUARD(name);
    return UINT2NUM(for_a_phase ? for_phase.phase.generation : for_change.change);
}

void Init_phase(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cSegment = rb_define_class_under(mShmview, "Segment", rb_cObject);
#endif
    rb_define_method(cSegment, "change", segment_change, 0);
    rb_define_method(cSegment, "phase", segment_phase, 0);
    rb_define_method(cSegment, "generation", segment_generation, 0);
    rb_define_method(cSegment, "switch", segment_switch, 1);
    rb_define_method(cSegment, "notify", segment_notify, -1);
    rb_define_method(cSegment, "wait", segment_wait, -1);
    rb_define_private_method(cSegment, "_change_fd", segment_change_fd, 0);
}
