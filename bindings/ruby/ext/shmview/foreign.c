/* SPDX-License-Identifier: Apache-2.0 */
/* Views of memory that other classes export as MemoryViews: to read, to copy from, to compare with.
 *
 * shmview_wrap() makes a segment of any memory, without a name, a lock and a daemon. Then all
 * methods of views work on it, and copies between formats need no code of their own. libshmview
 * cannot describe rows that pointers lead to, or misaligned elements; assignments and comparisons
 * make a copy of these, and Shmview.wrap() refuses them. got.c obtains the memory and releases
 * it. */
#include "memory_view.h"

#include <stdlib.h>
#include <string.h>

/* --- Its reach ----------------------------------------------------------- */

/* Computes how many bytes the elements occupy before the beginning of element [0, ..., 0] (negative
 * strides lead there), and how many from it on. */
static void reach(const rb_memory_view_t *view, const ssize_t *strides, size_t *before,
                  size_t *behind)
{
    *before = 0;
    *behind = (size_t)view->item_size;
    for (ssize_t d = 0; d < view->ndim; d++) {
        ssize_t n = got_length(view, d);
        if (n == 0) {
            *before = *behind = 0;
            return;
        }
        if (strides[d] < 0)
            *before += (size_t)((n - 1) * -strides[d]);
        else
            *behind += (size_t)((n - 1) * strides[d]);
    }
}

/* --- Wrapping ------------------------------------------------------------ */

/* One call of open_foreign(). rb_ensure() frees what it owns if anything raises. */
struct wrapping {
    VALUE object;
    struct got *got;
    bool is_mine;  /* this struct owns got; otherwise the segment does */
    bool may_copy; /* if the memory cannot be wrapped where it is */
    bool writable; /* the caller wants to write */
    VALUE segment; /* Qnil: not made yet */
    char *format;  /* malloc() */
};

static bool has_sub_offsets(const rb_memory_view_t *view)
{
    for (ssize_t d = 0; view->sub_offsets && d < view->ndim; d++)
        if (view->sub_offsets[d] >= 0)
            return true;
    return false;
}

static void check_shape(const rb_memory_view_t *view)
{
    if (view->ndim < 0 || view->ndim > SHMVIEW_MAX_NDIM)
        raise_text(SHMVIEW_ERR_LIMIT, "a MemoryView of %zd dimensions, the limit is %d", view->ndim,
                   SHMVIEW_MAX_NDIM);
    if (view->ndim > 1 && !view->shape)
        raise_text(SHMVIEW_ERR_INVALID, "a MemoryView of %zd dimensions without a shape",
                   view->ndim);
}

/* Makes the view of w->segment with element [0, ..., 0] at offset. steps are the strides; NULL
 * means row-major without gaps. Returns like shmview_view_make(). */
static int make_view(struct wrapping *w, uint64_t offset, const ssize_t *steps,
                     struct shmview_view *ret)
{
    const rb_memory_view_t *view = &w->got->view;
    int64_t shape[SHMVIEW_MAX_NDIM], strides[SHMVIEW_MAX_NDIM];
    for (ssize_t d = 0; d < view->ndim; d++) {
        shape[d] = got_length(view, d);
        strides[d] = steps ? steps[d] : 0;
    }
    w->format =
        pep_format(view->item_desc.components, view->item_desc.length, (size_t)view->item_size);
    if (!w->format)
        rb_memerror();
    struct shmview_view_spec spec = {
        .format = w->format,
        .offset = offset,
        .ndim = (uint32_t)view->ndim,
        .shape = shape,
        .strides = steps ? strides : NULL,
    };
    int r = shmview_view_make(segment_of(w->segment)->handle, &spec, ret);
    free(w->format);
    w->format = NULL;
    return r;
}

/* Copies the elements from dimension d on, one after the other, and follows pointers. Returns the
 * end of the copy. */
static char *copy_elements(const rb_memory_view_t *view, const ssize_t *strides, ssize_t d,
                           const char *from, char *to)
{
    if (d == view->ndim) {
        memcpy(to, from, (size_t)view->item_size);
        return to + view->item_size;
    }
    ssize_t n = got_length(view, d);
    for (ssize_t i = 0; i < n; i++) {
        const char *p = from + i * strides[d];
        if (view->sub_offsets && view->sub_offsets[d] >= 0)
            p = *(char *const *)(const void *)p + view->sub_offsets[d];
        to = copy_elements(view, strides, d + 1, p, to);
    }
    return to;
}

