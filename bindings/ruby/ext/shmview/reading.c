/* SPDX-License-Identifier: Apache-2.0 */
/* Optimistic reads: a block reads without the lock, and then asks whether an owner was inside since
 * its beginning. */
#include "core.h"

static VALUE cReading;

/* What a block of Segment#reading gets. */
struct reading {
    VALUE segment;
    uint64_t version; /* of the bytes at the beginning */
    bool begun;       /* no owner was inside then, and none had died inside */
};

static void reading_mark(void *data)
{
    rb_gc_mark_movable(((struct reading *)data)->segment);
}

static void reading_compact(void *data)
{
    struct reading *self = data;
    self->segment = rb_gc_location(self->segment);
}

static const rb_data_type_t reading_type = {
    .wrap_struct_name = "Shmview::Reading",
    .function = {.dmark = reading_mark, .dfree = RUBY_DEFAULT_FREE, .dcompact = reading_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

/* One call of shmview_read_begin(). */
struct beginning {
    struct shmview_segment *handle;
    uint64_t version;
    int r;
};

static int begin(void *arg)
{
    struct beginning *b = arg;
    return b->r = shmview_read_begin(b->handle, &b->version);
}

/* Begins to read. Returns false if an owner is inside or has died inside. Raises all other errors,
 * and the exceptions of interrupts. */
static bool begin_reading(VALUE self, uint64_t *ret_version)
{
    struct segment *segment = segment_use(self);
    struct beginning b = {.handle = segment->handle};
    struct told told;
    int state = 0;
    if (is_entered(segment))
        told_by(&told, begin(&b));
    else
        state = call_unlocked(self, begin, &b, &told);
    if (state)
        rb_jump_tag(state);
    if (b.r && b.r != -SHMVIEW_ERR_BUSY)
        raise_told(&told, fact("name", segment->name));
    segment->entered = n_forks;
    *ret_version = b.version;
    return b.r == 0;
}

/*
 * call-seq: reading { |reading| ... }
 *
 * Runs the block without the lock; returns the value of the block. In it, copy elements, and use
 * the copy only if <tt>reading.valid?</tt> returns true after that: then no exclusive owner was
 * inside since the beginning.
 *
 *   copy = seg.reading { |r| a = seg["A"].to_a; a if r.valid? }
 *   copy ||= seg.shared { seg["A"].to_a }       # a writer was inside: wait for it
 *
 * Others may write while the block runs. So the elements need not fit each other before valid? has
 * returned true, and a view may raise StaleView. Does not wait, except for the daemon in the first
 * call of a forked child: see try_lock. Raises NoLock, Lost, Closed.
 */
static VALUE segment_reading(VALUE self)
{
    struct reading *reading;
    rb_need_block();
    VALUE object = TypedData_Make_Struct(cReading, struct reading, &reading_type, reading);
    reading->segment = Qnil;
    RB_OBJ_WRITE(object, &reading->segment, self);
    reading->begun = begin_reading(self, &reading->version);
    return rb_yield(object);
}

/*
 * Returns whether no exclusive owner was inside from the beginning of the block until now. False at
 * once if one was inside at the beginning, or had died inside: then take the lock. Does not block.
 * Raises Closed.
 */
static VALUE reading_is_valid(VALUE self)
{
    const struct reading *reading = rb_check_typeddata(self, &reading_type);
    const struct segment *segment = segment_use(reading->segment);
    return truth(reading->begun && shmview_read_validate(segment->handle, reading->version));
}

void Init_reading(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cSegment = rb_define_class_under(mShmview, "Segment", rb_cObject);
#endif
    /*
     * Document-class: Shmview::Reading
     *
     * A read without the lock. See Segment#reading.
     */
    cReading = rb_define_class_under(mShmview, "Reading", rb_cObject);
    rb_undef_alloc_func(cReading);
    rb_undef_method(CLASS_OF(cReading), "new");
    rb_define_method(cReading, "valid?", reading_is_valid, 0);
    rb_define_method(cSegment, "reading", segment_reading, 0);
}
