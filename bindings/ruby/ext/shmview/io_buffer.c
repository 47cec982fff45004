/* SPDX-License-Identifier: Apache-2.0 */
/* Views as bytes: copies to and from Strings, and IO::Buffer without a copy, which is experimental
 * in Ruby 3.1. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "memory_view.h"

#include <ruby/io/buffer.h>

/* A copy of at least so many bytes releases the GVL, so that other threads can run. For less than
 * that the release would cost too much of the time of the copy. */
#define LARGE_BYTES 1048576

/* --- Strings ------------------------------------------------------------- */

/* One copy between a view and the bytes of a String. */
struct bytes_copy {
    const struct shmview_view *v;
    char *bytes; /* v->nbytes of them, in row-major order */
    bool to_view;
    int r;
};

/* Copies elements that have gaps between them. bytes, which must be aligned, becomes a segment
 * during the call, because libshmview copies from view to view. Returns 0 or an error. */
static int copy_strided(const struct shmview_view *v, char *bytes, bool to_view)
{
    struct shmview_segment *segment;
    struct shmview_view flat;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int r = shmview_wrap(bytes, v->nbytes, 0, NULL, NULL, &segment);
    if (r)
        return r;
    for (uint32_t d = 0; d < v->ndim; d++)
        shape[d] = v->shape[d];
    struct shmview_view_spec spec = {.format = v->format, .ndim = v->ndim, .shape = shape};
    r = shmview_view_make(segment, &spec, &flat);
    if (r == 0)
        r = to_view ? shmview_copy(v, &flat) : shmview_copy(&flat, v);
    shmview_detach(segment);
    return r;
}

/* Like copy_strided(), but bytes need not be aligned: a short String lies within its Ruby object,
 * which is not aligned for a long double. */
static int copy_by_way(const struct shmview_view *v, char *bytes, bool to_view)
{
    if ((uintptr_t)bytes % _Alignof(max_align_t) == 0)
        return copy_strided(v, bytes, to_view);
    char *aligned = malloc(v->nbytes);
    if (!aligned)
        return -SHMVIEW_ERR_NO_MEMORY;
    if (to_view)
        memcpy(aligned, bytes, v->nbytes);
    int r = copy_strided(v, aligned, to_view);
    if (r == 0 && !to_view)
        memcpy(bytes, aligned, v->nbytes);
    free(aligned);
    return r;
}

static int copy_bytes(void *arg)
{
    struct bytes_copy *c = arg;
    c->r = 0;
    if (!shmview_view_is_contiguous(c->v, 'C'))
        c->r = copy_by_way(c->v, c->bytes, c->to_view);
    else if (c->to_view)
        memcpy(c->v->data, c->bytes, c->v->nbytes);
    else
        memcpy(c->bytes, c->v->data, c->v->nbytes);
    return c->r;
}

/* Copies between the view and the String, whose length is nbytes. Neither the String nor the
 * segment can be freed or moved during the copy, even if another thread releases the view: the
 * String is locked, the segment counts the call, and both stay on the stack. */
static void copy_string(VALUE self, VALUE string, bool to_view)
{
    const struct view *view = view_use(self);
    VALUE segment = view->segment;
    struct bytes_copy c = {&view->v, RSTRING_PTR(string), to_view, 0};
    struct told told;
    int state = 0;
    if (view->v.nbytes == 0)
        return;
    if (view->v.nbytes < LARGE_BYTES) {
        told_by(&told, copy_bytes(&c));
    } else {
        rb_str_locktmp(string);
        state = call_unlocked(segment, copy_bytes, &c, &told);
        rb_str_unlocktmp(string);
    }
    RB_GC_GUARD(segment);
    RB_GC_GUARD(string);
    if (state)
        rb_jump_tag(state);
    if (c.r)
        raise_told(&told, Qnil);
}

