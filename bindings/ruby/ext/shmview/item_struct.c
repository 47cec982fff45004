/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are structs, as Arrays with one entry for each field. A struct or an array within
 * the struct is an Array again.
 *
 * The parts are walked with shmview_part_next(), as in C and Python, so that all languages agree on
 * padding and nesting. Each part is converted by item.c. */
#include <stddef.h>

#include <shmview/value.h>

#include "view.h"

/* The parsed format of a view of structs. The view owns it and frees it; it never changes. */
struct components {
    struct shmview_part whole;
    struct shmview_component list[];
};

/* Returns the parts of the view's format, which is parsed at the first use. Raises NoMemory. */
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
    shmview_format_parse(view->v.format, &format, found->list, n); /* succeeds, as just before */
    shmview_part_of(&format, found->list, &found->whole);
    struct components *none = NULL; /* another Ractor may have stored its own in the meantime */
    if (!__atomic_compare_exchange_n(&view->components, &none, found, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
        xfree(found);
    return &view->components->whole;
}

/* Returns whether the part is a single value and not an Array. */
static bool has_value(const struct shmview_part *part)
{
    return !part->is_array && part->dtype != SHMVIEW_STRUCT;
}

/* Returns the part of the element at p as a value or an Array. Recursive: formats nest at most as
 * deep as their 64 components permit. */
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

uint32_t struct_depth(struct view *view)
{
    struct shmview_part whole = *parts_of(view), part;
    uint32_t depth = 0;
    for (; !has_value(&whole); depth++) {
        part = (struct shmview_part){.component = NULL};
        if (!shmview_part_next(&whole, &part))
            return depth + 1; /* only padding */
        whole = part;
    }
    return depth;
}

/* --- Setting ------------------------------------------------------------- */

/* Returns a copy of value, an Array of n entries, because methods of its entries could change the
 * original while they are converted. Raises TypeError, ArgumentError. */
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

/* p must not point into the segment, because converting the entries may run code that closes it:
 * see view_store(). */
void struct_set(struct view *view, char *p, VALUE value)
{
    store_part(view, parts_of(view), p, value);
}
