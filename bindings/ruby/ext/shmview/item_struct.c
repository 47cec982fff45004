/* SPDX-License-Identifier: Apache-2.0 */
/* Structs as Arrays: one entry for each of its fields, an Array again for a struct or an array
 * within. */
#include <stddef.h>

#include <shmview/value.h>

#include "view.h"

struct components {
    struct shmview_part whole;
    struct shmview_component list[];
};

/* The parts of the view's format, which is parsed once. */
static const struct shmview_part *parts_of(struct view *view)
{
    struct shmview_format format;
    if (LIKELY(view->components))
        return &view->components->whole;
    int r = shmview_format_parse(view->v.format, &format, NULL, 0);
    if (r)
        raise_error(r, Qnil);
    uint32_t n = format.n_components;
    struct components *found =
        xmalloc(offsetof(struct components, list) + n * sizeof found->list[0]);
    shmview_format_parse(view->v.format, &format, found->list, n); /* as before: it is no other */
    shmview_part_of(&format, found->list, &found->whole);
    struct components *none = NULL; /* a Ractor may have been faster */
    if (!__atomic_compare_exchange_n(&view->components, &none, found, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        xfree(found);
    return &view->components->whole;
}

static bool has_value(const struct shmview_part *part)
{
    return !part->is_array && part->dtype != SHMVIEW_STRUCT;
}

static VALUE load_part(const struct shmview_part *whole, const char *p)
{
    struct shmview_part part = {.component = NULL};
    if (has_value(whole))
        return item_load(whole->dtype, whole->nbytes, p + whole->offset);
    VALUE all = rb_ary_new_capa((long)whole->n_parts);
    while (shmview_part_next(whole, &part))
        rb_ary_push(all, load_part(&part, p));
    return all;
}

VALUE struct_get(struct view *view, const char *p)
{
    return load_part(parts_of(view), p);
}

/* --- The other way ------------------------------------------------------- */

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

static void store_part(struct view *view, const struct shmview_part *whole, char *p, VALUE value)
{
    struct shmview_part part = {.component = NULL};
    if (has_value(whole)) {
        item_store(view, whole->dtype, whole->nbytes, p + whole->offset, value);
        return;
    }
    VALUE array =
        array_of(value, whole->n_parts, whole->is_array ? "elements of an array" : "fields");
    while (shmview_part_next(whole, &part))
        store_part(view, &part, p, RARRAY_AREF(array, (long)part.index));
    RB_GC_GUARD(array);
}

/* p is no place that others see: who stores an object there that may run code of its own looks
 * after that, see view_store(). */
void struct_set(struct view *view, char *p, VALUE value)
{
    store_part(view, parts_of(view), p, value);
}
