/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::Events: a subscription to the events of a daemon. lib/shmview/events.rb has the methods
 * that iterate, and the class of one event.
 *
 * A monitor of libshmview serves one thread at a time, and only the process that opened it. So a
 * call that waits marks the object, and other threads get Busy until it returns. They may close it:
 * then the waiting thread, which polls for that, ends the monitor. In a child that a signal handler
 * forks during a wait, the wait ends, and the events are for the parent alone. */
#include "facts.h"

#include <shmview/monitor.h>
#include <string.h>

static VALUE cEvents;

struct events {
    struct shmview_monitor *monitor; /* NULL: closed */
    unsigned forks;                  /* n_forks when it was opened */
    bool is_used;                    /* a thread waits for an event, or reads one */
    atomic_bool ends;                /* close was called while a thread waits, which closes it */
};

static void events_free(void *data)
{
    struct events *self = data;
    shmview_monitor_close(self->monitor);
    xfree(self);
}

static size_t events_size(const void *data)
{
    (void)data;
    return sizeof(struct events);
}

static const rb_data_type_t events_type = {
    .wrap_struct_name = "Shmview::Events",
    .function = {.dfree = events_free, .dsize = events_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static struct events *events_of(VALUE self)
{
    return rb_check_typeddata(self, &events_type);
}

/* Returns the subscription if this thread may use it now. Raises Closed, Busy. */
static struct events *events_use(VALUE self)
{
    struct events *events = events_of(self);
    if (!events->monitor || atomic_load(&events->ends))
        raise_closed("the subscription");
    if (events->forks != n_forks)
        rb_raise(rb_path2class("Shmview::Closed"),
                 "the subscription belongs to the parent process; open another one");
    if (events->is_used)
        raise_text(SHMVIEW_ERR_BUSY, "another thread waits for an event of this subscription");
    return events;
}

/* --- Opening and closing ------------------------------------------------- */

/* One call of shmview_monitor_open(). */
struct opening {
    struct shmview_connection *connection;
    struct shmview_monitor_options options;
    struct shmview_monitor *monitor;
    int r;
};

static int open_monitor(void *arg)
{
    struct opening *o = arg;
    o->monitor = NULL; /* a forked child calls again: then the monitor is that of its parent */
    return o->r = shmview_monitor_open(o->connection, &o->options, &o->monitor);
}

/* The number of kinds that a bit of the options can name. */
#define N_KINDS 32

/* Returns the bit of the kind called name, a Symbol or String. Raises ArgumentError. */
static uint32_t kind_bit(VALUE name)
{
    VALUE text = rb_String(name), all = rb_ary_new();
    for (int kind = 1; kind < N_KINDS; kind++) {
        const char *its_name = shmview_event_kind_name(kind);
        if (its_name && strcmp(StringValueCStr(text), its_name) == 0)
            return SHMVIEW_EVENT_BIT(kind);
        if (its_name)
            rb_ary_push(all, rb_str_new_cstr(its_name));
    }
    rb_raise(rb_eArgError, "no kind of events: %+" PRIsVALUE "; the kinds are %" PRIsVALUE, name,
             rb_ary_join(all, rb_str_new_cstr(", ")));
}

/* Core.events(names, kinds, after, connection): opens an Events. names and kinds are Arrays. after
 * is nil or a serial number; libshmview has the number 1 for "all that are remembered". */
static VALUE core_events(VALUE module, VALUE names, VALUE kinds, VALUE after, VALUE connection)
{
    (void)module;
    struct events *events;
    VALUE self = TypedData_Make_Struct(cEvents, struct events, &events_type, events);
    VALUE room, texts = rb_ary_new();
    long n = RARRAY_LEN(names);
    const char **list = rb_alloc_tmp_buffer(&room, (n + 1) * (long)sizeof *list);
    struct opening o = {.options = {.struct_bytes = sizeof o.options, .names = list}};
    for (long i = 0; i < n; i++) {
        VALUE text = name_of(rb_ary_entry(names, i));
        rb_ary_push(texts, text);
        list[i] = StringValueCStr(text);
    }
    o.options.n_names = (size_t)n;
    for (long i = 0; i < RARRAY_LEN(kinds); i++)
        o.options.kinds |= kind_bit(rb_ary_entry(kinds, i));
    if (!NIL_P(after))
        o.options.after = NUM2ULL(after) ? NUM2ULL(after) : SHMVIEW_MONITOR_REMEMBERED;
    connection = connection_value(connection);
    o.connection = connection_use(connection)->handle;
    struct told told;
    int state = call_unlocked(connection, open_monitor, &o, &told);
    events->monitor = o.monitor;
    events->forks = n_forks;
    RB_GC_GUARD(texts);
    rb_free_tmp_buffer(&room);
    if (state)
        rb_jump_tag(state);
    if (o.r)
        raise_told(&told, Qnil);
    return self;
}

static void end_monitor(struct events *events)
{
    shmview_monitor_close(events->monitor);
    events->monitor = NULL;
}

/*
 * Ends the subscription; does nothing if it has ended. Returns nil. Does not block. If another
 * thread waits for an event, its wait ends within 0.1 s: each returns, and next raises Closed. A
 * forked child closes only its copy.
 */
static VALUE events_close(VALUE self)
{
    struct events *events = events_of(self);
    if (events->is_used &&
        events->forks == n_forks) /* the child lacks the parent's other threads */
        atomic_store(&events->ends, true);
    else
        end_monitor(events);
    return Qnil;
}

/* Returns whether close was called. */
static VALUE events_is_closed(VALUE self)
{
    struct events *events = events_of(self);
    return truth(!events->monitor || atomic_load(&events->ends));
}

/* --- Reading ------------------------------------------------------------- */

/* One call of shmview_monitor_next(). event stays NULL if close or a fork ended the wait. */
struct waiting {
    struct events *events;
    VALUE thread;
    const struct shmview_event *event;
};

/* For shmview_on_wait(). Runs in the native thread of the waiting Thread, without the GVL. */
static int is_over(void *arg)
{
    const struct waiting *waiting = arg;
    return rb_thread_interrupted(waiting->thread) || atomic_load(&waiting->events->ends);
}

static int next_event(struct shmview_segment *none, int64_t deadline, void *arg)
{
    struct waiting *waiting = arg;
    (void)none;
    if (waiting->events->forks != n_forks)
        return 0;
    shmview_on_wait(is_over, waiting);
    int r = shmview_monitor_next(waiting->events->monitor, deadline, &waiting->event);
    return r && atomic_load(&waiting->events->ends) ? 0 : r;
}

static VALUE or_nil(int64_t number)
{
    return number < 0 ? Qnil : LL2NUM(number);
}

static VALUE build_event(VALUE arg)
{
    const struct shmview_event *e = ((struct waiting *)arg)->event;
    static const char *const stream_modes[] = {"lossless", "latest"};
    static const char *const roles[] = {"writer", "reader", "both"};
    const char *kind = shmview_event_kind_name((int)e->kind);
    return rb_struct_new(
        rb_path2class("Shmview::Event"), ULL2NUM(e->serial), time_of(e->time_us),
        ID2SYM(rb_intern(kind ? kind : "unknown")), text_or_nil(e->segment), ULL2NUM(e->id),
        or_nil(e->uid), UINT2NUM(e->pid), text_or_nil(e->command), ULL2NUM(e->attachment),
        access_of(e->access), or_nil(e->slot), mode_of(e->held), ULL2NUM(e->size),
        UINT2NUM(e->generation), text_or_nil(e->layout), UINT2NUM(e->switches), ULL2NUM(e->deaths),
        ULL2NUM(e->segments), ULL2NUM(e->attachments), ULL2NUM(e->lost), INT2NUM(e->error),
        text_or_nil(e->reason), symbol_of(stream_modes, 2, e->stream), UINT2NUM(e->stream_slots),
        symbol_of(roles, 3, e->stream_role), UINT2NUM(e->held_frames));
}

static VALUE end_use(VALUE arg)
{
    struct events *events = ((struct waiting *)arg)->events;
    events->is_used = false;
    if (atomic_load(&events->ends))
        end_monitor(events);
    return Qnil;
}

/* _next(timeout): returns the next Event, or nil after the timeout. Waits without the GVL. An event
 * that has come is never lost to an interrupt. Raises Busy, Closed, Disconnected. */
static VALUE events_next(VALUE self, VALUE timeout)
{
    int r;
    int64_t deadline = parse_timeout(timeout);
    struct waiting waiting = {.events = events_use(self), .thread = rb_thread_current()};
    waiting.events->is_used = true;
    int state = wait_unlocked(Qnil, next_event, &waiting, deadline, &r);
    if (state == 0 && r == 0 && waiting.event)
        return rb_ensure(build_event, (VALUE)&waiting, end_use, (VALUE)&waiting);
    end_use((VALUE)&waiting);
    RB_GC_GUARD(self);
    if (state)
        rb_jump_tag(state);
    if (r == 0)
        events_use(self); /* raises Closed */
    if (r != -SHMVIEW_ERR_TIMED_OUT)
        raise_error(r, Qnil);
    return Qnil;
}

/* _fd: returns the descriptor of to_io, which belongs to the subscription; -1 without a daemon. */
static VALUE events_fd(VALUE self)
{
    return INT2NUM(shmview_monitor_fd(events_use(self)->monitor));
}

void Init_events(void)
{
    cEvents = rb_define_class_under(mShmview, "Events", rb_cObject);
    rb_undef_alloc_func(cEvents);
    rb_undef_method(CLASS_OF(cEvents), "new");
    rb_define_method(cEvents, "close", events_close, 0);
    rb_define_method(cEvents, "closed?", events_is_closed, 0);
    rb_define_private_method(cEvents, "_next", events_next, 1);
    rb_define_private_method(cEvents, "_fd", events_fd, 0);
    rb_define_module_function(rb_path2class("Shmview::Core"), "events", core_events, 4);
}