/* Makes a view of a copy in row-major order, which is read-only, because nobody would see what is
 * written to it. Returns 0 or an error of libshmview. */
static int wrap_copy(struct wrapping *w, const ssize_t *strides, struct shmview_view *ret)
{
    const rb_memory_view_t *view = &w->got->view;
    size_t n = (size_t)view->item_size;
    for (ssize_t d = 0; d < view->ndim; d++)
        if (__builtin_mul_overflow(n, (size_t)got_length(view, d), &n))
            return -SHMVIEW_ERR_OVERFLOW;
    w->segment = segment_wrap(NULL, w->object);
    char *copy = malloc(n + 1);
    if (!copy)
        return -SHMVIEW_ERR_NO_MEMORY;
    int r =
        shmview_wrap(copy, n, SHMVIEW_WRAP_READ_ONLY, free, copy, &segment_of(w->segment)->handle);
    if (r) {
        free(copy);
        return r;
    }
    copy_elements(view, strides, 0, view->data, copy);
    return make_view(w, 0, NULL, ret);
}

/* Makes a view of the exported memory itself. From success of shmview_wrap() on, the segment owns
 * got. Returns 0 or an error of libshmview. */
static int wrap_here(struct wrapping *w, const ssize_t *strides, struct shmview_view *ret)
{
    rb_memory_view_t *view = &w->got->view;
    size_t before, behind;
    reach(view, strides, &before, &behind);
    char *first = before + behind ? (char *)view->data - before : NULL;
    w->segment = segment_wrap(NULL, w->object);
    struct segment *segment = segment_of(w->segment);
    int r = shmview_wrap(first, before + behind, view->readonly ? SHMVIEW_WRAP_READ_ONLY : 0,
                         got_give_back, w->got, &segment->handle);
    if (r)
        return r;
    w->is_mine = false;
    got_belongs(w->got, segment);
    return make_view(w, before, strides, ret);
}

/* Returns whether object is a Fiddle::Pointer. Ruby has no such class if fiddle is not loaded. */
static bool is_pointer(VALUE object)
{
    ID fiddle = rb_intern("Fiddle"), pointer = rb_intern("Pointer");
    if (!rb_const_defined(rb_cObject, fiddle))
        return false;
    VALUE module = rb_const_get(rb_cObject, fiddle);
    return rb_const_defined(module, pointer) &&
           RTEST(rb_obj_is_kind_of(object, rb_const_get(module, pointer)));
}

static VALUE wrap(VALUE arg)
{
    struct wrapping *w = (struct wrapping *)arg;
    rb_memory_view_t *view = &w->got->view;
    ssize_t strides[SHMVIEW_MAX_NDIM] = {0};
    struct shmview_view v;
    /* Fiddle exports all memory as read-only, because it does not know whether it may be written */
    if (w->writable && is_pointer(w->object))
        view->readonly = false;
    check_shape(view);
    if (view->format)
        rb_memory_view_prepare_item_desc(view);
    got_strides(view, strides);
    bool is_indirect = has_sub_offsets(view);
    if (is_indirect && !w->may_copy)
        raise_text(SHMVIEW_ERR_CONTIGUOUS,
                   "the MemoryView reaches its rows by pointers (sub-offsets), which a segment "
                   "cannot have; copy its elements: view[] = object");
    int r = is_indirect ? wrap_copy(w, strides, &v) : wrap_here(w, strides, &v);
    VALUE owner = w->segment; /* may own got, which the copy below still reads */
    if (r == -SHMVIEW_ERR_MISALIGNED && w->may_copy)
        r = wrap_copy(w, strides, &v);
    RB_GC_GUARD(owner);
    if (r)
        raise_error(r, Qnil);
    return view_new(w->segment, &v);
}

static VALUE end_wrapping(VALUE arg)
{
    struct wrapping *w = (struct wrapping *)arg;
    free(w->format);
    if (w->is_mine)
        got_free(w->got);
    return Qnil;
}

#define ALL_FLAGS (RUBY_MEMORY_VIEW_INDIRECT | RUBY_MEMORY_VIEW_FORMAT)

/* Returns a View of the memory that object exports; object itself if it is a View; Qundef if its
 * class exports nothing. may_copy permits a copy where the memory cannot be wrapped. */
