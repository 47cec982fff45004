/* SPDX-License-Identifier: Apache-2.0 */
/* View descriptions, and the one routine that checks them. The protocol, the configuration, the
 * library, shmviewctl and the bindings all use view_check(), so all of them refuse the same views
 * with the same text.
 *
 * Every function that can fail returns 0, or -1 with *fault. */
#ifndef COMMON_VIEW_H
#define COMMON_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#include "common/views/format.h"

/* The description of a view: where its elements are in the bytes of a segment. It contains no
 * address, so it means the same in every process. */
struct view_desc {
    const struct format *item; /* borrowed from its pool */
    uint64_t offset;           /* byte of the segment at which element [0, ..., 0] begins */
    uint32_t ndim;
    bool read_only;
    bool indirect; /* some suboffset is not -1; otherwise suboffsets are undefined */
    int64_t shape[SHMVIEW_MAX_NDIM];
    int64_t strides[SHMVIEW_MAX_NDIM];
    int64_t suboffsets[SHMVIEW_MAX_NDIM];
};

/* Size of a stored row offset (suboffsets): a uint64 in native byte order. */
#define VIEW_STORED_BYTES 8

/* Why a description was refused. */
struct view_fault {
    enum shmview_error error;
    char text[200];
};

__attribute__((format(printf, 3, 4))) void
view_fault_fill(struct view_fault *fault, enum shmview_error error, const char *format, ...);
/* Fills *fault. Returns -1. A macro, so that compilers and analyzers see the result. */
#define view_fault_set(fault, error, ...) (view_fault_fill(fault, error, __VA_ARGS__), -1)

/* Parses format and sets desc->item to it. */
int view_parse_format(struct view_desc *desc, struct formats *pool, const char *format,
                      struct view_fault *fault);

/* Completes a declared description: sets desc->item from format, and the strides unless
 * has_strides. desc->indirect must be true if there are suboffsets; it becomes false if each of
 * them is -1. Fails for suboffsets without strides. desc->ndim must be valid. */
int view_resolve(struct view_desc *desc, struct formats *pool, const char *format, bool has_strides,
                 struct view_fault *fault);

/* Sets desc->strides for C order without gaps. desc->item and shape must be set. Fails for a
 * negative length and for an overflow. */
int view_fill_strides(struct view_desc *desc, struct view_fault *fault);

/* Like view_fill_strides(), for an order 'C' or 'F' and without a description. */
int view_strides(uint32_t ndim, const int64_t *shape, uint32_t itemsize, char order,
                 int64_t *ret_strides, struct view_fault *fault);

/* Checks a complete description against a segment of size bytes: the number of dimensions, lengths,
 * overflow, alignment and bounds. The fault names the dimension and the byte. Stored row offsets
 * are not checked here, because any writer may change them later; view_locate() checks them at each
 * access. Sets *ret_nbytes, unless it is NULL, to the product of the shape and the item size. */
int view_check(const struct view_desc *desc, uint64_t size, uint64_t *ret_nbytes,
               struct view_fault *fault);

/* Makes a one-dimensional description of nbytes bytes from offset on. UINT64_MAX stands for all
 * bytes up to the end. desc->item must be set. Fails if the bytes are not a multiple of the item
 * size, or are misaligned or out of bounds. */
int view_cast(struct view_desc *desc, uint64_t offset, uint64_t nbytes, uint64_t size,
              struct view_fault *fault);

/* Replaces a free form of desc->item by the aligned form if base, the address of the segment, and
 * the offsets of all elements are aligned. Leaves a view with suboffsets as it is, because any
 * writer may change the offsets of its rows. The description must have been checked. */
void view_settle(struct view_desc *desc, uintptr_t base);

/* The end of a message about a format that wants its alignment. */
#define VIEW_ALIGNMENT_HINT "; a format with '<' or '=' has none"

/* Whether the elements follow each other without gaps, in order 'C', 'F', or 'A' for either. */
bool view_is_contiguous(const struct view_desc *desc, char order);

/* Finds the element at index, and stores the offset of its first byte in *ret_offset. base and size
 * are those of the segment. The description must have been checked. This function checks the index
 * and each stored row offset, and that the whole element is within the segment. */
int view_locate(const struct view_desc *desc, const unsigned char *base, uint64_t size,
                const int64_t *index, uint64_t *ret_offset, struct view_fault *fault);

#endif
