/* SPDX-License-Identifier: Apache-2.0 */
/* Walking all elements of one view, or of two of the same shape at once. */
#ifndef CLIENT_WALK_H
#define CLIENT_WALK_H

#include "client/views/handle.h"
#include "client/whole/kernels.h"

#pragma GCC visibility push(hidden)

/* --- The order of a walk ------------------------------------------------- */

/* Dimensions from the outermost to the innermost; there is at least one, and none of them is
 * empty. Made in C order, for views without suboffsets; one view has elements. */
struct walk {
    uint32_t ndim;
    unsigned n_views;
    uint32_t itemsize[2];
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    unsigned char *data[2];
    ptrdiff_t strides[2][SHMVIEW_MAX_NDIM];
};

/* b may be NULL. */
void walk_init(struct walk *walk, const struct shmview_view *a, const struct shmview_view *b);

/* Lets go of C order: as the elements of the first view lie in memory, upwards, the nearest to
 * each other innermost. */
void walk_sort(struct walk *walk);

/* Makes one dimension of two wherever that is the same in every view. Keeps the order. */
void walk_merge(struct walk *walk);

/* Whether elements of the view follow each other without a gap in the innermost dimension. */
bool walk_is_contiguous(const struct walk *walk, unsigned view);

/* Calls run for each plane of the two innermost dimensions: to is of the first view, from of the
 * second, or NULL. */
void walk_planes(const struct walk *walk, void (*run)(const struct plane *plane, void *arg),
                 void *arg);

/* Whether a byte may belong to elements of both views: true if that is not known. */
bool walk_overlaps(const struct walk *walk);

/* --- Elements in a row --------------------------------------------------- */

/* One view, element by element in the order of a walk. */
struct cursor {
    unsigned char *at; /* the next element */
    ptrdiff_t stride;
    size_t left; /* elements from there on that are stride apart */

    uint32_t itemsize;
    bool began;
    unsigned char *base;
    ptrdiff_t offset; /* of the run, from base */
    ptrdiff_t run;    /* length of all runs */
    uint32_t ndim;    /* dimensions outside of the runs */
    ptrdiff_t shape[SHMVIEW_MAX_NDIM];
    ptrdiff_t strides[SHMVIEW_MAX_NDIM];
    int64_t index[SHMVIEW_MAX_NDIM];
    const struct shmview_view *indirect; /* runs are looked up one by one, in C order */
};

/* Begins in front of the walk's first element. */
void cursor_init(struct cursor *cursor, const struct walk *walk, unsigned view);
/* In C order; for any view that has elements. */
void cursor_init_view(struct cursor *cursor, const struct shmview_view *view);

/* Goes on to the next run if this one has come to its end. There are elements left. Returns 0,
 * or an error if suboffsets lead astray. */
int cursor_look(struct cursor *cursor);

static inline void cursor_skip(struct cursor *cursor, size_t n)
{
    cursor->at += (ptrdiff_t)n * cursor->stride;
    cursor->left -= n;
}

/* Copies the next n elements, which there are, to or from a row without gaps. */
int cursor_read(struct cursor *cursor, void *to, size_t n);
int cursor_write(struct cursor *cursor, const void *from, size_t n);

#pragma GCC visibility pop

#endif
