/* SPDX-License-Identifier: Apache-2.0 */
/* Elements and parts by index.
 *
 * One Integer for each dimension of a view without suboffsets leads to an element by a sum of
 * products. This common case has its own path, place(), because a sub-view costs several times as
 * much. Everything else first makes a sub-view with libshmview. */
#include "view.h"

NORETURN(static void fail_bounds(const struct shmview_view *v, long i, uint32_t d));
static void fail_bounds(const struct shmview_view *v, long i, uint32_t d)
{
    raise_text(SHMVIEW_ERR_BOUNDS, "index %ld of dimension %u, which has length %td", i, d,
               v->shape[d]);
}

/* --- One element --------------------------------------------------------- */

/* Returns the address of the element if the arguments are one Integer for each dimension of a view
 * without suboffsets, otherwise NULL. Raises Bounds. Runs no Ruby code. */
static inline char *place(struct view *view, int argc, const VALUE *argv)
{
    const struct shmview_view *v = &view->v;
    unsigned char *p = v->data;
    if (UNLIKELY((uint32_t)argc != v->ndim || !view_is_direct(view)))
        return NULL;
    for (uint32_t d = 0; d < v->ndim; d++) {
        if (UNLIKELY(!FIXNUM_P(argv[d])))
            return NULL;
        long i = FIX2LONG(argv[d]), at = i < 0 ? i + v->shape[d] : i;
        if (UNLIKELY((unsigned long)at >= (unsigned long)v->shape[d]))
            fail_bounds(v, i, d);
        p += at * v->strides[d];
    }
    return (char *)p;
}

VALUE view_load_single(struct view *view, const struct shmview_view *single)
{
    void *p;
    int r = shmview_view_pointer(single, NULL, &p);
    if (r)
        raise_error(r, Qnil);
    return view->get(view, p);
}

/* --- Parts --------------------------------------------------------------- */

/* One argument of [], converted to integers. Conversion may run Ruby code, so it is finished before
 * the view is looked at. */
struct index {
    bool is_slice, has_first, has_last, excludes_last;
    int64_t first, last, step; /* of a slice; a single index is in first */
};

/* Converts value to an integer. One of more than 62 bits becomes the largest or smallest Fixnum:
 * both lie outside every view. */
static int64_t to_bound(VALUE value)
{
    VALUE number = rb_to_int(value);
    if (FIXNUM_P(number))
        return FIX2LONG(number);
    return RTEST(rb_funcall(number, '<', 1, INT2FIX(0))) ? FIXNUM_MIN : FIXNUM_MAX;
}

/* Converts an Integer, a Range, or a Range with a step (an arithmetic sequence). */
static void convert(VALUE argument, struct index *ret)
{
    rb_arithmetic_sequence_components_t c;
    *ret = (struct index){.step = 1};
    if (!rb_arithmetic_sequence_extract(argument, &c)) {
        ret->first = to_bound(argument);
        return;
    }
    ret->is_slice = true;
    ret->has_first = !NIL_P(c.begin);
    ret->has_last = !NIL_P(c.end);
    ret->excludes_last = c.exclude_end && ret->has_last;
    ret->first = ret->has_first ? to_bound(c.begin) : 0;
    ret->last = ret->has_last ? to_bound(c.end) : 0;
    ret->step = NUM2LL(c.step);
    if (ret->step == 0)
        rb_raise(rb_eArgError, "a step of 0 goes nowhere");
}

/* Returns a bound of a slice, which counts from the end if it is below 0, or otherwise if the Range
 * has no such bound. */
static int64_t bound(bool is_there, int64_t i, int64_t n, int64_t otherwise)
{
    return !is_there ? otherwise : i < 0 ? i + n : i;
}

/* Applies first..last or first...last with a step to dimension d, by the rules of Array#[]; indices
 * outside the view are dropped. Returns like shmview_view_slice(). */
