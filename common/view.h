/* SPDX-License-Identifier: Apache-2.0 */
/* View descriptors: the one routine that validates them for every door. */
#ifndef COMMON_VIEW_H
#define COMMON_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#include "common/dtype.h"

/* A view by description, as it travels and as layouts keep it. strides are
 * always filled once it has been resolved. */
struct view_desc {
    const struct dtype *dtype;
    uint64_t offset; /* byte of element [0, ..., 0] */
    uint32_t ndim;
    bool read_only;
    int64_t shape[SHMVIEW_MAX_NDIM];
    int64_t strides[SHMVIEW_MAX_NDIM];
};

/* Why a description was refused. */
struct view_fault {
    enum shmview_error error;
    char text[200];
};

/* Fills desc->dtype from format. Returns 0 or -1 with *fault. */
int view_parse_format(struct view_desc *desc, const char *format, struct view_fault *fault);

/* Fills desc->strides for C order without gaps. desc->dtype and shape are set.
 * Returns 0 or -1 with *fault (overflow, negative length). */
int view_fill_strides(struct view_desc *desc, struct view_fault *fault);

/* Checks a complete description against a segment of size bytes: number of
 * dimensions, lengths, overflow, alignment, bounds. On success *ret_nbytes, if
 * not NULL, is the product of shape times the item size.
 * Returns 0 or -1 with *fault. */
int view_check(const struct view_desc *desc, uint64_t size, uint64_t *ret_nbytes,
               struct view_fault *fault);

/* Makes the one-dimensional description of nbytes bytes (UINT64_MAX: the rest)
 * from offset on; desc->dtype is set. Returns 0 or -1 with *fault. */
int view_cast(struct view_desc *desc, uint64_t offset, uint64_t nbytes, uint64_t size,
              struct view_fault *fault);

#endif
