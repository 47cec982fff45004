/* SPDX-License-Identifier: Apache-2.0 */
/* memory_view.h - Ruby's MemoryView (ruby/memory_view.h), by which extensions pass arrays to each
 * other without a copy. memory_view.c exports views and segments; got.c obtains what other classes
 * export, and foreign.c and consumer.c use it; ruby_format.c translates the formats. */
#ifndef MEMORY_VIEW_H
#define MEMORY_VIEW_H

#include "view.h"

#include <ruby/memory_view.h>

/* --- ruby_format.c ------------------------------------------------------- */

/* Translates a format of libshmview to one of MemoryView. Returns a text that the caller must
 * free(), or NULL if memory is short. */
char *ruby_format(const char *pep);
/* Translates the n components that Ruby has parsed from a format of MemoryView to a format of
 * libshmview; n = 0 means item_size unsigned bytes. Returns like ruby_format(). */
char *pep_format(const rb_memory_view_item_component_t *list, size_t n, size_t item_size);

/* --- got.c --------------------------------------------------------------- */

/* A MemoryView that this extension obtained from an object of any class, or a tensor of DLPack. It
 * must be released while that object still exists. So all of them are in a list, which the end of
 * the process releases before Ruby frees its objects. It is not in Ruby's memory, because it may
 * outlive the Ruby object that obtained it. */
struct got {
    rb_memory_view_t view;          /* obj is Qnil: released, or a tensor */
    struct shmview_segment *tensor; /* owns the tensor; NULL: released, or a MemoryView */
    bool is_wrapped;                /* a handle of libshmview owns it: see got_belongs() */
    struct segment *segment;        /* the struct that has this handle; NULL: none, or it was
                                     * collected. Under the mutex of the list */
    struct got *next, **prev;       /* in the list of all; under its mutex */
    struct got *next_back;          /* in the list of those that got_give_back() has left */
};
/* Returns whether the class of the object exports MemoryViews and the object can export one now. */
bool got_is_available(VALUE object);
/* Returns a new one without a MemoryView, in the list. The caller owes got_free(). */
struct got *got_new(void);
/* Obtains a MemoryView from the object. Returns NULL if it exports none, or none that fits the
 * flags; otherwise the caller owes got_free(). */
struct got *got_get(VALUE object, int flags);
/* Releases the MemoryView or the tensor. Does nothing if it was released before. */
void got_release(struct got *got);
/* Releases it and frees the struct. */
void got_free(struct got *got);
/* Like got_free(), for shmview_wrap(): libshmview calls it when the segment that wraps got ends,
 * and the last consumer of its memory may end on any thread, with or without the GVL. */
void got_give_back(void *got);
/* Releases all of them. Call before Ruby frees its objects. */
void got_end(void);

/* Returns the length of dimension d. A MemoryView may leave out its shape if it has one
 * dimension. */
ssize_t got_length(const rb_memory_view_t *view, ssize_t d);
/* Fills ret with the strides. A MemoryView may leave them out if it is row-major without gaps. */
void got_strides(const rb_memory_view_t *view, ssize_t *ret);

#endif