static int slice(struct shmview_view *v, uint32_t d, const struct index *index)
{
    int64_t n = v->shape[d], step = index->step;
    int64_t first = bound(index->has_first, index->first, n, step > 0 ? 0 : n - 1);
    int64_t last = bound(index->has_last, index->last, n, step > 0 ? n - 1 : 0);
    if (step > 0) {
        int64_t stop = last + !index->excludes_last;
        return shmview_view_slice(v, d, first < 0 ? 0 : first, stop < 0 ? 0 : stop, step, v);
    }
    int64_t stop = last - !index->excludes_last;
    if (first < 0)
        return shmview_view_slice(v, d, 0, 0, 1, v);
    return shmview_view_slice(v, d, first, stop < 0 ? SHMVIEW_OMIT : stop, step, v);
}

static int single_index(struct shmview_view *v, uint32_t d, int64_t i)
{
    if ((i < 0 ? i + v->shape[d] : i) < 0 || i >= v->shape[d])
        fail_bounds(v, i, d);
    return shmview_view_index(v, d, i, v);
}

/* Makes a view of one field. name is a String, a Symbol, or nil for the only part of an element
 * without names. Raises NotFound. */
static void field(const struct shmview_view *v, VALUE name, struct shmview_view *ret)
{
    VALUE text = NIL_P(name) ? Qnil : rb_String(name);
    int r = shmview_view_field(v, NIL_P(text) ? NULL : StringValueCStr(text), ret);
    if (r)
        raise_error(r, fact("field", text));
}

bool view_locate(VALUE self, int argc, const VALUE *argv, struct shmview_view *ret)
{
    struct view *view = view_use(self);
    struct index indices[SHMVIEW_MAX_NDIM];
    bool single = (uint32_t)argc == view->v.ndim;
    if (argc == 1 && (RB_TYPE_P(argv[0], T_STRING) || RB_SYMBOL_P(argv[0]))) {
        field(&view->v, argv[0], ret);
        return false;
    }
    if ((uint32_t)argc > view->v.ndim)
        raise_text(SHMVIEW_ERR_BOUNDS, "%d indices, the view has %u dimensions", argc,
                   view->v.ndim);
    for (int i = 0; i < argc; i++)
        convert(argv[i], &indices[i]);
    *ret = view_use(self)->v; /* again, because the conversions may have closed the segment */
    uint32_t d = 0;
    for (int i = 0; i < argc; i++) {
        single &= !indices[i].is_slice;
        int r = indices[i].is_slice ? slice(ret, d++, &indices[i])
                                    : single_index(ret, d, indices[i].first);
        if (r)
            raise_error(r, Qnil);
    }
    return single;
}

/* Returns a part, or an element of a view with suboffsets. Not inlined, because its large variables
 * would slow down the common case. */
NOINLINE(static VALUE part(int argc, const VALUE *argv, VALUE self));
static VALUE part(int argc, const VALUE *argv, VALUE self)
{
    struct view *view = view_of(self);
    struct shmview_view v;
    bool single = view_locate(self, argc, argv, &v);
    return single ? view_load_single(view, &v) : view_new(view->segment, &v);
}

/*
 * call-seq:
 *   view[i, j, ...]      an element
 *   view[i], view[1..]   a part: fewer indices than dimensions, or ranges
 *   view["x"]            a field of a struct, by its name
 *
 * An index below 0 counts from the end. Ranges may be endless or beginless, count from the end, and
 * have a step: <tt>view[(0..) % 2]</tt>, <tt>view[(-1..) % -1]</tt>. Indices of a range that lie
 * outside are dropped. A part is a View of the same memory.
 *
 * An element is an Integer, Float, Complex, true or false, a binary String, or, of a struct, an
 * Array. Raises Bounds, NotFound (no such field), StaleView, Closed, TypeError.
 */
static VALUE view_aref(int argc, VALUE *argv, VALUE self)
{
    struct view *view = view_use(self);
    const char *p = place(view, argc, argv);
    return LIKELY(p != NULL) ? view->get(view, p) : part(argc, argv, self);
}

