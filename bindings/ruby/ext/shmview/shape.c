/* SPDX-License-Identifier: Apache-2.0 */
/* Methods that return another View of the same memory: casts, shapes, axes. Nothing is copied. The
 * new view belongs to the same phase, and is read-only if the old one is. libshmview does the
 * arithmetic and checks it; this file converts arguments and errors. */
#include "view.h"

/* Returns the View of *v, or raises if r is an error. */
static VALUE made(VALUE self, int r, const struct shmview_view *v, VALUE facts)
{
    if (r)
        raise_error(r, facts);
    return view_new(view_of(self)->segment, v);
}

/*
 * call-seq: cast(format, shape = nil)
 *
 * Returns a View of the same bytes with another format; the length of the last dimension changes
 * with the item size. The view must be row-major without gaps. +shape+ is as for reshape. Raises
 * NotContiguous, FormatError, IllSized, Misaligned, Invalid, StaleView, Closed.
 */
static VALUE view_cast(int argc, VALUE *argv, VALUE self)
{
    VALUE format, shape = Qnil;
    rb_scan_args(argc, argv, "11", &format, &shape);
    VALUE text = format_text(format);
    int64_t lengths[SHMVIEW_MAX_NDIM];
    uint32_t n = NIL_P(shape) ? 0 : parse_numbers("shape", shape, lengths);
    struct shmview_view v;
    int r = shmview_view_recast(&view_use(self)->v, StringValueCStr(text), &v);
    if (r == 0 && !NIL_P(shape))
        r = shmview_view_reshape(&v, n, lengths, &v);
    return made(self, r, &v, fact("format", text));
}

/*
 * call-seq: reshape(n, m, ...)
 *
 * Returns a View of these elements, in row-major order, with another shape. One length may be -1:
 * it follows from the others. Raises IllSized (another number of elements), Invalid (would need a
 * copy), StaleView, Closed.
 */
static VALUE view_reshape(int argc, VALUE *argv, VALUE self)
{
    int64_t shape[SHMVIEW_MAX_NDIM];
    VALUE lengths = argc == 1 && RB_TYPE_P(argv[0], T_ARRAY) ? argv[0] : rb_ary_new4(argc, argv);
    uint32_t n = parse_numbers("shape", lengths, shape);
    struct shmview_view v;
    int r = shmview_view_reshape(&view_use(self)->v, n, shape, &v);
    return made(self, r, &v, Qnil);
}

/*
 * call-seq: transpose(*axes)
 *
 * Returns a View whose dimension d is the old dimension axes[d]; without axes their order is
 * reversed. Raises Invalid, StaleView, Closed.
 */
static VALUE view_transpose(int argc, VALUE *argv, VALUE self)
{
    int64_t given[SHMVIEW_MAX_NDIM];
    uint32_t axes[SHMVIEW_MAX_NDIM] = {0};
    uint32_t n = parse_numbers("axes", rb_ary_new4(argc, argv), given);
    const struct view *view = view_use(self);
    if (n && n != view->v.ndim)
        raise_text(SHMVIEW_ERR_INVALID, "%u axes, the view has %u dimensions", n, view->v.ndim);
    for (uint32_t d = 0; d < n; d++) /* UINT32_MAX: not an axis, so libshmview refuses it */
        axes[d] = given[d] < 0 || given[d] >= SHMVIEW_MAX_NDIM ? UINT32_MAX : (uint32_t)given[d];
    struct shmview_view v;
    int r = shmview_view_transpose(&view->v, n ? axes : NULL, &v);
    return made(self, r, &v, Qnil);
}

/*
 * call-seq: broadcast(n, m, ...)
 *
 * Returns a View that repeats elements by numpy's rule, without a copy: counted from the last
 * dimension, each old length must be 1 or the new one. The result is read-only. Raises Invalid,
 * Overflow, StaleView, Closed.
 */
static VALUE view_broadcast(int argc, VALUE *argv, VALUE self)
{
    int64_t shape[SHMVIEW_MAX_NDIM];
    VALUE lengths = argc == 1 && RB_TYPE_P(argv[0], T_ARRAY) ? argv[0] : rb_ary_new4(argc, argv);
    uint32_t n = parse_numbers("shape", lengths, shape);
    struct shmview_view v;
    int r = shmview_view_broadcast(&view_use(self)->v, n, shape, &v);
    return made(self, r, &v, Qnil);
}

/* Returns a View of these elements that is read-only. Raises StaleView, Closed. */
static VALUE view_to_readonly(VALUE self)
{
    struct shmview_view v = view_use(self)->v;
    v.flags |= SHMVIEW_VIEW_READ_ONLY;
    return view_new(view_of(self)->segment, &v);
}

/*
 * Returns a Summary of the elements: count, minimum, maximum, sum. Reads every element once. Raises
 * ConversionError if they are not real numbers, StaleView, Closed.
 */
static VALUE view_summary(VALUE self)
{
    const struct view *view = view_use(self);
    struct shmview_summary s;
    int r = shmview_summarize(&view->v, &s);
    if (r)
        raise_error(r, Qnil);
    uint32_t type = view->v.dtype & ~(uint32_t)SHMVIEW_SWAPPED;
    bool integers = type >= SHMVIEW_INT8 && type <= SHMVIEW_INT64 && s.n;
    return rb_struct_new(rb_path2class("Shmview::Summary"), ULL2NUM(s.n), ULL2NUM(s.n_nan),
                         integers ? LL2NUM(s.min_int64) : DBL2NUM(s.min),
                         integers ? LL2NUM(s.max_int64) : DBL2NUM(s.max), DBL2NUM(s.sum));
}

void Init_shape(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
#endif
    rb_define_method(cView, "cast", view_cast, -1);
    rb_define_method(cView, "reshape", view_reshape, -1);
    rb_define_method(cView, "transpose", view_transpose, -1);
    rb_define_method(cView, "broadcast", view_broadcast, -1);
    rb_define_method(cView, "to_readonly", view_to_readonly, 0);
    rb_define_method(cView, "summary", view_summary, 0);
}
