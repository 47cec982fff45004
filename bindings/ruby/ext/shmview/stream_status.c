/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a stream: its attributes, deaths, slots and readers; and one wait for several streams,
 * changes and phases. */
#include "stream.h"

#include <shmview/wait.h>

/* --- Attributes ---------------------------------------------------------- */

/* Returns the name, a String, with ":1" for a stage; a closed stream keeps it. */
static VALUE stream_name(VALUE self)
{
    return stream_of(self)->name;
}
/* Returns :peek, :read or :write. */
static VALUE stream_access(VALUE self)
{
    static const char *const names[] = {"peek", "read", "write"};
    return ID2SYM(rb_intern(names[(stream_of(self)->access - 1) % 3]));
}
/* Returns the Connection. */
static VALUE stream_connection(VALUE self)
{
    return stream_of(self)->connection;
}
/* Returns an Array of the names of the views of a frame. */
static VALUE stream_views(VALUE self)
{
    return stream_of(self)->views;
}
/* Returns a StreamInfo: the facts that do not change. */
static VALUE stream_info(VALUE self)
{
    const struct shmview_stream_info *i = &stream_of(self)->info;
    return rb_struct_new(rb_path2class("Shmview::StreamInfo"), truth(i->mode == SHMVIEW_LOSSLESS),
                         UINT2NUM(i->n_slots), UINT2NUM(i->history), UINT2NUM(i->n_stages),
                         UINT2NUM(i->stage), truth(i->flags & SHMVIEW_MANY_WRITERS),
                         ULL2NUM(i->frame_bytes));
}

/* Describes the stream for people. */
static VALUE stream_inspect(VALUE self)
{
    const struct stream *stream = stream_of(self);
    if (!stream->line)
        return rb_sprintf("#<Shmview::Stream '%" PRIsVALUE "', closed>", stream->name);
    return rb_sprintf("#<Shmview::Stream '%" PRIsVALUE "', %s, %u slots, %" PRIsVALUE ">",
                      stream->name, stream->info.mode == SHMVIEW_LOSSLESS ? "lossless" : "latest",
                      stream->info.n_slots, rb_sym2str(stream_access(self)));
}

/* --- Deaths -------------------------------------------------------------- */

/* Returns the last WriterDied that a call of this Stream has raised, or nil. Raises Closed. */
VALUE stream_death(VALUE self)
{
    struct shmview_death death;
    const struct stream *stream = stream_use(self);
    if (shmview_stream_death(stream->line->handle, &death))
        return Qnil;
    return rb_funcall(rb_path2class("Shmview::Errors"), rb_intern("make_writer_death"), 4,
                      stream->name, UINT2NUM(death.pid), text_of(death.command),
                      DBL2NUM((double)death.when_ns / 1e9));
}

/* --- Status -------------------------------------------------------------- */

/* One query, in a String of Ruby's, because it is large. */
struct report {
    struct shmview_stream *handle;
    uint32_t n_slots;
    int r;
    struct shmview_stream_status status;
    struct shmview_stream_slot_status slots[SHMVIEW_STREAM_SLOTS_MAX];
    struct shmview_stream_reader_status readers[SHMVIEW_SLOTS_MAX];
};

static int query(void *arg)
{
    struct report *report = arg;
    return report->r = shmview_stream_query(report->handle, &report->status, report->slots,
                                            report->n_slots, report->readers, SHMVIEW_SLOTS_MAX);
}

static VALUE numbers(const uint64_t *list, uint32_t n)
{
    VALUE array = rb_ary_new_capa(n);
    for (uint32_t i = 0; i < n; i++)
        rb_ary_push(array, ULL2NUM(list[i]));
    return array;
}

static VALUE slot_status(const struct shmview_stream_slot_status *s, uint32_t n_stages)
{
    static const char *const states[] = {"free", "loaned", "published", "held"};
    return rb_struct_new(rb_path2class("Shmview::SlotStatus"),
                         ID2SYM(rb_intern(states[s->state & 3])), UINT2NUM(s->n_holders),
                         UINT2NUM(s->pid), text_of(s->command), DBL2NUM((double)s->time_ns / 1e9),
                         numbers(s->sequence, n_stages));
}

