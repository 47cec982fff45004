/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls on whole views share. */
#ifndef CLIENT_BULK_H
#define CLIENT_BULK_H

#include "client/whole/convert.h"
#include "client/whole/walk.h"

#pragma GCC visibility push(hidden)

/* Fails if the view must not be written. Returns 0 or an error. */
int bulk_check_writable(const struct shmview_view *view);

static inline bool bulk_is_indirect(const struct shmview_view *view)
{
    return view->flags & SHMVIEW_VIEW_INDIRECT;
}

/* Number of elements. */
uint64_t bulk_count(const struct shmview_view *view);

bool bulk_same_shape(const struct shmview_view *a, const struct shmview_view *b);
/* Whether an element of one is an element of the other, byte by byte. */
bool bulk_same_format(const struct shmview_view *a, const struct shmview_view *b);

/* The index of element number at, in C order, and its text: "[1, 2]". */
void bulk_index(const struct shmview_view *view, uint64_t at, ptrdiff_t *ret_index);
#define BULK_INDEX_BYTES 192
void bulk_index_text(const struct shmview_view *view, const ptrdiff_t *index,
                     char ret[BULK_INDEX_BYTES]);

/* Elements of a view that has some, side by side and in the machine's byte order. */
struct bulk_reader {
    struct cursor cursor;
    uint32_t unit;  /* of bytes that are reversed; 0: none */
    uint32_t units; /* of those in an element */
};

struct bulk_reader bulk_reader_of(const struct shmview_view *view);

/* Whether the next n elements lie side by side. cursor_look() was called. */
static inline bool bulk_is_plain(const struct cursor *cursor, size_t n)
{
    return cursor->stride == (ptrdiff_t)cursor->itemsize && cursor->left >= n;
}

/* A run without gaps of so many elements is taken as it is, others are put together. */
#define LONG_RUN 128

/* How many elements may well be read, or written, next, n at most: no more than BLOCK where they
 * are not side by side. cursor_look() was called. */
size_t bulk_stretch(const struct cursor *cursor, bool is_plain, uint64_t n);

/* The next n elements, in place or in buffer, which has room for them. Returns 0 or an error. */
int bulk_read(struct bulk_reader *reader, size_t n, void *buffer, const void **ret);

#pragma GCC visibility pop

#endif
