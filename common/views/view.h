/* SPDX-License-Identifier: Apache-2.0 */
/* View descriptors: the one routine that validates them for every door. */
#ifndef COMMON_VIEW_H
#define COMMON_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#include "common/views/format.h"

/* A view by description, as it travels and as layouts keep it. strides are
 * always filled once it has been resolved. */
struct view_desc {
    const struct format *item; /* borrowed from its pool */
    uint64_t offset;           /* byte of element [0, ..., 0] */
    uint32_t ndim;
    bool read_only;
    bool indirect; /* some suboffset is not -1; else they are not looked at */
    int64_t shape[SHMVIEW_MAX_NDIM];
    int64_t strides[SHMVIEW_MAX_NDIM];
    int64_t suboffsets[SHMVIEW_MAX_NDIM];
};

/* Of the offset of a row, where suboffsets say that one is stored: a uint64, native. */
#define VIEW_STORED_BYTES 8

/* Why a description was refused. */
struct view_fault {
    enum shmview_error error;
    char text[200];
};

/* Sets *fault. Returns -1. */
__attribute__((format(printf, 3, 4))) int
view_fault_set(struct view_fault *fault, enum shmview_error error, const char *format, ...);

/* Fills desc->item from format. Returns 0 or -1 with *fault. */
int view_parse_format(struct view_desc *desc, struct formats *pool, const char *format,
                      struct view_fault *fault);

/* Completes a description as it was declared: fills its item from format, and its strides unless
 * has_strides. indirect says whether there are suboffsets; it becomes false where each is -1.
 * desc->ndim is sane. Returns 0 or -1 with *fault. */
int view_resolve(struct view_desc *desc, struct formats *pool, const char *format, bool has_strides,
                 struct view_fault *fault);

/* Fills desc->strides for C order without gaps. desc->item and shape are set.
 * Returns 0 or -1 with *fault (overflow, negative length). */
int view_fill_strides(struct view_desc *desc, struct view_fault *fault);

/* Fills ret_strides for order 'C' or 'F'. The same faults. */
int view_strides(uint32_t ndim, const int64_t *shape, uint32_t itemsize, char order,
                 int64_t *ret_strides, struct view_fault *fault);

/* Checks a complete description against a segment of size bytes: number of
 * dimensions, lengths, overflow, alignment, bounds. Where suboffsets lead to is checked
 * when they are followed. On success *ret_nbytes, if
 * not NULL, is the product of shape times the item size.
 * Returns 0 or -1 with *fault. */
int view_check(const struct view_desc *desc, uint64_t size, uint64_t *ret_nbytes,
               struct view_fault *fault);

/* Makes the one-dimensional description of nbytes bytes (UINT64_MAX: the rest)
 * from offset on; desc->item is set. Returns 0 or -1 with *fault. */
int view_cast(struct view_desc *desc, uint64_t offset, uint64_t nbytes, uint64_t size,
              struct view_fault *fault);

/* Whether the elements follow each other without a gap: 'C', 'F' or 'A' (either). */
bool view_is_contiguous(const struct view_desc *desc, char order);

/* Finds the element at index, all of whose bytes lie in the size bytes at base. The
 * description was checked; index and what suboffsets lead to are checked here.
 * Returns 0 with its byte, or -1 with *fault. */
int view_locate(const struct view_desc *desc, const unsigned char *base, uint64_t size,
                const int64_t *index, uint64_t *ret_offset, struct view_fault *fault);

#endif