/*
 * call-seq: field(name = nil)
 *
 * Returns a field of a struct, like view[name]. nil is the only part of an element without names:
 * for "3h" the three numbers, as a further dimension. Raises NotFound, StaleView, Closed.
 */
static VALUE view_field(int argc, VALUE *argv, VALUE self)
{
    VALUE name;
    rb_scan_args(argc, argv, "01", &name);
    if (!NIL_P(name))
        name = rb_String(name); /* may run Ruby code, so before view_use() */
    struct shmview_view v;
    field(&view_use(self)->v, name, &v);
    return view_new(view_of(self)->segment, &v);
}

/* --- As a collection ----------------------------------------------------- */

/* Returns element or row i of a view with at least one dimension. */
static VALUE at(struct view *view, long i)
{
    struct shmview_view row;
    if (view->v.ndim == 1 && view_is_direct(view))
        return view->get(view, (char *)view->v.data + i * view->v.strides[0]);
    int r = shmview_view_index(&view->v, 0, i, &row);
    if (r)
        raise_error(r, Qnil);
    return row.ndim ? view_new(view->segment, &row) : view_load_single(view, &row);
}

static VALUE each_size(VALUE self, VALUE args, VALUE enumerator)
{
    (void)args, (void)enumerator;
    return rb_funcall(self, rb_intern("length"), 0);
}

/*
 * call-seq:
 *   each { |element or row| ... }  -> self
 *   each                           -> Enumerator
 *
 * Yields each element of a view of one dimension, or each row of one with more, as a View. Takes no
 * lock: hold the lock of the segment. Raises StaleView, Closed.
 */
static VALUE view_each(VALUE self)
{
    RETURN_SIZED_ENUMERATOR(self, 0, NULL, each_size);
    struct view *view = view_use(self);
    if (view->v.ndim == 0) {
        rb_yield(view_load_single(view, &view->v));
        return self;
    }
    for (long i = 0; i < view->v.shape[0]; i++)
        rb_yield(at(view_use(self), i));
    return self;
}

/* Returns the elements from dimension d on as Arrays. p is the address of the first one. */
static VALUE array_direct(struct view *view, uint32_t d, const unsigned char *p)
{
    if (d == view->v.ndim)
        return view->get(view, (const char *)p);
    long n = view->v.shape[d];
    ptrdiff_t stride = view->v.strides[d];
    bool last = d + 1 == view->v.ndim;
    VALUE array = rb_ary_new_capa(n);
    for (long i = 0; i < n; i++) { /* a pointer stepped past the last could leave the object */
        const unsigned char *place = p + i * stride;
        rb_ary_push(array,
                    last ? view->get(view, (const char *)place) : array_direct(view, d + 1, place));
    }
    return array;
}

/* Like array_direct(), but row by row through libshmview, which checks every stored row offset. */
static VALUE array_indirect(struct view *view, const struct shmview_view *v)
{
    struct shmview_view row;
    if (v->ndim == 0)
        return view_load_single(view, v);
    VALUE array = rb_ary_new();
    for (long i = 0; i < v->shape[0]; i++) {
        int r = shmview_view_index(v, 0, i, &row);
        if (r)
            raise_error(r, Qnil);
        rb_ary_push(array, array_indirect(view, &row));
    }
    return array;
}

/*
 * Returns all elements as nested Arrays, one level for each dimension; without dimensions, the
 * element itself. Raises StaleView, Closed.
 */
static VALUE view_to_a(VALUE self)
{
    struct view *view = view_use(self);
    return view_is_direct(view) ? array_direct(view, 0, view->v.data)
                                : array_indirect(view, &view->v);
}

void Init_index(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
#endif
    rb_define_method(cView, "[]", view_aref, -1);
    rb_define_method(cView, "field", view_field, -1);
    rb_define_method(cView, "each", view_each, 0);
    rb_define_method(cView, "to_a", view_to_a, 0);
}
