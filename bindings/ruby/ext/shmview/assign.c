/* SPDX-License-Identifier: Apache-2.0 */
/* Setting elements: one; a part from an Array or from an object that exports a MemoryView; all to
 * one value.
 *
 * Converting a value can run its methods (to_int, to_str), and these can close the segment or
 * release the view. So unless the value is of a class that runs no code, the element is converted
 * into memory outside the segment, the view is checked again, and only then the bytes are
 * copied. */
#include <string.h>

#include "view.h"

/* --- One element --------------------------------------------------------- */

static bool runs_no_code(VALUE value)
{
    return RB_SPECIAL_CONST_P(value) || RB_BUILTIN_TYPE(value) == T_FLOAT;
}

/* Converts value into a buffer and copies it to p if the view may still be written. */
NOINLINE(static void store_object(VALUE self, struct view *view, char *p, VALUE value));
static void store_object(VALUE self, struct view *view, char *p, VALUE value)
{
    VALUE room;
    uint32_t n = view->v.itemsize;
    char *bytes = rb_alloc_tmp_buffer(&room, (long)n + 1);
    memcpy(bytes, p, n); /* so that the padding of a struct does not change */
    view->set(view, bytes, value);
    view_use_writable(self);
    memcpy(p, bytes, n);
    rb_free_tmp_buffer(&room);
}

void view_store(VALUE self, struct view *view, char *p, VALUE value)
{
    if (LIKELY(runs_no_code(value)))
        view->set(view, p, value);
    else
        store_object(self, view, p, value);
}

static void store_single(VALUE self, struct view *view, const struct shmview_view *to, VALUE value)
{
    void *p;
    int r = shmview_view_pointer(to, NULL, &p);
    if (r)
        raise_error(r, Qnil);
    view_store(self, view, p, value);
}

/* --- Parts --------------------------------------------------------------- */

/* Copies all elements, converted, and repeats those of from by numpy's rule if the shapes differ.
 * Returns like shmview_copy(). */
static int copy(const struct shmview_view *to, const struct shmview_view *from)
{
    struct shmview_view wide;
    if (from->ndim != to->ndim ||
        memcmp(from->shape, to->shape, to->ndim * sizeof to->shape[0]) != 0) {
        int64_t shape[SHMVIEW_MAX_NDIM];
        for (uint32_t d = 0; d < to->ndim; d++)
            shape[d] = to->shape[d];
        int r = shmview_view_broadcast(from, to->ndim, shape, &wide);
        if (r)
            return r;
        from = &wide;
    }
    return shmview_copy(to, from);
}

static void assign_view(VALUE self, const struct shmview_view *to, VALUE from)
{
    struct view *source = view_use(from);
    view_use_writable(self);
    int r = copy(to, &source->v);
    RB_GC_GUARD(from);
    if (r)
        raise_error(r, Qnil);
}

/* Sets every element of a part to value. */
static void assign_scalar(VALUE self, struct view *view, const struct shmview_view *to, VALUE value)
{
    VALUE room;
    char *item = rb_alloc_tmp_buffer(&room, (long)view->v.itemsize + 1);
    memset(item, 0, view->v.itemsize);
    view->set(view, item, value);
    view_use_writable(self);
    int r = shmview_fill(to, item);
    rb_free_tmp_buffer(&room);
    if (r)
        raise_error(r, Qnil);
}

static void assign(VALUE self, struct view *view, const struct shmview_view *to, VALUE value);

/* Sets element or row i to entry i, for each i. The lengths must be equal. */
static void assign_array(VALUE self, struct view *view, const struct shmview_view *to, VALUE array)
{
    struct shmview_view row;
    long n = to->ndim ? to->shape[0] : 1;
    if (RARRAY_LEN(array) != n)
        rb_raise(rb_eArgError, "%ld values for %ld elements", RARRAY_LEN(array), n);
    VALUE values = rb_ary_dup(array); /* because methods of its entries could change it */
    bool direct = to->ndim == 1 && !(to->flags & SHMVIEW_VIEW_INDIRECT);
    for (long i = 0; i < n; i++) {
        VALUE value = RARRAY_AREF(values, i);
        if (direct) {
            view_store(self, view, (char *)to->data + i * to->strides[0], value);
            continue;
        }
        int r = shmview_view_index(to, 0, i, &row);
        if (r)
            raise_error(r, Qnil);
        if (row.ndim && (RB_SPECIAL_CONST_P(value) || RB_FLOAT_TYPE_P(value)))
            rb_raise(rb_eArgError, "%+" PRIsVALUE " for a row of %td elements", value,
                     row.shape[0]);
        if (row.ndim == 0)
            store_single(self, view, &row, value);
        else
            assign(self, view, &row, value);
    }
    RB_GC_GUARD(values);
}

