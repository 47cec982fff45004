/* SPDX-License-Identifier: Apache-2.0 */
/* view.h - Shmview::View: the object, its elements, and its methods.
 *
 * A View has a struct shmview_view, whose elements libshmview has checked to lie in the segment.
 * Reading an element is therefore pointer arithmetic, provided that the segment is still open and
 * the phase is still that of the view. Every method begins with view_use() or one like it, and
 * calls it again after any code that Ruby may have run in between (conversions, blocks), because
 * that code may close the segment. */
#ifndef VIEW_H
#define VIEW_H

#include "core.h"

struct view;
struct components;

/* Returns the element at p, which need not be aligned, as a Ruby object. */
typedef VALUE item_get(struct view *view, const char *p);
/* Writes value to p, or raises. Unless value is an immediate or a Float, converting it may run
 * code that closes the segment. Then p must not point into the segment: see view_store(). */
typedef void item_set(struct view *view, char *p, VALUE value);

/* Only release changes it after it was made, except for components. */
struct view {
    VALUE segment;       /* Qnil: not made yet, or released */
    struct segment *seg; /* the struct of segment; NULL: released */
    item_get *get; /* chosen by the format, once, because a look for each element costs more */
    item_set *set;
    struct components *components; /* parts of a struct, owned; NULL: not needed yet */
    struct shmview_view v;
};
extern const rb_data_type_t view_type;

static inline struct view *view_of(VALUE self)
{
    return data_of(self, &view_type);
}

/* Returns whether each element is at data plus a sum of strides, without suboffsets. */
static inline bool view_is_direct(const struct view *view)
{
    return !(view->v.flags & SHMVIEW_VIEW_INDIRECT);
}

/* --- view.c -------------------------------------------------------------- */

/* Returns a View of the segment, with a copy of *v. */
VALUE view_new(VALUE segment, const struct shmview_view *v);
/* Raises Closed if the view was released or its segment is closed, and StaleView if its phase is
 * over. Returns if the view can be used. */
void view_complain(const struct view *view);
/* Returns the view if its elements may be read. Raises Closed, StaleView. A view of no layout
 * cannot become stale, so only the others look at the phase. */
static inline struct view *view_use(VALUE self)
{
    struct view *view = view_of(self);
    if (UNLIKELY(!view->seg || !view->seg->handle || view->v.layout != UINT32_MAX))
        view_complain(view);
    return view;
}
/* Whether nobody may write through *v, a view of the segment: it was made read-only, or the segment
 * was frozen after it was made. */
static inline bool is_read_only(const struct segment *segment, const struct shmview_view *v)
{
    return v->flags & SHMVIEW_VIEW_READ_ONLY ||
           (segment->handle && shmview_access(segment->handle) != SHMVIEW_WRITE);
}
/* Raises FrozenError if the View is frozen, ReadOnly otherwise. */
void view_complain_writing(VALUE self);
/* Like view_use(), but for writing. Also raises FrozenError, ReadOnly. */
static inline struct view *view_use_writable(VALUE self)
{
    struct view *view = view_use(self);
    if (UNLIKELY(RB_OBJ_FROZEN(self) || is_read_only(view->seg, &view->v)))
        view_complain_writing(self);
    return view;
}
/* Like view_use(), but for metadata only (format, shape, offset): does not raise StaleView. */
struct view *view_use_facts(VALUE self);
/* Returns an Array of n numbers. */
VALUE view_numbers(const ptrdiff_t *numbers, uint32_t n);
void Init_view(void);

/* --- item.c -------------------------------------------------------------- */

/* Sets get and set by the type of the elements. */
void item_choose(struct view *view);
/* Raises ConversionError: the type of the elements cannot hold value. */
NORETURN(void item_fail(struct view *view, VALUE value));
/* Return and write an element of any scalar type at p; view is for the text of errors. */
VALUE item_load(uint32_t dtype, uint32_t itemsize, const char *p);
void item_store(struct view *view, uint32_t dtype, uint32_t itemsize, char *p, VALUE value);

/* --- item_struct.c ------------------------------------------------------- */

/* The item_get and item_set of views of structs. */
VALUE struct_get(struct view *view, const char *p);
void struct_set(struct view *view, char *p, VALUE value);
/* Returns how deep the first value of a struct is nested in Arrays: 1 for T{i:a:}, 2 for
 * T{T{i:b:}:a:}. Raises NoMemory. */
uint32_t struct_depth(struct view *view);

/* --- index.c ------------------------------------------------------------- */

/* Applies the arguments of [] to the view; *ret is the remaining part. Returns whether that is one
 * element. Raises Bounds, NotFound, Misaligned, StaleView, Closed, TypeError. */
bool view_locate(VALUE self, int argc, const VALUE *argv, struct shmview_view *ret);
/* Returns the element that view_locate() has found. */
VALUE view_load_single(struct view *view, const struct shmview_view *single);
void Init_index(void);

/* --- assign.c ------------------------------------------------------------ */

/* Converts value and writes it to the element at p, if the view may still be written then. Raises
 * the errors of []=. */
void view_store(VALUE self, struct view *view, char *p, VALUE value);
void Init_assign(void);

/* --- shape.c ------------------------------------------------------------- */

void Init_shape(void);

/* --- foreign.c ----------------------------------------------------------- */

/* Returns a View of the memory that object exports, or of a copy if libshmview cannot describe that
 * memory: rows behind pointers, misaligned elements. Returns object itself if it is a View, and
 * Qundef if its class exports no MemoryView. */
VALUE foreign_view(VALUE object);
void Init_foreign(void);

/* --- memory_view.c ------------------------------------------------------- */

void Init_memory_view(void);

/* --- dlpack.c ------------------------------------------------------------ */

void Init_dlpack(void);

/* --- consumer.c ---------------------------------------------------------- */

void Init_consumer(void);

/* --- io_buffer.c --------------------------------------------------------- */

void Init_io_buffer(void);

#endif
