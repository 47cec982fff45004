/* SPDX-License-Identifier: Apache-2.0 */
/* Walks visit all elements of one view, or of two views of the same shape at once.
 *
 * Strides decide how fast a walk is: the innermost dimension should be the one whose elements are
 * nearest to each other, and as long as possible. walk_sort() reorders dimensions for that, and
 * walk_merge() joins those that follow each other without a gap. Kernels then get planes
 * (walk_planes()) or runs (struct cursor). Views with suboffsets have no constant strides; only a
 * cursor can visit them, in C order. */
#ifndef CLIENT_WALK_H
#define CLIENT_WALK_H

#include "client/views/handle.h"
#include "client/whole/kernels.h"

#pragma GCC visibility push(hidden)

/* --- The order of a walk ------------------------------------------------- */

/* The dimensions of one or two views, from the outermost to the innermost. There is at least one,
 * and none is empty, so a view without elements has no walk. Begins in C order; has no suboffsets.
 * Owns nothing: data points into the segments. */
struct walk {
    uint32_t ndim;
    unsigned n_views;
    uint32_t itemsize[2];
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    unsigned char *data[2];
    ptrdiff_t strides[2][SHMVIEW_MAX_NDIM];
};

/* Makes a walk in C order. Leaves out dimensions of length 1. b may be NULL. a must have elements,
 * and b the same shape. */
void walk_init(struct walk *walk, const struct shmview_view *a, const struct shmview_view *b);

/* Changes the order to that of the first view's memory: upwards, with the smallest steps innermost.
 * Both views keep visiting corresponding elements. */
void walk_sort(struct walk *walk);

/* Joins neighbouring dimensions that every view can visit as one. Keeps the order of the
 * elements. */
void walk_merge(struct walk *walk);

/* Whether the elements of a view follow each other without a gap in the innermost dimension. */
bool walk_is_contiguous(const struct walk *walk, unsigned view);

/* Calls run with arg for each plane of the two innermost dimensions. `to` of the plane is of the
 * first view, `from` of the second, or NULL. */
void walk_planes(const struct walk *walk, void (*run)(const struct plane *plane, void *arg),
                 void *arg);

/* Whether a byte may belong to elements of both views. Returns true if it cannot decide. The caller
 * must know that different addresses are different bytes. */
bool walk_overlaps(const struct walk *walk);

/* --- Elements in a row --------------------------------------------------- */

/* Visits one view in the order of a walk, run by run: elements that are a constant stride apart. A
 * kernel processes (part of) a run, and cursor_skip() advances.
 *
 * After cursor_look(), at and left describe what is left of the current run. Points into the
 * segment; owns nothing. */
struct cursor {
    unsigned char *at; /* the next element */
    ptrdiff_t stride;
    size_t left; /* elements of the run from there on */

    uint32_t itemsize;
    bool began;
    unsigned char *base;
    ptrdiff_t offset; /* of the current run, in bytes from base */
    ptrdiff_t run;    /* elements of every run */
    uint32_t ndim;    /* number of dimensions outside the runs */
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    ptrdiff_t strides[SHMVIEW_MAX_NDIM];
    int64_t index[SHMVIEW_MAX_NDIM];
    const struct shmview_view *indirect; /* has suboffsets: locate each run; else NULL */
};

/* Begins before the first element of one view of a walk. */
void cursor_init(struct cursor *cursor, const struct walk *walk, unsigned view);
/* Begins before the first element in C order. For any view that has elements. */
void cursor_init_view(struct cursor *cursor, const struct shmview_view *view);

/* Advances to the next run if the current one is used up. There must be elements left. Returns 0,
 * or an error if a stored offset leads outside the segment; it is checked at each run, because
 * other programs may change it. */
int cursor_look(struct cursor *cursor);

/* Passes n elements of the current run, which must have as many. */
static inline void cursor_skip(struct cursor *cursor, size_t n)
{
    cursor->at += (ptrdiff_t)n * cursor->stride;
    cursor->left -= n;
}

/* Copy the next n elements to or from a row without gaps. The cursor must have as many left. Return
 * 0, or an error of cursor_look(); then some elements may have been copied. */
int cursor_read(struct cursor *cursor, void *to, size_t n);
int cursor_write(struct cursor *cursor, const void *from, size_t n);

#pragma GCC visibility pop

#endif
