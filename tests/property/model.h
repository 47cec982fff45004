/* SPDX-License-Identifier: Apache-2.0 */
/* The slow and obvious model of a view: the list of the places of its elements, in C order.
 * Rules are applied to the list, element by element, as the headers state them. */
#ifndef PROPERTY_MODEL_H
#define PROPERTY_MODEL_H

#include "common/views/format.h"
#include "common/views/view.h"

typedef __int128 wide;

#define MODEL_PLACES 1024
#define CELL_BYTES   8 /* of what a suboffset follows */

/* Which results are right: bit 0 is success, bit n error number n. */
typedef uint64_t verdict;
#define ACCEPTED      ((verdict)1)
#define REFUSED(name) ((verdict)1 << SHMVIEW_ERR_##name)

struct memory {
    unsigned char *bytes;
    uint64_t size;
};

/* Where an element lies, in the segment or not; lost: errors on the way to it. */
struct place {
    wide at;
    verdict lost;
};

struct model {
    uint32_t itemsize, align;
    uint32_t ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
    bool is_read_only;
    bool is_indirect;
    bool has_list; /* false: too many elements */
    size_t n;
    struct place places[MODEL_PLACES];
};

/* Steps index to the next one in C order. Returns false after the last. */
bool index_next(int64_t *index, const int64_t *shape, uint32_t ndim);

bool is_inside(wide at, wide bytes, uint64_t size);

/* The product of ndim lengths; those of 0 are left out if skip_zero. Cut at 2^63. */
wide shape_product(const int64_t *shape, uint32_t ndim, bool skip_zero);

/* Dimension d of desc leads to a place that is stored. */
bool leads_on(const struct view_desc *desc, uint32_t d);

/* Follows index by the definition of strides and suboffsets. */
struct place place_find(const struct view_desc *desc, const struct memory *memory,
                        const int64_t *index);

/* Errors of reading the element at place. 0: none. */
verdict place_errors(const struct place *place, uint32_t itemsize, uint32_t align, uint64_t size);

/* Lists the elements of desc, which holds in memory. */
void model_fill(struct model *m, const struct view_desc *desc, const struct memory *memory);

/* What view_check() may say. */
verdict model_check(const struct view_desc *desc, const struct memory *memory);

/* By the definition: each next element begins where the one before it ends. */
bool model_is_contiguous(const struct model *m, char order);

#endif