/*
 * call-seq: get_string(buffer = nil)
 *
 * Returns all elements in row-major order as a binary String of nbytes bytes. +buffer+ is a String
 * to fill and return instead of a new one. Releases the GVL from 1 MiB on. Raises StaleView,
 * Closed, FrozenError.
 */
static VALUE view_get_string(int argc, VALUE *argv, VALUE self)
{
    VALUE string;
    rb_scan_args(argc, argv, "01", &string);
    long n = (long)view_use(self)->v.nbytes;
    if (NIL_P(string)) {
        string = rb_str_new(NULL, n);
    } else {
        StringValue(string);
        rb_str_modify(string);
        rb_str_resize(string, n);
        rb_enc_associate(string, rb_ascii8bit_encoding());
    }
    copy_string(self, string, false);
    return string;
}

/*
 * call-seq: set_string(string)
 *
 * Sets all elements, in row-major order, from a String of nbytes bytes; returns self. Raises
 * IllSized, ReadOnly, FrozenError, StaleView, Closed.
 */
static VALUE view_set_string(VALUE self, VALUE string)
{
    StringValue(string);
    const struct view *view = view_use_writable(self);
    if ((uint64_t)RSTRING_LEN(string) != view->v.nbytes)
        raise_text(SHMVIEW_ERR_ILL_SIZED, "a String of %ld bytes for elements of %llu bytes",
                   RSTRING_LEN(string), (unsigned long long)view->v.nbytes);
    copy_string(self, string, true);
    return self;
}

/* --- IO::Buffer ---------------------------------------------------------- */

/* The arguments of end_lending(). */
struct lending {
    VALUE buffer, memory_view;
};

static VALUE end_lending(VALUE arg)
{
    const struct lending *lending = (const struct lending *)arg;
    rb_io_buffer_free(lending->buffer);
    return rb_funcall(lending->memory_view, rb_intern("release"), 0);
}

/*
 * call-seq:
 *   io_buffer                    -> IO::Buffer
 *   io_buffer { |buffer| ... }   -> what the block returns
 *
 * Returns the memory of a view without gaps as an IO::Buffer, without a copy; it is read-only if
 * the view is. The segment stays mapped until the buffer is collected. With a block it stays mapped
 * until the block ends, and the buffer is empty afterwards. The buffer has no method transfer.
 * IO::Buffer is experimental in Ruby 3.1. Raises NotContiguous, StaleView, Closed.
 */
static VALUE view_io_buffer(VALUE self)
{
    const struct view *view = view_use(self);
    if (!shmview_view_is_contiguous(&view->v, 'C'))
        raise_text(SHMVIEW_ERR_CONTIGUOUS, "an IO::Buffer has no strides, the view has gaps");
    VALUE arguments[] = {self, INT2FIX(RUBY_MEMORY_VIEW_ROW_MAJOR)};
    VALUE memory_view = rb_class_new_instance(2, arguments, rb_path2class("Shmview::MemoryView"));
    bool readonly = is_read_only(view->seg, &view->v) || RB_OBJ_FROZEN(self);
    VALUE buffer = rb_io_buffer_new(view->v.data, view->v.nbytes,
                                    RB_IO_BUFFER_EXTERNAL | (readonly ? RB_IO_BUFFER_READONLY : 0));
    rb_ivar_set(buffer, rb_intern("__shmview__"), memory_view);
    /* it would move the memory to an IO::Buffer that does not keep the segment mapped */
    rb_undef_method(rb_singleton_class(buffer), "transfer");
    if (!rb_block_given_p())
        return buffer;
    struct lending lending = {buffer, memory_view};
    return rb_ensure(rb_yield, buffer, end_lending, (VALUE)&lending);
}

void Init_io_buffer(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
#endif
    rb_define_method(cView, "get_string", view_get_string, -1);
    rb_define_method(cView, "set_string", view_set_string, 1);
    rb_define_method(cView, "io_buffer", view_io_buffer, 0);
}
