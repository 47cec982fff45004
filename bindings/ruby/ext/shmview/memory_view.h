/* SPDX-License-Identifier: Apache-2.0 */
/* memory_view.h - Ruby's MemoryView, both ways. */
#ifndef MEMORY_VIEW_H
#define MEMORY_VIEW_H

#include "view.h"

#include <ruby/memory_view.h>

/* --- ruby_format.c ------------------------------------------------------- */

/* A format of libshmview as MemoryView writes it: malloc()ed, NULL without memory. */
char *ruby_format(const char *pep);
/* The other way, from what Ruby has made of it. */
char *pep_format(const rb_memory_view_item_component_t *list, size_t n, size_t item_size);

/* --- foreign.c ----------------------------------------------------------- */

/* A MemoryView that was got, of any object. It has a place of its own in memory, and is given
 * back before Ruby frees all objects at the end. */
struct got {
    rb_memory_view_t view;   /* obj is Qnil: given back */
    struct segment *segment; /* that wraps it, or NULL */
    struct got *next, **prev;
};
/* Whether the object's class exports MemoryViews and it can now. */
bool got_is_available(VALUE object);
/* One of nobody, to be filled. */
struct got *got_new(void);
/* Asks the object. Returns NULL where it exports none, or none that fits. */
struct got *got_get(VALUE object, int flags);
/* Gives it back; once more does no harm. */
void got_release(struct got *got);
void got_free(struct got *got);
/* Gives back all, before Ruby frees its objects. */
void got_end(void);

/* How many elements dimension d has: a MemoryView may leave out its shape. */
ssize_t got_length(const rb_memory_view_t *view, ssize_t d);
/* The strides, which it may leave out as well. */
void got_strides(const rb_memory_view_t *view, ssize_t *ret);

#endif