static VALUE open_foreign(VALUE object, bool writable, bool may_copy)
{
    if (rb_typeddata_is_kind_of(object, &view_type))
        return object;
    if (rb_typeddata_is_kind_of(object, &segment_type))
        return rb_funcall(object, rb_intern("buf"), 0);
    if (!got_is_available(object))
        return Qundef;
    struct wrapping w = {
        .object = object,
        .got = got_get(object, ALL_FLAGS | (writable ? RUBY_MEMORY_VIEW_WRITABLE : 0)),
        .is_mine = true,
        .may_copy = may_copy,
        .writable = writable,
        .segment = Qnil,
    };
    if (!w.got)
        raise_text(writable ? SHMVIEW_ERR_READ_ONLY : SHMVIEW_ERR_CONTIGUOUS,
                   "the object exports no MemoryView%s now",
                   writable ? " that may be written; take one that is only read," : "");
    return rb_ensure(wrap, (VALUE)&w, end_wrapping, (VALUE)&w);
}

VALUE foreign_view(VALUE object)
{
    return open_foreign(object, false, true);
}

/* Core.foreign(object): returns foreign_view(), or nil if the class of the object exports nothing.
 */
static VALUE core_foreign(VALUE module, VALUE object)
{
    (void)module;
    VALUE view = foreign_view(object);
    return view == Qundef ? Qnil : view;
}

/*
 * call-seq: Shmview.wrap(object, format = nil, shape = nil, writable: false) -> View
 *
 * Returns a View of the memory that object exports as a MemoryView, without a copy: of an array of
 * another extension, or of any memory as <tt>Fiddle::Pointer.new(address, size)</tt>. The view has
 * the format, shape and strides of the MemoryView; +format+ and +shape+ are as for View#cast. It
 * keeps the object alive. Its segment is that memory, without a name, a lock and a daemon; closing
 * the segment releases the MemoryView.
 *
 * writable:: true: elements can be set. The caller vouches that the memory of a Fiddle::Pointer may
 * be written, because Fiddle exports all memory as read-only
 *
 * Raises TypeError (the object exports none), ReadOnly (it must not be written), NotContiguous (its
 * pointers lead to its rows), Misaligned (for both: <tt>view[] = object</tt> copies), Limit (more
 * than 8 dimensions), Bounds, Overflow, and the errors of View#cast.
 */
static VALUE shmview_s_wrap(int argc, VALUE *argv, VALUE self)
{
    const ID keywords[] = {id_writable};
    VALUE object, format, shape, options = Qnil, writable;
    (void)self;
    rb_scan_args(argc, argv, "12:", &object, &format, &shape, &options);
    rb_get_kwargs(options, keywords, 0, 1, &writable);
    bool wish = writable != Qundef && RTEST(writable);
    VALUE view = open_foreign(object, wish, false);
    if (view == Qundef)
        rb_raise(rb_eTypeError,
                 "%" PRIsVALUE " exports no MemoryView; Fiddle::Pointer.new(address, size) exports "
                 "any memory",
                 rb_class_of(object));
    if (wish) /* also after an exporter that ignores the flag for memory to be written */
        view_use_writable(view);
    if (view == object) {
        const struct view *same = view_use(view);
        view = view_new(same->segment, &same->v);
    }
    return NIL_P(format) ? view : rb_funcall(view, rb_intern("cast"), 2, format, shape);
}

/* --- Comparing ----------------------------------------------------------- */

/*
 * call-seq: view == other
 *
 * Returns whether other, a View or another object that exports a MemoryView, has the same shape and
 * the same values. Numbers of different formats are compared by value, NaN is not equal to itself,
 * and structs and strings are compared byte by byte. Raises StaleView, Closed.
 */
static VALUE view_equal(VALUE self, VALUE other)
{
    if (self == other && view_of(self)->seg == NULL)
        return Qtrue;
    struct view *view = view_use(self);
    VALUE from = RB_SPECIAL_CONST_P(other) ? Qundef : foreign_view(other);
    if (from == Qundef)
        return Qfalse;
    struct view *source = view_use(from);
    view_use(self);
    int equal = shmview_equal(&view->v, &source->v, NULL);
    RB_GC_GUARD(from);
    if (equal < 0 && equal != -SHMVIEW_ERR_CONVERSION) /* a struct and a number */
        raise_error(equal, Qnil);
    return truth(equal == 1);
}

void Init_foreign(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
#endif
    rb_define_singleton_method(mShmview, "wrap", shmview_s_wrap, -1);
    rb_define_module_function(rb_path2class("Shmview::Core"), "foreign", core_foreign, 1);
    rb_define_method(cView, "==", view_equal, 1);
}
