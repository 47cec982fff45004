/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::Stream: creating, opening and closing it. lib/shmview/streams.rb has the keyword
 * arguments and the classes of results. */
#include "stream.h"

#include <stdlib.h>

#include "access.h"

VALUE cStream;

/* --- Lines and holds ----------------------------------------------------- */

static void line_drop(struct line *line)
{
    if (atomic_fetch_sub(&line->n_users, 1) != 1)
        return;
    if (line->handle) {
        shmview_stream_close_later(line->handle);
        atomic_fetch_sub(&line->link->n_out, 1);
    }
    link_drop(line->link);
    free(line);
}

static struct line *line_new(struct link *link)
{
    struct line *line = calloc(1, sizeof *line);
    if (!line)
        rb_memerror();
    line->link = link_take(link);
    line->n_users = 1;
    return line;
}

struct hold *hold_new(struct line *line)
{
    struct hold *hold = calloc(1, sizeof *hold);
    if (!hold)
        rb_memerror();
    hold->line = line;
    hold->n_users = 1;
    atomic_fetch_add(&line->n_users, 1);
    return hold;
}

void hold_take(struct hold *hold)
{
    atomic_fetch_add(&hold->n_users, 1);
}

void hold_drop(struct hold *hold)
{
    if (atomic_fetch_sub(&hold->n_users, 1) != 1)
        return;
    shmview_frame_discard(&hold->frame);
    shmview_frame_release(&hold->frame);
    line_drop(hold->line);
    free(hold);
}

/* --- The object ---------------------------------------------------------- */

static void stream_mark(void *data)
{
    struct stream *self = data;
    rb_gc_mark_movable(self->connection);
    rb_gc_mark_movable(self->name);
    rb_gc_mark_movable(self->views);
}

static void stream_compact(void *data)
{
    struct stream *self = data;
    self->connection = rb_gc_location(self->connection);
    self->name = rb_gc_location(self->name);
    self->views = rb_gc_location(self->views);
}

static void stream_free(void *data)
{
    struct stream *self = data;
    if (self->line)
        line_drop(self->line);
    xfree(self);
}

static size_t stream_size(const void *data)
{
    (void)data;
    return sizeof(struct stream);
}

