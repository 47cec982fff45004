/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - views: the object, its elements, and the methods, each in the file of its noun. */
#ifndef VIEW_H
#define VIEW_H

#include "core.h"

struct view;
struct components;

/* An element at p, which need not be aligned, as a Ruby object. */
typedef VALUE item_get(struct view *view, const char *p);
/* Writes value to p, or raises. Unless value is an immediate or a Float, converting it may run any
 * code, which may close the segment: then p is no place in it; see view_store(). */
typedef void item_set(struct view *view, char *p, VALUE value);

/* v does not change. */
struct view {
    VALUE segment;       /* Qnil: not made yet, or released */
    struct segment *seg; /* segment's */
    item_get *get;
    item_set *set;
    struct components *components; /* of a struct; NULL: not needed yet */
    struct shmview_view v;
};
extern const rb_data_type_t view_type;

static inline struct view *view_of(VALUE self)
{
    return data_of(self, &view_type);
}

/* Whether elements are at data plus strides: a pointer and an index are enough. */
static inline bool view_is_direct(const struct view *view)
{
    return !(view->v.flags & SHMVIEW_VIEW_INDIRECT);
}

/* --- view.c -------------------------------------------------------------- */

VALUE view_new(VALUE segment, const struct shmview_view *v);
/* Raises Closed for one that was released or whose segment is closed, StaleView for one of a
 * past phase. */
void view_complain(const struct view *view);
/* Whether its elements may be looked at; raises if not. */
static inline struct view *view_use(VALUE self)
{
    struct view *view = view_of(self);
    if (UNLIKELY(!view->seg || !view->seg->handle || view->v.layout != UINT32_MAX))
        view_complain(view);
    return view;
}
/* Raises FrozenError or ReadOnly. */
void view_complain_writing(VALUE self);
/* The same, and whether they may be changed. */
static inline struct view *view_use_writable(VALUE self)
{
    struct view *view = view_use(self);
    if (UNLIKELY(RB_OBJ_FROZEN(self) || view->v.flags & SHMVIEW_VIEW_READ_ONLY))
        view_complain_writing(self);
    return view;
}
/* The same where they are asked for no more than where they are. */
struct view *view_use_facts(VALUE self);
/* An Array of n numbers. */
VALUE view_numbers(const ptrdiff_t *numbers, uint32_t n);
void Init_view(void);

/* --- item.c -------------------------------------------------------------- */

/* Sets get and set by the view's type. */
void item_choose(struct view *view);
/* The value is none that the element's type can hold. */
NORETURN(void item_fail(struct view *view, VALUE value));
/* An element of any scalar type at p. */
VALUE item_load(uint32_t dtype, uint32_t itemsize, const char *p);
void item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, VALUE value);

/* --- item_struct.c ------------------------------------------------------- */

VALUE struct_get(struct view *view, const char *p);
void struct_set(struct view *view, char *p, VALUE value);

/* --- index.c ------------------------------------------------------------- */

/* Applies the arguments of []: *ret is what is left. Returns whether that is one element. */
bool view_locate(VALUE self, int argc, const VALUE *argv, struct shmview_view *ret);
/* The element at p, which view_locate() has found. */
VALUE view_load_single(struct view *view, const struct shmview_view *single);
void Init_index(void);

/* --- assign.c ------------------------------------------------------------ */

/* Writes value to the element at p: converted first, and only if the view may still be written. */
void view_store(VALUE self, struct view *view, char *p, VALUE value);
void Init_assign(void);

/* --- shape.c ------------------------------------------------------------- */

void Init_shape(void);

/* --- foreign.c ----------------------------------------------------------- */

/* A View of what object exports, or, where that cannot be seen as it is, of a copy; Qundef where
 * its class exports nothing. */
VALUE foreign_view(VALUE object);
void Init_foreign(void);

/* --- memory_view.c ------------------------------------------------------- */

void Init_memory_view(void);

/* --- consumer.c ---------------------------------------------------------- */

void Init_consumer(void);

/* --- io_buffer.c --------------------------------------------------------- */

void Init_io_buffer(void);

#endif
