/* SPDX-License-Identifier: Apache-2.0 */
/* Derive other views of the same elements, without copying. Each function takes a valid description
 * and changes it into another valid one. Returns 0; or -1 with *fault, and the description is
 * unchanged. shmview/view.h has the rules for users; this header only adds what is different here.
 */
#ifndef COMMON_VIEW_OPS_H
#define COMMON_VIEW_OPS_H

#include "common/views/view.h"

/* Other elements over the same bytes: the last dimension is divided again. Needs a C-contiguous
 * view. */
int view_recast(struct view_desc *desc, const struct format *item, struct view_fault *fault);

/* All bytes in one dimension; byte is a format of size 1. Needs a C-contiguous view. */
int view_bytes(struct view_desc *desc, const struct format *byte, struct view_fault *fault);

/* Another shape in C order; one length may be -1. Fails if the strides would require a copy. */
int view_reshape(struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                 struct view_fault *fault);

/* Like Python's slices of one dimension. INT64_MIN stands for an omitted bound or step. */
int view_slice(struct view_desc *desc, uint32_t dimension, int64_t start, int64_t stop,
               int64_t step, struct view_fault *fault);

/* Entry i of a dimension, which is removed; a negative i counts from the end. base and size are
 * those of the segment, because a stored row offset is followed. */
int view_index(struct view_desc *desc, uint32_t dimension, int64_t i, const unsigned char *base,
               uint64_t size, struct view_fault *fault);

/* The dimensions in another order; axes NULL: reversed. */
int view_transpose(struct view_desc *desc, const uint32_t *axes, struct view_fault *fault);

/* Repeats dimensions of length 1, and adds dimensions in front, as numpy does. The result is
 * read-only, because one byte would be written for several elements. */
int view_broadcast(struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                   struct view_fault *fault);

/* One field of a struct, in all elements. If the field is an array, its dimensions are added. name
 * NULL: the only field, which has no name. */
int view_field(struct view_desc *desc, struct formats *pool, const char *name,
               struct view_fault *fault);

#endif
