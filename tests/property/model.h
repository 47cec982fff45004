/* SPDX-License-Identifier: Apache-2.0 */
/* A slow and simple model of a view: the list of the places of its elements, in C order. The rules
 * of the headers are applied to the list, element by element. */
#ifndef PROPERTY_MODEL_H
#define PROPERTY_MODEL_H

#include "common/views/format.h"
#include "common/views/view.h"

typedef __int128 wide;

#define MODEL_PLACES 1024
#define CELL_BYTES   8 /* size of a stored row offset */

/* The set of correct results: bit 0 is success, bit n is error number n. */
typedef uint64_t verdict;
#define ACCEPTED      ((verdict)1)
#define REFUSED(name) ((verdict)1 << SHMVIEW_ERR_##name)

struct memory {
    unsigned char *bytes;
    uint64_t size;
};

/* Where an element lies, inside the segment or not. `lost` has the errors on the way to it. */
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
    bool has_list; /* false: there are too many elements */
    size_t n;
    struct place places[MODEL_PLACES];
};

/* Steps index to the next element in C order. Returns false after the last one. */
bool index_next(int64_t *index, const int64_t *shape, uint32_t ndim);

bool is_inside(wide at, wide bytes, uint64_t size);

/* Returns the product of ndim lengths, at most 2^63. skip_zero leaves out those of 0. */
wide shape_product(const int64_t *shape, uint32_t ndim, bool skip_zero);

/* Returns whether dimension d of desc leads to a place that is stored. */
bool leads_on(const struct view_desc *desc, uint32_t d);

/* Finds the place of an index by the definition of strides and suboffsets. */
struct place place_find(const struct view_desc *desc, const struct memory *memory,
                        const int64_t *index);

/* Returns the errors of reading the element at place, or 0. */
verdict place_errors(const struct place *place, uint32_t itemsize, uint32_t align, uint64_t size);

/* Lists the elements of desc, which must be valid for memory. */
void model_fill(struct model *m, const struct view_desc *desc, const struct memory *memory);

/* Returns the results that view_check() may return. */
verdict model_check(const struct view_desc *desc, const struct memory *memory);

/* Returns whether each next element in this order begins where the one before it ends. */
bool model_is_contiguous(const struct model *m, char order);

#endif
