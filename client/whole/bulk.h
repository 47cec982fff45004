/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the calls on whole views: checks of their arguments, indices for error texts, and
 * a reader that presents the elements of any view as rows.
 *
 * Kernels want elements side by side and in native byte order. A view may have gaps, the other byte
 * order, or suboffsets. bulk_read() removes all three: it passes elements in place if it can, and
 * otherwise copies at most BLOCK of them into a buffer on the caller's stack. Therefore these calls
 * need no memory, except that shmview_copy() needs a temporary for views that overlap. */
#ifndef CLIENT_BULK_H
#define CLIENT_BULK_H

#include "client/whole/convert.h"
#include "client/whole/walk.h"

#pragma GCC visibility push(hidden)

/* Returns 0, or -SHMVIEW_ERR_READ_ONLY if nobody may write through the view. */
int bulk_check_writable(const struct shmview_view *view);

/* Whether the view has suboffsets. Its rows are then located one by one, with checks that can
 * fail. */
static inline bool bulk_is_indirect(const struct shmview_view *view)
{
    return view->flags & SHMVIEW_VIEW_INDIRECT;
}

/* Returns the number of elements. itemsize is never 0. */
uint64_t bulk_count(const struct shmview_view *view);

bool bulk_same_shape(const struct shmview_view *a, const struct shmview_view *b);
/* Whether an element of one view can be copied to the other byte by byte. Numbers need the same
 * dtype, including the byte order; structs and strings need the same canonical format. */
bool bulk_same_format(const struct shmview_view *a, const struct shmview_view *b);

/* Converts the number of an element in C order to its index. Every length of the view must be at
 * least 1. */
void bulk_index(const struct shmview_view *view, uint64_t at, ptrdiff_t *ret_index);
#define BULK_INDEX_BYTES 192
/* Writes an index, or a shape, as text: "[1, 2]". */
void bulk_index_text(const struct shmview_view *view, const ptrdiff_t *index,
                     char ret[BULK_INDEX_BYTES]);

/* Reads the elements of one view in the order of its cursor, in native byte order. Lives on the
 * stack of one call and owns nothing. */
struct bulk_reader {
    struct cursor cursor;
    uint32_t unit;  /* bytes of one byte-swapped unit; 0: native byte order */
    uint32_t units; /* such units in an element */
};

/* Begins at the first element in C order; the caller may set another order with cursor_init().
 * The view must have elements. */
struct bulk_reader bulk_reader_of(const struct shmview_view *view);

/* Whether the next n elements lie side by side. The caller must have called cursor_look(). */
static inline bool bulk_is_plain(const struct cursor *cursor, size_t n)
{
    return cursor->stride == (ptrdiff_t)cursor->itemsize && cursor->left >= n;
}

/* Runs without gaps of at least this many elements are passed to a kernel in place. Shorter runs
 * are first joined in a buffer, because the kernel would be called too often. */
#define LONG_RUN 128

/* Returns how many of the next n elements to read or write at once. That is at most BLOCK, the size
 * of the buffers, unless is_plain is set and a long run without gaps comes next. The caller must
 * have called cursor_look(). */
size_t bulk_stretch(const struct cursor *cursor, bool is_plain, uint64_t n);

/* Reads the next n elements. *ret points to them: in the segment if they lie side by side in native
 * byte order, otherwise in buffer, which must have room for n. Returns 0, or an error of
 * cursor_look(). */
int bulk_read(struct bulk_reader *reader, size_t n, void *buffer, const void **ret);

#pragma GCC visibility pop

#endif