const rb_data_type_t stream_type = {
    .wrap_struct_name = "Shmview::Stream",
    .function =
        {
            .dmark = stream_mark,
            .dfree = stream_free,
            .dsize = stream_size,
            .dcompact = stream_compact,
        },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

size_t calls_of_stream(struct stream *stream)
{
    if (UNLIKELY(stream->forks != n_forks)) {
        stream->forks = n_forks;
        stream->n_calls = 0;
    }
    return stream->n_calls;
}

/* --- Opening ------------------------------------------------------------- */

/* The arguments and results of one request. It is on the stack of a method, which keeps the Ruby
 * objects that the pointers belong to alive. */
struct opening {
    struct shmview_connection *connection;
    const char *name;
    int access;
    struct shmview_stream_spec spec;
    struct shmview_create_options options;
    struct shmview_stream *handle;
    uint64_t place, reach;
    int r;
};

/* Finds the bytes that the views of slot 0 take. Returns 0 or an error. */
static int find_place(struct opening *o)
{
    struct shmview_segment *segment = shmview_stream_segment(o->handle);
    const unsigned char *data = shmview_data(segment);
    const char *name;
    o->place = UINT64_MAX;
    o->reach = 0;
    for (size_t i = 0; (name = shmview_stream_view_name(o->handle, i)); i++) {
        struct shmview_view v;
        int r = shmview_view_open(segment, "frame", name, &v);
        if (r)
            return r;
        const unsigned char *low = v.data, *high = v.data + (v.nbytes ? v.itemsize : 0);
        for (uint32_t d = 0; d < v.ndim && v.nbytes; d++) {
            ptrdiff_t far = (v.shape[d] - 1) * v.strides[d];
            *(far < 0 ? &low : &high) += far;
        }
        uint64_t begin = (uint64_t)(low - data), end = (uint64_t)(high - data);
        o->place = begin < o->place ? begin : o->place;
        o->reach = end > o->reach ? end : o->reach;
    }
    o->place = o->place / 64 * 64; /* so that views of the slot are aligned as in the segment */
    return 0;
}

/* Completes an opened stream, or closes it. The call may be made again after an interrupt. */
static int complete(struct opening *o)
{
    if (o->r == 0)
        o->r = find_place(o);
    if (o->r && o->handle) {
        shmview_stream_close_later(o->handle);
        o->handle = NULL;
    }
    return o->r;
}

static int create(void *arg)
{
    struct opening *o = arg;
    o->handle = NULL; /* a forked child calls again: then the handle is that of its parent */
    o->r = shmview_stream_create(o->connection, o->name, &o->spec, &o->handle);
    return complete(o);
}

static int open_existing(void *arg)
{
    struct opening *o = arg;
    o->handle = NULL;
    o->r = shmview_stream_open(o->connection, o->name, o->access, &o->handle);
    return complete(o);
}

/* Fills a new Stream, which owns the handle already. */
static void fill(VALUE self, struct stream *stream, const struct opening *o)
{
    struct shmview_segment *segment = shmview_stream_segment(o->handle);
    shmview_stream_info_get(o->handle, &stream->info);
    stream->access = shmview_access(segment);
    stream->place = o->place;
    stream->reach = o->reach;
    VALUE name = rb_utf8_str_new_cstr(shmview_name(segment)), views = rb_ary_new();
    if (stream->info.stage)
        rb_str_catf(name, ":%u", stream->info.stage);
    for (size_t i = 0; i < stream->info.n_views; i++)
        rb_ary_push(views,
                    rb_obj_freeze(rb_utf8_str_new_cstr(shmview_stream_view_name(o->handle, i))));
    RB_OBJ_WRITE(self, &stream->name, rb_obj_freeze(name));
    RB_OBJ_WRITE(self, &stream->views, rb_obj_freeze(views));
}

/* Makes the object first, so that the handle has an owner at once. If an interrupt raises after the
 * request has succeeded, the stream is closed now and not when it is collected. */
static VALUE open_stream(VALUE connection, struct opening *o, bool creates, VALUE facts)
{
    struct told told;
    struct stream *stream;
    VALUE self = TypedData_Make_Struct(cStream, struct stream, &stream_type, stream);
    stream->connection = stream->name = stream->views = Qnil;
    RB_OBJ_WRITE(self, &stream->connection, connection);
    stream->forks = stream->entered = n_forks;
    struct link *link = connection_use(connection);
    struct line *line = stream->line = line_new(link);
    o->connection = link->handle;
    int state = creates ? call_unrepeated(connection, create, o, &told)
                        : call_unlocked(connection, open_existing, o, &told);
    if (o->handle)
        atomic_fetch_add(&link->n_out, 1);
    if (!state && o->handle)
        state = run_interrupts();
    line->handle = o->handle;
    if (state || o->r) {
        stream->line = NULL;
        line_drop(line);
    }
    if (state)
        rb_jump_tag(state);
    if (o->r)
        raise_told(&told, facts);
    fill(self, stream, o);
    return self;
}

/* Converts a number of slots and the like, whose limits libshmview knows. */
static uint32_t parse_count(const char *what, VALUE value)
{
    VALUE number = rb_Integer(value);
    if (!FIXNUM_P(number) || FIX2LONG(number) < 0 || FIX2LONG(number) > (long)UINT32_MAX)
        rb_raise(rb_eArgError, "%s: a number of 0 or more, not %+" PRIsVALUE, what, value);
    return (uint32_t)FIX2LONG(number);
}

/* The entries of the second argument of Core.create_stream, in the order of streams.rb. */
enum {
    LOSSLESS,
    SLOTS,
    HISTORY,
    STAGES,
    MANY_WRITERS,
    PLACED,
    LIFETIME,
    POPULATE,
    ACCESS,
    BACKING
};

/* Core.create_stream(name, views, options, connection): returns a Stream. views are as
 * view_specs_begin() takes them; options is an Array in the order above. */
static VALUE core_create_stream(VALUE module, VALUE name, VALUE views, VALUE options,
                                VALUE connection)
{
    static const char *const lifetimes[] = {"attached", "manual", "creator", NULL};
    struct view_specs specs;
    struct access rights;
    (void)module;
    name = name_of(name);
    VALUE given = RARRAY_AREF(options, ACCESS);
    struct opening o = {
        .name = StringValueCStr(name),
        .options =
            {
                .struct_bytes = sizeof o.options,
                .lifetime = choose("lifetime", RARRAY_AREF(options, LIFETIME), lifetimes),
                .flags = RTEST(RARRAY_AREF(options, POPULATE)) ? SHMVIEW_POPULATE : 0,
                .backing = backing_called(RARRAY_AREF(options, BACKING)),
            },
        .spec =
            {
                .struct_bytes = sizeof o.spec,
                .mode = RTEST(RARRAY_AREF(options, LOSSLESS)) ? SHMVIEW_LOSSLESS : SHMVIEW_LATEST,
                .n_slots = parse_count("slots", RARRAY_AREF(options, SLOTS)),
                .history = parse_count("history", RARRAY_AREF(options, HISTORY)),
                .n_stages = parse_count("stages", RARRAY_AREF(options, STAGES)),
                .flags = (RTEST(RARRAY_AREF(options, MANY_WRITERS)) ? SHMVIEW_MANY_WRITERS : 0) |
                         (RTEST(RARRAY_AREF(options, PLACED)) ? SHMVIEW_PLACED : 0),
            },
    };
    if (!NIL_P(given)) {
        access_read(given, &rights);
        o.options.access = &rights.change;
    }
    VALUE texts = NIL_P(given) ? Qnil : rights.texts;
    view_specs_begin(views, &specs);
    o.spec.views = specs.specs;
    o.spec.n_views = specs.n;
    o.spec.options = &o.options;
    VALUE self = open_stream(connection_value(connection), &o, true, fact("name", name));
    view_specs_end(&specs);
    RB_GC_GUARD(texts);
    RB_GC_GUARD(name);
    return self;
}

/* Core.open_stream(name, access, connection): returns a Stream. */
static VALUE core_open_stream(VALUE module, VALUE name, VALUE access, VALUE connection)
{
    static const char *const accesses[] = {"peek", "read", "write", NULL};
    (void)module;
    name = name_of(name);
    struct opening o = {
        .name = StringValueCStr(name),
        .access = (int)choose("access", access, accesses),
    };
    VALUE self = open_stream(connection_value(connection), &o, false, fact("name", name));
    RB_GC_GUARD(name);
    return self;
}

/* --- Closing ------------------------------------------------------------- */

static int close_handle(void *arg)
{
    struct opening *o = arg;
    return o->r = shmview_stream_close(o->handle);
}

/*
 * Closes the stream; does nothing if it is closed. Leaves it as a reader, and gives up the role of
 * the writer. Frames that are still loaned are discarded, and taken ones are released: they and
 * their views raise Closed afterwards. Does not wait for the daemon. Returns nil.
 *
 * Raises Busy if a consumer (Fiddle::MemoryView, IO::Buffer, Shmview::MemoryView) still has the
 * memory of a frame; then only the other frames have ended. Raises Busy too if another thread is in
 * a call of the stream.
 */
static VALUE stream_close(VALUE self)
{
    struct stream *stream = stream_of(self);
    struct line *line = stream->line;
    if (!line)
        return Qnil;
    size_t n = calls_of_stream(stream);
    if (n)
        raise_text(SHMVIEW_ERR_BUSY,
                   "%zu threads are in calls of '%s'; close it when they are done", n,
                   RSTRING_PTR(stream->name));
    frames_end(line);
    n = atomic_load(&line->n_users) - 1;
    if (n)
        raise_text(SHMVIEW_ERR_BUSY,
                   "consumers still have the memory of %zu frames of '%s'; release them first", n,
                   RSTRING_PTR(stream->name));
    struct opening o = {.handle = line->handle};
    struct told told;
    stream->line = NULL; /* other threads must not use the handle while the GVL is free */
    int state = call_unlocked(Qnil, close_handle, &o, &told);
    if (state || o.r) {
        stream->line = line; /* still open: the call was not made, or has failed */
        if (state)
            rb_jump_tag(state);
        raise_told(&told, fact("name", stream->name));
    }
    line->handle = NULL;
    atomic_fetch_sub(&line->link->n_out, 1);
    line_drop(line);
    return Qnil;
}

/* Returns whether close was called. */
static VALUE stream_is_closed(VALUE self)
{
    return truth(!stream_of(self)->line);
}

/* _segment_name: returns the name without a stage. Raises Closed. */
static VALUE stream_segment_name(VALUE self)
{
    return rb_utf8_str_new_cstr(
        shmview_name(shmview_stream_segment(stream_use(self)->line->handle)));
}

void Init_stream(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
#endif
    /*
     * Document-class: Shmview::Stream
     *
     * Frames from process to process, without a copy. A stream is a segment with a pool of slots. A
     * writer loans a free slot, fills it in place, and publishes it as a Frame; readers take the
     * frames in order and release them. A frame that a reader holds is never overwritten.
     *
     *   Shmview.create_stream("camera", image: ["uint8", [480, 640, 3]]) do |stream|
     *     stream.loan { |frame| frame["image"].set_string(pixels) }
     *   end
     *
     *   Shmview.open_stream("camera") do |stream|      # in another process
     *     stream.each { |frame| p frame["image"].summary.max }
     *   end
     *
     * Shmview.create_stream and Shmview.open_stream make it. Any thread may use it, and so may a
     * forked child, whose first take joins the stage again. It is Enumerable; methods that collect
     * frames, such as to_a and first, return frames that are released already, so use map.
     */
    cStream = rb_define_class_under(mShmview, "Stream", rb_cObject);
    rb_undef_alloc_func(cStream);
    rb_undef_method(CLASS_OF(cStream), "new");
    rb_include_module(cStream, rb_mEnumerable);
    VALUE core = rb_path2class("Shmview::Core");
    rb_define_module_function(core, "create_stream", core_create_stream, 4);
    rb_define_module_function(core, "open_stream", core_open_stream, 3);
    rb_define_method(cStream, "close", stream_close, 0);
    rb_define_method(cStream, "closed?", stream_is_closed, 0);
    rb_define_private_method(cStream, "_segment_name", stream_segment_name, 0);
}