static VALUE reader_status(const struct shmview_stream_reader_status *r, uint32_t n_slots)
{
    VALUE holds = rb_ary_new();
    for (uint32_t f = 0; f < n_slots; f++)
        if (r->holds[f / 64] >> f % 64 & 1)
            rb_ary_push(holds, UINT2NUM(f));
    return rb_struct_new(rb_path2class("Shmview::ReaderStatus"), UINT2NUM(r->pid),
                         text_of(r->command), UINT2NUM(r->slot), UINT2NUM(r->stage),
                         ULL2NUM(r->next), ULL2NUM(r->lag), ULL2NUM(r->missed), holds);
}

static VALUE build_status(const struct report *report, const struct shmview_stream_info *info)
{
    const struct shmview_stream_status *s = &report->status;
    VALUE ended = rb_ary_new(), slots = rb_ary_new(), readers = rb_ary_new();
    for (uint32_t k = 0; k < info->n_stages; k++)
        rb_ary_push(ended, truth(s->has_ended[k]));
    for (uint32_t f = 0; f < info->n_slots; f++)
        rb_ary_push(slots, slot_status(&report->slots[f], info->n_stages));
    for (size_t i = 0; i < s->n_readers && i < SHMVIEW_SLOTS_MAX; i++)
        rb_ary_push(readers, reader_status(&report->readers[i], info->n_slots));
    return rb_struct_new(rb_path2class("Shmview::StreamStatus"),
                         numbers(s->published, info->n_stages), ended, UINT2NUM(s->writer_pid),
                         text_of(s->writer_command), UINT2NUM(s->deaths), slots, readers);
}

/*
 * Returns a StreamStatus: the slots and the readers, without disturbing them. With access :peek the
 * readers are not seen. Does not block, except in a forked child, whose first call attaches again.
 * Raises Lost, Closed.
 */
static VALUE stream_status(VALUE self)
{
    struct told told;
    VALUE room;
    struct report *report = rb_alloc_tmp_buffer(&room, (long)sizeof *report);
    struct stream *stream = stream_use(self);
    report->handle = stream->line->handle;
    report->n_slots = stream->info.n_slots;
    int state = call_unlocked(self, query, report, &told);
    if (state)
        rb_jump_tag(state);
    if (report->r)
        raise_told(&told, fact("name", stream->name));
    VALUE status = build_status(report, &stream->info);
    rb_free_tmp_buffer(&room);
    return status;
}

/* --- Waiting for one of several ------------------------------------------ */

struct several {
    struct shmview_wait entries[SHMVIEW_WAIT_MAX];
    size_t n, index;
};

static int wait_several(struct shmview_segment *none, int64_t deadline, void *arg)
{
    struct several *s = arg;
    (void)none;
    return shmview_wait_any(s->entries, s->n, deadline, &s->index);
}

/* Returns the Stream or the Segment of an entry, which is one of them or [kind, segment, seen].
 * Raises TypeError. */
static VALUE object_of(VALUE entry)
{
    VALUE object = RB_TYPE_P(entry, T_ARRAY) ? rb_ary_entry(entry, 1) : entry;
    if (!RTEST(rb_obj_is_kind_of(object, cSegment)) &&
        (object != entry || !RTEST(rb_obj_is_kind_of(object, cStream))))
        rb_raise(rb_eTypeError,
                 "wait_any waits for a Stream, a Segment, [:change, segment, seen] or [:phase, "
                 "segment, generation], not %+" PRIsVALUE,
                 entry);
    return object;
}

