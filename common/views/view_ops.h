/* SPDX-License-Identifier: Apache-2.0 */
/* Other views of the same elements. Each takes a description that was checked and changes
 * it into one that holds as well, or returns -1 with *fault and leaves it as it was. The
 * rules are in shmview/view.h. */
#ifndef COMMON_VIEW_OPS_H
#define COMMON_VIEW_OPS_H

#include "common/views/view.h"

int view_recast(struct view_desc *desc, const struct format *item, struct view_fault *fault);

/* One dimension of byte, whose size is 1. */
int view_bytes(struct view_desc *desc, const struct format *byte, struct view_fault *fault);

int view_reshape(struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                 struct view_fault *fault);

/* Bounds that are INT64_MIN are left out. */
int view_slice(struct view_desc *desc, uint32_t dimension, int64_t start, int64_t stop,
               int64_t step, struct view_fault *fault);

/* base and size are the segment's: a suboffset is followed. */
int view_index(struct view_desc *desc, uint32_t dimension, int64_t i, const unsigned char *base,
               uint64_t size, struct view_fault *fault);

int view_transpose(struct view_desc *desc, const uint32_t *axes, struct view_fault *fault);

int view_broadcast(struct view_desc *desc, uint32_t ndim, const int64_t *shape,
                   struct view_fault *fault);

int view_field(struct view_desc *desc, struct formats *pool, const char *name,
               struct view_fault *fault);

#endif
