/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::View: its life and its attributes. index.c reads elements, assign.c sets them, shape.c
 * makes other views, io_buffer.c copies bytes, memory_view.c exports them. */
#include "view.h"

#include <string.h>

VALUE cView;

/* --- Life ---------------------------------------------------------------- */

static void view_mark(void *data)
{
    rb_gc_mark_movable(((struct view *)data)->segment);
}

static void view_compact(void *data)
{
    struct view *self = data;
    self->segment = rb_gc_location(self->segment);
}

/* Does not touch the segment, which Ruby may have freed already. */
static void view_free(void *data)
{
    struct view *self = data;
    xfree(self->components);
    xfree(self);
}

static size_t view_size(const void *data)
{
    (void)data;
    return sizeof(struct view);
}

const rb_data_type_t view_type = {
    .wrap_struct_name = "Shmview::View",
    .function =
        {
            .dmark = view_mark,
            .dfree = view_free,
            .dsize = view_size,
            .dcompact = view_compact,
        },
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE,
};

VALUE view_new(VALUE segment, const struct shmview_view *v)
{
    struct view *view;
    VALUE self = TypedData_Make_Struct(cView, struct view, &view_type, view);
    view->segment = Qnil;
    RB_OBJ_WRITE(self, &view->segment, segment);
    view->seg = segment_of(segment);
    view->v = *v;
    item_choose(view);
    return self;
}

/* --- Whether it may be used ---------------------------------------------- */

void view_complain(const struct view *view)
{
    struct shmview_phase phase = {0};
    if (!view->seg)
        raise_closed("the view");
    if (!view->seg->handle)
        raise_closed("the view's segment");
    if (!shmview_view_is_stale(&view->v))
        return;
    /* does not call the daemon, because the caller may hold the lock */
    shmview_phase_read(view->seg->handle, &phase);
    raise_text(SHMVIEW_ERR_STALE,
               "the view is of phase %u of '%.80s', which is in phase %u%s%.64s%s now; open it "
               "again",
               view->v.generation, shmview_name(view->seg->handle), phase.generation,
               phase.name[0] ? " ('" : "", phase.name, phase.name[0] ? "')" : "");
}

void view_complain_writing(VALUE self)
{
    rb_check_frozen(self);
    raise_text(SHMVIEW_ERR_READ_ONLY, "the view is read-only");
}

struct view *view_use_facts(VALUE self)
{
    struct view *view = view_of(self);
    if (!view->seg || !view->seg->handle)
        view_complain(view);
    return view;
}

/*
 * Releases the segment: each later use of this view raises Closed. Does nothing if it was released
 * before. MemoryViews that consumers have obtained stay valid until they release them. Returns nil.
 * Raises FrozenError.
 */
static VALUE view_release(VALUE self)
{
    struct view *view = view_of(self);
    rb_check_frozen(self);
    view->seg = NULL;
    RB_OBJ_WRITE(self, &view->segment, Qnil);
    return Qnil;
}

/* Returns whether release was called, or the segment is closed. */
static VALUE view_is_released(VALUE self)
{
    const struct view *view = view_of(self);
    return truth(!view->seg || !view->seg->handle);
}

/* --- Attributes: valid for stale views too, and each raises Closed ------- */

VALUE view_numbers(const ptrdiff_t *numbers, uint32_t n)
{
    VALUE array = rb_ary_new_capa(n);
    for (uint32_t d = 0; d < n; d++)
        rb_ary_push(array, SSIZET2NUM(numbers[d]));
    return array;
}

static uint64_t n_elements(const struct shmview_view *v)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < v->ndim; d++)
        n *= (uint64_t)v->shape[d];
    return n;
}

/* Returns the format of one element, in the canonical spelling of PEP 3118. */
static VALUE view_format(VALUE self)
{
    return rb_utf8_str_new_cstr(view_use_facts(self)->v.format);
}
/* Returns the bytes of one element. */
static VALUE view_itemsize(VALUE self)
{
    return UINT2NUM(view_use_facts(self)->v.itemsize);
}
/* Returns the bytes of all elements: the product of shape times itemsize. */
static VALUE view_nbytes(VALUE self)
{
    return ULL2NUM(view_use_facts(self)->v.nbytes);
}
/* Returns the number of dimensions, 0 to 8. */
static VALUE view_ndim(VALUE self)
{
    return UINT2NUM(view_use_facts(self)->v.ndim);
}
/* Returns the number of elements. */
static VALUE view_n_elements(VALUE self)
{
    return ULL2NUM(n_elements(&view_use_facts(self)->v));
}
/* Returns the length of the first dimension, in elements or rows; 1 without dimensions. */
static VALUE view_length(VALUE self)
{
    const struct shmview_view *v = &view_use_facts(self)->v;
    return SSIZET2NUM(v->ndim ? v->shape[0] : 1);
}
/* Returns the lengths of the dimensions, in elements. */
static VALUE view_shape(VALUE self)
{
    const struct shmview_view *v = &view_use_facts(self)->v;
    return view_numbers(v->shape, v->ndim);
}
/* Returns the bytes from one element to the next in each dimension. */
static VALUE view_strides(VALUE self)
{
    const struct shmview_view *v = &view_use_facts(self)->v;
    return view_numbers(v->strides, v->ndim);
}
/* Returns the suboffsets of a view whose rows lie anywhere: bytes, -1 for a dimension without one.
 * Returns nil for every other view. */