/* Fills the kind and the number of an entry. Raises ArgumentError, TypeError. */
static void parse_entry(VALUE entry, VALUE object, struct shmview_wait *ret)
{
    *ret = (struct shmview_wait){.kind = SHMVIEW_WAIT_FRAME};
    if (RTEST(rb_obj_is_kind_of(object, cStream)))
        return;
    ret->kind = SHMVIEW_WAIT_CHANGE;
    if (object == entry) {
        ret->seen = shmview_change(segment_use(object)->handle);
        return;
    }
    static const char *const kinds[] = {"change", "phase", NULL};
    VALUE name = rb_String(rb_ary_entry(entry, 0)), seen = rb_Integer(rb_ary_entry(entry, 2));
    bool is_phase = rb_str_equal(name, rb_str_new_cstr(kinds[1])) == Qtrue;
    if ((!is_phase && rb_str_equal(name, rb_str_new_cstr(kinds[0])) != Qtrue) || !FIXNUM_P(seen) ||
        FIX2LONG(seen) < 0 || FIX2LONG(seen) > (long)UINT32_MAX)
        rb_raise(rb_eArgError,
                 "wait_any: [:change, segment, seen] or [:phase, segment, generation], not "
                 "%+" PRIsVALUE,
                 entry);
    ret->kind = is_phase ? SHMVIEW_WAIT_PHASE : SHMVIEW_WAIT_CHANGE;
    ret->seen = (uint32_t)FIX2LONG(seen);
}

/* Fills the handles, after all code of Ruby has run. Raises Closed. */
static void use_objects(VALUE objects, struct several *several)
{
    for (size_t i = 0; i < several->n; i++) {
        VALUE object = RARRAY_AREF(objects, (long)i);
        if (several->entries[i].kind == SHMVIEW_WAIT_FRAME)
            several->entries[i].stream = stream_use(object)->line->handle;
        else
            several->entries[i].segment = segment_use(object)->handle;
    }
}

/*
 * call-seq: Shmview.wait_any(*entries, timeout: nil)
 *
 * Waits until one of 1 to 64 entries is ready, and returns the first one that is:
 * [a Stream] a take would not wait
 * [a Segment] it has changed since this call began
 * [<tt>[:change, segment, seen]</tt>] the counter of changes is not +seen+
 * [<tt>[:phase, segment, generation]</tt>] the generation is not this one
 *
 * It takes nothing: another thread or process may be first. Waits at most +timeout+ seconds (nil:
 * without limit) without the GVL; signals, Thread#raise, Thread#kill and Timeout.timeout end the
 * wait. Raises TimedOut, NoLock, Lost, Closed.
 */
static VALUE shmview_s_wait_any(int argc, VALUE *argv, VALUE module)
{
    const ID keywords[] = {id_timeout};
    VALUE entries, options = Qnil, timeout, objects = rb_ary_new();
    struct several several;
    int r;
    (void)module;
    rb_scan_args(argc, argv, "*:", &entries, &options);
    rb_get_kwargs(options, keywords, 0, 1, &timeout);
    int64_t deadline = parse_timeout(timeout == Qundef ? Qnil : timeout);
    long n = RARRAY_LEN(entries);
    if (n < 1 || n > SHMVIEW_WAIT_MAX)
        rb_raise(rb_eArgError, "wait_any waits for 1 to %d objects, not %ld", SHMVIEW_WAIT_MAX, n);
    several.n = (size_t)n;
    for (long i = 0; i < n; i++) {
        VALUE object = object_of(RARRAY_AREF(entries, i));
        rb_ary_push(objects, object);
        parse_entry(RARRAY_AREF(entries, i), object, &several.entries[i]);
    }
    use_objects(objects, &several);
    int state = wait_unlocked(objects, wait_several, &several, deadline, &r);
    if (state)
        rb_jump_tag(state);
    if (r)
        raise_error(r, Qnil);
    RB_GC_GUARD(objects);
    return RARRAY_AREF(entries, (long)several.index);
}

void Init_stream_status(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cStream = rb_define_class_under(mShmview, "Stream", rb_cObject);
#endif
    rb_define_singleton_method(mShmview, "wait_any", shmview_s_wait_any, -1);
    rb_define_method(cStream, "name", stream_name, 0);
    rb_define_method(cStream, "access", stream_access, 0);
    rb_define_method(cStream, "connection", stream_connection, 0);
    rb_define_method(cStream, "views", stream_views, 0);
    rb_define_method(cStream, "info", stream_info, 0);
    rb_define_method(cStream, "death", stream_death, 0);
    rb_define_method(cStream, "status", stream_status, 0);
    rb_define_method(cStream, "inspect", stream_inspect, 0);
}
