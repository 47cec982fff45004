/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::Frame: its views, publishing and releasing it.
 *
 * When a frame ends, its views are closed. A consumer (MemoryView, IO::Buffer, tensor) has an
 * address that nobody can take from it, so it keeps the slot until it is released. A frame that is
 * published while the writer has a consumer of it is kept (shmview_frame_publish_kept()), because
 * the memory of a consumer must not change under its owner. */
#include <string.h>

#include "stream.h"
#include "view.h"

VALUE cFrame;

/* --- The object ---------------------------------------------------------- */

static void frame_mark(void *data)
{
    struct frame *self = data;
    rb_gc_mark_movable(self->stream);
    rb_gc_mark_movable(self->memory);
}

static void frame_compact(void *data)
{
    struct frame *self = data;
    self->stream = rb_gc_location(self->stream);
    self->memory = rb_gc_location(self->memory);
}

/* Gives up the hold. The caller gets the Frame's count of it, and owes hold_drop(). */
static struct hold *give_up(struct frame *frame)
{
    struct hold *hold = frame->hold;
    frame->hold = NULL;
    *frame->prev = frame->next;
    if (frame->next)
        frame->next->prev = frame->prev;
    return hold;
}

/* Does not touch the stream and the memory, which Ruby may have freed already. */
static void frame_free(void *data)
{
    struct frame *self = data;
    if (self->hold)
        hold_drop(give_up(self));
    xfree(self);
}

static size_t frame_size(const void *data)
{
    (void)data;
    return sizeof(struct frame);
}