/* An element of a struct format is an Array too. Returns whether array is one such element: its
 * first entries are not nested deeper than the first fields. An Array that contains itself is
 * nested deeper than any. */
static bool is_one_struct(struct view *view, VALUE array)
{
    if (view->v.dtype != SHMVIEW_STRUCT || RARRAY_LEN(array) == 0)
        return false;
    uint32_t left = struct_depth(view);
    for (VALUE v = array; RB_TYPE_P(v, T_ARRAY); left--) {
        if (left == 0)
            return false;
        v = RARRAY_LEN(v) ? RARRAY_AREF(v, 0) : Qnil;
    }
    return true;
}

/* Sets a part of any shape, by the class of value. */
static void assign(VALUE self, struct view *view, const struct shmview_view *to, VALUE value)
{
    if (RB_TYPE_P(value, T_ARRAY) && !is_one_struct(view, value)) {
        assign_array(self, view, to, value);
        return;
    }
    VALUE from = RB_SPECIAL_CONST_P(value) ? Qundef : foreign_view(value);
    if (from != Qundef)
        assign_view(self, to, from);
    else
        assign_scalar(self, view, to, value);
}

/* Sets a part, or an element that view_aset() does not set itself: of a view with several
 * dimensions or with suboffsets. */
NOINLINE(static void set_part(int argc, const VALUE *argv, VALUE self, VALUE value));
static void set_part(int argc, const VALUE *argv, VALUE self, VALUE value)
{
    struct view *view = view_of(self);
    struct shmview_view to;
    bool single = view_locate(self, argc, argv, &to);
    view_use_writable(self); /* again, because the conversions may have frozen the bytes */
    if (single) {
        store_single(self, view, &to, value);
    } else if (to.item == view->v.item) {
        assign(self, view, &to, value);
    } else { /* a field: its elements have another type, and so other functions get and set */
        VALUE part = view_new(view->segment, &to);
        struct view *fields = view_of(part);
        if (to.ndim)
            assign(part, fields, &to, value);
        else
            store_single(part, fields, &to, value);
    }
}

/*
 * call-seq: view[i, j, ...] = value
 *
 * Sets an element, or each element of a part. A part can be set to one number; to the elements of a
 * nested Array of the same shape; or to those of a View or another object that exports a
 * MemoryView, whose shape is the same or repeats by numpy's rule. A value that the type of the
 * elements cannot hold raises ConversionError; the elements before it are set by then.
 *
 * Raises ConversionError, Bounds, ReadOnly, FrozenError, Invalid (shapes), StaleView, Closed,
 * ArgumentError, TypeError.
 */
static VALUE view_aset(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 1, UNLIMITED_ARGUMENTS);
    struct view *view = view_use_writable(self);
    VALUE value = argv[--argc];
    const struct shmview_view *v = &view->v;
    if (LIKELY(argc == 1 && v->ndim == 1 && FIXNUM_P(argv[0]) && view_is_direct(view))) {
        long i = FIX2LONG(argv[0]), at = i < 0 ? i + v->shape[0] : i;
        if (LIKELY((unsigned long)at < (unsigned long)v->shape[0])) {
            view_store(self, view, (char *)v->data + at * v->strides[0], value);
            return value;
        }
    }
    set_part(argc, argv, self, value);
    return value;
}

/*
 * call-seq: fill(value)
 *
 * Sets every element to the value; returns self. Raises the errors of []=.
 */
static VALUE view_fill(VALUE self, VALUE value)
{
    struct view *view = view_use_writable(self);
    assign_scalar(self, view, &view->v, value);
    return self;
}

void Init_assign(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
#endif
    rb_define_method(cView, "[]=", view_aset, -1);
    rb_define_method(cView, "fill", view_fill, 1);
}