static VALUE view_suboffsets(VALUE self)
{
    const struct view *view = view_use_facts(self);
    return view_is_direct(view) ? Qnil : view_numbers(view->v.suboffsets, view->v.ndim);
}
/* Returns whether elements cannot be set. */
static VALUE view_is_readonly(VALUE self)
{
    const struct view *view = view_use_facts(self);
    return truth(is_read_only(view->seg, &view->v) || RB_OBJ_FROZEN(self));
}
/* Returns whether the elements lie without gaps, and the last index varies fastest. */
static VALUE view_is_row_major(VALUE self)
{
    return truth(shmview_view_is_contiguous(&view_use_facts(self)->v, 'C'));
}
/* Like row_major?, but the first index varies fastest. */
static VALUE view_is_column_major(VALUE self)
{
    return truth(shmview_view_is_contiguous(&view_use_facts(self)->v, 'F'));
}
/* Returns whether row_major? or column_major? is true. */
static VALUE view_is_contiguous(VALUE self)
{
    return truth(shmview_view_is_contiguous(&view_use_facts(self)->v, 'A'));
}
/* Returns the Segment. */
static VALUE view_segment(VALUE self)
{
    return view_use_facts(self)->segment;
}
/* Returns the byte of the segment at which element [0, ..., 0] begins. */
static VALUE view_offset(VALUE self)
{
    const struct view *view = view_use_facts(self);
    return SSIZET2NUM(view->v.data - (unsigned char *)shmview_data(view->seg->handle));
}
/* Returns the generation of the phase in which the view was opened; nil for a view of no layout. */
static VALUE view_generation(VALUE self)
{
    const struct view *view = view_use_facts(self);
    return view->v.layout == UINT32_MAX ? Qnil : UINT2NUM(view->v.generation);
}
/* Returns whether that phase is over. */
static VALUE view_is_stale(VALUE self)
{
    return truth(shmview_view_is_stale(&view_use_facts(self)->v));
}

/* Describes the view for people. */
static VALUE view_inspect(VALUE self)
{
    const struct view *view = view_of(self);
    if (!view->seg || !view->seg->handle)
        return rb_utf8_str_new_cstr("#<Shmview::View released>");
    const struct segment *seg = view->seg;
    VALUE of = NIL_P(seg->connection) ? rb_sprintf("a %" PRIsVALUE, rb_obj_class(seg->owner))
                                      : rb_sprintf("'%s'", shmview_name(seg->handle));
    return rb_sprintf("#<Shmview::View of %" PRIsVALUE ", format '%s', shape %+" PRIsVALUE "%s>",
                      of, view->v.format, view_numbers(view->v.shape, view->v.ndim),
                      is_read_only(view->seg, &view->v) ? ", read-only" : "");
}

void Init_view(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
#endif
    /*
     * Document-class: Shmview::View
     *
     * A typed window on the bytes of a segment, with 0 to 8 dimensions. It never copies.
     * Segment#cast, Segment#view and other views make it. It is Enumerable, and exports
     * MemoryViews. It takes no lock: hold the lock of the segment. After the segment was closed,
     * each use raises Closed. A view that was opened in an earlier phase raises StaleView.
     *
     * A frozen view cannot write, but its bytes change when others write them.
     * Ractor.make_shareable freezes the view with its segment and connection. Then all Ractors can
     * read the view and take the lock.
     */
    cView = rb_define_class_under(mShmview, "View", rb_cObject);
    rb_undef_alloc_func(cView);
    rb_undef_method(CLASS_OF(cView), "new");
    rb_include_module(cView, rb_mEnumerable);
    rb_define_method(cView, "release", view_release, 0);
    rb_define_method(cView, "released?", view_is_released, 0);
    rb_define_method(cView, "format", view_format, 0);
    rb_define_method(cView, "itemsize", view_itemsize, 0);
    rb_define_method(cView, "nbytes", view_nbytes, 0);
    rb_define_method(cView, "ndim", view_ndim, 0);
    rb_define_method(cView, "size", view_n_elements, 0);
    rb_define_method(cView, "length", view_length, 0);
    rb_define_method(cView, "shape", view_shape, 0);
    rb_define_method(cView, "strides", view_strides, 0);
    rb_define_method(cView, "suboffsets", view_suboffsets, 0);
    rb_define_method(cView, "readonly?", view_is_readonly, 0);
    rb_define_method(cView, "row_major?", view_is_row_major, 0);
    rb_define_method(cView, "column_major?", view_is_column_major, 0);
    rb_define_method(cView, "contiguous?", view_is_contiguous, 0);
    rb_define_method(cView, "segment", view_segment, 0);
    rb_define_method(cView, "offset", view_offset, 0);
    rb_define_method(cView, "generation", view_generation, 0);
    rb_define_method(cView, "stale?", view_is_stale, 0);
    rb_define_method(cView, "inspect", view_inspect, 0);
}
