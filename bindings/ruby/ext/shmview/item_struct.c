/* SPDX-License-Identifier: Apache-2.0 */
/* Structs as Arrays: one entry for each of its fields, an Array again for a struct or an array
 * within. */
#include <stddef.h>

#include "view.h"

struct components {
    uint32_t n;
    struct shmview_component list[];
};

/* What the view's format consists of, once. */
static const struct components *components_of(struct view *view)
{
    if (LIKELY(view->components))
        return view->components;
    VALUE room;
    struct shmview_format *format = rb_alloc_tmp_buffer(&room, (long)sizeof *format);
    int r = shmview_format_parse(view->v.format, format, NULL, 0);
    if (r)
        raise_error(r, Qnil);
    uint32_t n = format->n_components;
    struct components *found =
        xmalloc(offsetof(struct components, list) + n * sizeof found->list[0]);
    found->n = n;
    shmview_format_parse(view->v.format, format, found->list, n); /* as before: it is no other */
    rb_free_tmp_buffer(&room);
    struct components *none = NULL; /* a Ractor may have been faster */
    if (!__atomic_compare_exchange_n(&view->components, &none, found, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        xfree(found);
    return view->components;
}

/* The one behind a component and all of its own. */
static uint32_t next_of(const struct components *all, uint32_t i)
{
    uint32_t depth = all->list[i].depth;
    do
        i++;
    while (i < all->n && all->list[i].depth > depth);
    return i;
}

/* What is walked: an element at p; the offsets of components below an array of structs are those
 * in its first one, so that a place is the offset plus shift. */
struct walk {
    struct view *view;
    const struct components *all;
    char *p;
};

static VALUE load_fields(const struct walk *w, uint32_t begin, uint32_t end, ptrdiff_t shift);

/* Dimension d of an array within an element; *k counts its elements. */
static VALUE load_array(const struct walk *w, uint32_t i, ptrdiff_t shift, uint32_t d, uint32_t *k)
{
    const struct shmview_component *c = &w->all->list[i];
    if (d == c->ndim) {
        ptrdiff_t at = shift + (ptrdiff_t)c->itemsize * (*k)++;
        if (c->dtype == SHMVIEW_STRUCT)
            return load_fields(w, i + 1, next_of(w->all, i), at);
        return item_load(w->view, c->dtype, c->itemsize, w->p + c->offset + at);
    }
    VALUE list = rb_ary_new_capa((long)c->shape[d]);
    for (uint32_t j = 0; j < c->shape[d]; j++)
        rb_ary_push(list, load_array(w, i, shift, d + 1, k));
    return list;
}

static VALUE load_fields(const struct walk *w, uint32_t begin, uint32_t end, ptrdiff_t shift)
{
    VALUE fields = rb_ary_new();
    for (uint32_t i = begin; i < end; i = next_of(w->all, i)) {
        uint32_t k = 0;
        rb_ary_push(fields, load_array(w, i, shift, 0, &k));
    }
    return fields;
}

/* Of T{...} the fields, of a format without it what it consists of. */
static void outermost(const struct components *all, uint32_t *begin, uint32_t *end)
{
    *begin = 0;
    *end = all->n;
    if (all->n && all->list[0].dtype == SHMVIEW_STRUCT && all->list[0].ndim == 0 &&
        next_of(all, 0) == all->n && all->n > 1)
        *begin = 1;
}

VALUE struct_get(struct view *view, const char *p)
{
    struct walk w = {view, components_of(view), (char *)(uintptr_t)p};
    uint32_t begin, end;
    outermost(w.all, &begin, &end);
    return load_fields(&w, begin, end, 0);
}

/* --- The other way ------------------------------------------------------- */

static void store_fields(const struct walk *w, uint32_t begin, uint32_t end, ptrdiff_t shift,
                         VALUE value);

/* The value as an Array of n of its own: nobody changes it while its items are converted. */
static VALUE array_of(VALUE value, uint32_t n, const char *what)
{
    VALUE array = rb_check_array_type(value);
    if (NIL_P(array))
        rb_raise(rb_eTypeError, "%u %s are set from an Array, not from %" PRIsVALUE, n, what,
                 rb_obj_class(value));
    if (RARRAY_LEN(array) != (long)n)
        rb_raise(rb_eArgError, "%ld values for %u %s", RARRAY_LEN(array), n, what);
    return rb_ary_dup(array);
}

static void store_array(const struct walk *w, uint32_t i, ptrdiff_t shift, uint32_t d, uint32_t *k,
                        VALUE value)
{
    const struct shmview_component *c = &w->all->list[i];
    if (d == c->ndim) {
        ptrdiff_t at = shift + (ptrdiff_t)c->itemsize * (*k)++;
        if (c->dtype == SHMVIEW_STRUCT)
            store_fields(w, i + 1, next_of(w->all, i), at, value);
        else
            item_store(w->view, c->dtype, c->itemsize, w->p + c->offset + at, value);
        return;
    }
    VALUE array = array_of(value, c->shape[d], "elements of an array");
    for (uint32_t j = 0; j < c->shape[d]; j++)
        store_array(w, i, shift, d + 1, k, RARRAY_AREF(array, (long)j));
    RB_GC_GUARD(array);
}

static void store_fields(const struct walk *w, uint32_t begin, uint32_t end, ptrdiff_t shift,
                         VALUE value)
{
    uint32_t n = 0;
    for (uint32_t i = begin; i < end; i = next_of(w->all, i))
        n++;
    VALUE array = array_of(value, n, "fields");
    long at = 0;
    for (uint32_t i = begin; i < end; i = next_of(w->all, i)) {
        uint32_t k = 0;
        store_array(w, i, shift, 0, &k, RARRAY_AREF(array, at++));
    }
    RB_GC_GUARD(array);
}

/* p is no place that others see: who stores an object there that may run code of its own looks
 * after that, see view_store(). */
void struct_set(struct view *view, char *p, VALUE value)
{
    struct walk w = {view, components_of(view), p};
    uint32_t begin, end;
    outermost(w.all, &begin, &end);
    store_fields(&w, begin, end, 0, value);
}