static const rb_data_type_t frame_type = {
    .wrap_struct_name = "Shmview::Frame",
    .function =
        {
            .dmark = frame_mark,
            .dfree = frame_free,
            .dsize = frame_size,
            .dcompact = frame_compact,
        },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static struct frame *frame_of(VALUE self)
{
    return data_of(self, &frame_type);
}

VALUE frame_new(VALUE stream)
{
    struct frame *frame;
    VALUE self = TypedData_Make_Struct(cFrame, struct frame, &frame_type, frame);
    frame->stream = frame->memory = Qnil;
    RB_OBJ_WRITE(self, &frame->stream, stream);
    struct line *line = stream_use(stream)->line;
    frame->hold = hold_new(line);
    frame->next = line->frames;
    frame->prev = &line->frames;
    if (frame->next)
        frame->next->prev = &frame->next;
    line->frames = frame;
    return self;
}

struct shmview_frame *frame_target(VALUE self)
{
    return &frame_of(self)->hold->frame;
}

void frame_filled(VALUE self, bool is_loaned)
{
    struct frame *frame = frame_of(self);
    frame->is_loaned = is_loaned;
    frame->sequence = frame->hold->frame.sequence;
    frame->missed = frame->hold->frame.missed;
    frame->time_ns = frame->hold->frame.time_ns;
}

/* Returns the frame if it is not over. Raises Closed. */
static struct frame *frame_use(VALUE self)
{
    struct frame *frame = frame_of(self);
    if (UNLIKELY(!frame->hold))
        rb_raise(rb_path2class("Shmview::Closed"), "the frame was %s",
                 frame->is_loaned ? "published or discarded" : "released");
    return frame;
}

/* Like frame_use(), for calls that change a frame. Raises NotOwner. */
static struct frame *frame_use_loaned(VALUE self)
{
    struct frame *frame = frame_use(self);
    if (UNLIKELY(!frame->is_loaned))
        raise_text(SHMVIEW_ERR_NOT_OWNER, "the frame was taken: only a loaned one can be changed");
    return frame;
}

/* --- Its end ------------------------------------------------------------- */

/* Closes the views. A thread that copies their bytes without the GVL keeps them open; then the
 * memory ends when the collector finds it. */
static void end_memory(struct frame *frame)
{
    struct segment *seg = frame->seg;
    frame->seg = NULL;
    if (!seg || !seg->handle || calls_of(seg))
        return;
    struct shmview_segment *handle = seg->handle;
    seg->handle = NULL;
    shmview_detach_later(handle);
}

VALUE frame_end(VALUE self)
{
    struct frame *frame = frame_of(self);
    if (frame->hold) {
        struct hold *hold = give_up(frame);
        end_memory(frame);
        hold_drop(hold);
    }
    return Qnil;
}

/* Closes the views, unless a consumer has the memory, or a thread copies it. Returns whether they
 * are closed. */
static bool close_views(struct frame *frame)
{
    struct segment *seg = frame->seg;
    if (!seg || !seg->handle)
        return true;
    if (calls_of(seg) || shmview_detach(seg->handle))
        return false;
    seg->handle = NULL;
    return true;
}

size_t frames_end(struct line *line)
{
    size_t n = 0;
    for (struct frame *frame = line->frames, *next; frame; frame = next) {
        next = frame->next;
        if (close_views(frame))
            hold_drop(give_up(frame));
        else
            n++;
    }
    return n;
}

/*
 * Releases a taken frame, and closes its views; discards a loaned one. Does nothing for a frame
 * that is over. Returns nil.
 *
 * Raises Busy if a consumer (Fiddle::MemoryView, IO::Buffer, Shmview::MemoryView) has its memory.
 * The end of a block does not: then the slot is free when the last consumer is released.
 */
static VALUE frame_release(VALUE self)
{
    struct frame *frame = frame_of(self);
    if (frame->hold && !close_views(frame))
        raise_text(SHMVIEW_ERR_BUSY, "consumers still have the memory of the frame; release them "
                                     "first");
    return frame_end(self);
}

/*
 * Gives a loaned slot back without publishing it, and closes its views. Does nothing for a frame
 * that is over. Returns nil. Raises NotOwner (it was taken).
 */
static VALUE frame_discard(VALUE self)
{
    if (frame_of(self)->hold)
        frame_use_loaned(self);
    return frame_end(self);
}

/*
 * Publishes a loaned frame, closes its views, and returns its sequence number. Readers see it as a
 * whole. A consumer that still has its memory keeps the slot, and must not write to it any longer.
 *
 * Raises NotOwner (it was taken), Lost, Closed.
 */
static VALUE frame_publish(VALUE self)
{
    struct frame *frame = frame_use_loaned(self);
    struct hold *hold = give_up(frame);
    end_memory(frame);
    bool is_kept = atomic_load(&hold->n_users) > 1;
    int r =
        is_kept ? shmview_frame_publish_kept(&hold->frame) : shmview_frame_publish(&hold->frame);
    frame->sequence = hold->frame.sequence;
    frame->time_ns = hold->frame.time_ns;
    if (LIKELY(r == 0)) {
        hold_drop(hold);
        return ULL2NUM(frame->sequence);
    }
    struct told told;
    told_by(&told, r);
    hold_drop(hold);
    raise_told(&told, fact("name", stream_of(frame->stream)->name));
}

VALUE frame_lend(VALUE self)
{
    return rb_ensure(rb_yield, self, frame_end, self);
}

static VALUE yield_and_publish(VALUE self)
{
    VALUE value = rb_yield(self);
    if (frame_of(self)->hold)
        frame_publish(self);
    return value;
}

VALUE frame_fill(VALUE self)
{
    return rb_ensure(yield_and_publish, self, frame_end, self);
}

/* --- Views --------------------------------------------------------------- */

static void drop(void *hold)
{
    hold_drop(hold);
}

/* Makes the Segment of the frame's bytes. */
static void wrap_memory(VALUE self)
{
    struct frame *frame = frame_of(self);
    VALUE memory = segment_wrap(NULL, self);
    struct segment *seg = segment_of(memory);
    const struct stream *stream = stream_of(frame->stream);
    struct hold *hold = frame_use(self)->hold; /* again, because the allocation can run code */
    unsigned char *data = shmview_data(shmview_stream_segment(hold->line->handle));
    data += stream->place + hold->frame.slot * stream->info.frame_bytes;
    hold_take(hold);
    int r = shmview_wrap(data, stream->reach - stream->place,
                         frame->is_loaned ? 0 : SHMVIEW_WRAP_READ_ONLY, drop, hold, &seg->handle);
    if (r) {
        hold_drop(hold);
        raise_error(r, Qnil);
    }
    RB_OBJ_WRITE(self, &frame->memory, memory);
    frame->seg = seg;
}

/*
 * call-seq: frame["image"]
 *
 * Returns a View, which is valid until the frame ends. The view of a taken frame is read-only, and
 * its leading dimension has the length that the writer gave it. Raises NoLayout, Closed; NotOwner
 * in a forked child, if its parent has loaned or taken the frame.
 */
static VALUE frame_aref(VALUE self, VALUE name)
{
    struct shmview_view v;
    VALUE text = name_of(name);
    const char *s = StringValueCStr(text);
    struct frame *frame = frame_use(self);
    if (!frame->seg || !frame->seg->handle)
        wrap_memory(self);
    int r = shmview_frame_view(&frame_use(self)->hold->frame, s, &v);
    if (r)
        raise_error(r, fact("view", text));
    v.segment = frame->seg->handle;
    RB_GC_GUARD(text);
    return view_new(frame->memory, &v);
}

/*
 * call-seq: set_length(name, n)
 *
 * Sets the length of a view of a loaned frame in its leading dimension, from 0 to that of the
 * stream; returns self. Views that exist keep theirs. Raises Bounds, NoLayout, NotOwner, Closed.
 */
static VALUE frame_set_length(VALUE self, VALUE name, VALUE length)
{
    VALUE text = name_of(name), number = rb_to_int(length);
    if (RTEST(rb_funcall(number, '<', 1, INT2FIX(0))) ||
        RTEST(rb_funcall(number, '>', 1, ULL2NUM(UINT64_MAX))))
        rb_raise(rb_eArgError, "a length is a number of elements, not %+" PRIsVALUE, length);
    struct frame *frame = frame_use_loaned(self);
    VALUE views = stream_of(frame->stream)->views;
    long i = 0, n = RARRAY_LEN(views);
    while (i < n && !rb_str_equal(RARRAY_AREF(views, i), text))
        i++;
    if (i == n)
        raise_text_with(SHMVIEW_ERR_NO_LAYOUT, fact("view", text),
                        "stream '%" PRIsVALUE "' has no view '%" PRIsVALUE "'",
                        stream_of(frame->stream)->name, text);
    int r = shmview_frame_set_length(&frame->hold->frame, (size_t)i, NUM2ULL(number));
    if (r)
        raise_error(r, fact("view", text));
    return self;
}

/*
 * call-seq: pass_on(stage)
 *
 * Publishes a taken frame in another stage of the stream, without a copy; returns its sequence
 * number there. The caller still holds the frame. The stream must be open with access :write.
 * Raises Exists (it is in that stage already), Invalid (no such stage), ReadOnly, Lost, Closed.
 */
static VALUE frame_pass_on(VALUE self, VALUE stage)
{
    uint64_t sequence;
    VALUE number = rb_to_int(stage);
    struct frame *frame = frame_use(self);
    bool fits = FIXNUM_P(number) && FIX2LONG(number) >= 0 && FIX2LONG(number) < (long)UINT32_MAX;
    int r = shmview_frame_pass(&frame->hold->frame, fits ? (uint32_t)FIX2LONG(number) : UINT32_MAX,
                               &sequence);
    if (r)
        raise_error(r, fact("name", stream_of(frame->stream)->name));
    return ULL2NUM(sequence);
}

/* --- Attributes ---------------------------------------------------------- */

/* Returns its number in the stage, from 1; 0 while it is loaned. */
static VALUE frame_sequence(VALUE self)
{
    return ULL2NUM(frame_of(self)->sequence);
}
/* Returns how many frames this reader has missed between the one before and this one. */
static VALUE frame_missed(VALUE self)
{
    return ULL2NUM(frame_of(self)->missed);
}
/* Returns the Stream. */
static VALUE frame_stream(VALUE self)
{
    return frame_of(self)->stream;
}
/* Returns whether the frame is over: released, published or discarded. */
static VALUE frame_is_released(VALUE self)
{
    return truth(!frame_of(self)->hold);
}
/* Returns whether nobody has overwritten the frame. A taken frame stays intact until it is
 * released; with access :peek look at this after copying what is needed. */
static VALUE frame_is_intact(VALUE self)
{
    const struct frame *frame = frame_of(self);
    return truth(frame->hold && (frame->is_loaned || shmview_frame_is_intact(&frame->hold->frame)));
}
/* Returns when it was published, in seconds of Process::CLOCK_MONOTONIC; 0.0 while it is loaned,
 * unless the writer has set it. */
static VALUE frame_time(VALUE self)
{
    return DBL2NUM((double)frame_of(self)->time_ns / 1e9);
}
/* Returns the time in nanoseconds, an Integer. */
static VALUE frame_time_ns(VALUE self)
{
    return LL2NUM(frame_of(self)->time_ns);
}
/*
 * call-seq: frame.time_ns = nanoseconds
 *
 * Sets the time of a loaned frame, such as that of the exposure. Raises NotOwner, Closed.
 */
static VALUE frame_set_time_ns(VALUE self, VALUE value)
{
    int64_t time_ns = NUM2LL(value);
    struct frame *frame = frame_use_loaned(self);
    frame->time_ns = frame->hold->frame.time_ns = time_ns;
    return value;
}
/*
 * call-seq: frame.time = seconds
 *
 * Like time_ns=, in seconds.
 */
static VALUE frame_set_time(VALUE self, VALUE value)
{
    double seconds = NUM2DBL(value);
    if (!(seconds > -9e9 && seconds < 9e9))
        rb_raise(rb_eArgError, "a time is a number of seconds: %+" PRIsVALUE, value);
    frame_set_time_ns(self, LL2NUM((int64_t)(seconds * 1e9)));
    return value;
}
/* Returns the bytes that the writer has added, a binary String. Raises Closed. */
static VALUE frame_user(VALUE self)
{
    const struct shmview_frame *frame = &frame_use(self)->hold->frame;
    return rb_str_new((const char *)frame->user, (long)frame->user_bytes);
}
/*
 * call-seq: frame.user = string
 *
 * Adds up to 64 bytes to a loaned frame, for the program's own use. Raises NotOwner, Closed.
 */
static VALUE frame_set_user(VALUE self, VALUE value)
{
    VALUE text = value;
    StringValue(text);
    struct shmview_frame *frame = &frame_use_loaned(self)->hold->frame;
    if (RSTRING_LEN(text) > SHMVIEW_STREAM_USER_BYTES)
        rb_raise(rb_eArgError, "%ld bytes for a frame's user, the limit is %u", RSTRING_LEN(text),
                 SHMVIEW_STREAM_USER_BYTES);
    memcpy(frame->user, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
    frame->user_bytes = (uint32_t)RSTRING_LEN(text);
    return value;
}

/* Describes the frame for people. */
static VALUE frame_inspect(VALUE self)
{
    const struct frame *frame = frame_of(self);
    VALUE name = stream_of(frame->stream)->name;
    if (frame->is_loaned && frame->hold)
        return rb_sprintf("#<Shmview::Frame of '%" PRIsVALUE "', loaned>", name);
    return rb_sprintf("#<Shmview::Frame %llu of '%" PRIsVALUE "'%s>",
                      (unsigned long long)frame->sequence, name,
                      frame->hold         ? ""
                      : !frame->is_loaned ? ", released"
                      : frame->sequence   ? ", published"
                                          : ", discarded");
}

void Init_frame(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
#endif
    /*
     * Document-class: Shmview::Frame
     *
     * One frame of a stream, which Stream#loan, take, latest and each yield or return. It ends when
     * it is published, discarded or released, at the end of the block, or when it is collected.
     * Its views end with it, and raise Closed afterwards. A consumer of a view (Fiddle::MemoryView,
     * IO::Buffer, Shmview::MemoryView) keeps the slot until it is released or collected, so its
     * memory never changes under it. In a forked child the frames of its parent keep nothing.
     */
    cFrame = rb_define_class_under(mShmview, "Frame", rb_cObject);
    rb_undef_alloc_func(cFrame);
    rb_undef_method(CLASS_OF(cFrame), "new");
    rb_define_method(cFrame, "[]", frame_aref, 1);
    rb_define_method(cFrame, "publish", frame_publish, 0);
    rb_define_method(cFrame, "discard", frame_discard, 0);
    rb_define_method(cFrame, "release", frame_release, 0);
    rb_define_method(cFrame, "released?", frame_is_released, 0);
    rb_define_method(cFrame, "set_length", frame_set_length, 2);
    rb_define_method(cFrame, "pass_on", frame_pass_on, 1);
    rb_define_method(cFrame, "sequence", frame_sequence, 0);
    rb_define_method(cFrame, "missed", frame_missed, 0);
    rb_define_method(cFrame, "time", frame_time, 0);
    rb_define_method(cFrame, "time=", frame_set_time, 1);
    rb_define_method(cFrame, "time_ns", frame_time_ns, 0);
    rb_define_method(cFrame, "time_ns=", frame_set_time_ns, 1);
    rb_define_method(cFrame, "user", frame_user, 0);
    rb_define_method(cFrame, "user=", frame_set_user, 1);
    rb_define_method(cFrame, "stream", frame_stream, 0);
    rb_define_method(cFrame, "intact?", frame_is_intact, 0);
    rb_define_method(cFrame, "inspect", frame_inspect, 0);
}
