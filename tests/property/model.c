/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <string.h>

#define FAR ((wide)1 << 63)

bool index_next(int64_t *index, const int64_t *shape, uint32_t ndim)
{
    for (uint32_t d = ndim; d-- > 0;) {
        if (++index[d] < shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

bool is_inside(wide at, wide bytes, uint64_t size)
{
    return at >= 0 && at + bytes <= (wide)size;
}

wide shape_product(const int64_t *shape, uint32_t ndim, bool skip_zero)
{
    wide n = 1;
    for (uint32_t d = 0; d < ndim; d++) {
        if (shape[d] == 0 && skip_zero)
            continue;
        n = n * shape[d] > FAR ? FAR : n * shape[d];
    }
    return n;
}

bool leads_on(const struct view_desc *desc, uint32_t d)
{
    return desc->indirect && desc->suboffsets[d] >= 0;
}

/* Replaces the place of a cell by the place that the cell stores. */
static void cell_follow(struct place *place, const struct memory *memory, int64_t suboffset)
{
    uint64_t stored;
    if (!is_inside(place->at, CELL_BYTES, memory->size))
        place->lost |= REFUSED(BOUNDS);
    if (place->at % CELL_BYTES) /* a misaligned cell may be reported either way */
        place->lost |= REFUSED(MISALIGNED) | REFUSED(BOUNDS);
    if (place->lost)
        return;
    memcpy(&stored, memory->bytes + place->at, sizeof stored);
    place->at = (wide)stored + suboffset;
}

struct place place_find(const struct view_desc *desc, const struct memory *memory,
                        const int64_t *index)
{
    struct place place = {.at = (wide)desc->offset};
    for (uint32_t d = 0; d < desc->ndim && !place.lost; d++) {
        place.at += (wide)index[d] * desc->strides[d];
        if (leads_on(desc, d))
            cell_follow(&place, memory, desc->suboffsets[d]);
    }
    return place;
}

verdict place_errors(const struct place *place, uint32_t itemsize, uint32_t align, uint64_t size)
{
    if (place->lost)
        return place->lost;
    return (is_inside(place->at, itemsize, size) ? 0 : REFUSED(BOUNDS)) |
           (place->at % align ? REFUSED(MISALIGNED) : 0);
}

void model_fill(struct model *m, const struct view_desc *desc, const struct memory *memory)
{
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    wide n = shape_product(desc->shape, desc->ndim, false);
    m->itemsize = desc->item->itemsize;
    m->align = desc->item->align;
    m->ndim = desc->ndim;
    memcpy(m->shape, desc->shape, sizeof m->shape);
    m->is_read_only = desc->read_only;
    m->is_indirect = desc->indirect;
    m->has_list = n <= MODEL_PLACES;
    m->n = 0;
    if (n == 0 || !m->has_list)
        return;
    do
        m->places[m->n++] = place_find(desc, memory, index);
    while (index_next(index, desc->shape, desc->ndim));
}

/* --- Checking ------------------------------------------------------------ */

/* Cuts a distance so that eight of them can be added. Its alignment does not change. */
static wide reach(wide bytes)
{
    const wide most = (wide)1 << 100;
    return bytes > most ? most : bytes < -most ? -most : bytes;
}

/* Returns the errors of the cells or elements, of `bytes` each, to which the first ndim dimensions
 * lead. It visits each of them if they are few, otherwise the outermost ones. */
static verdict errors_of_each(const struct view_desc *desc, uint32_t ndim, uint32_t bytes,
                              uint32_t align, uint64_t size)
{
    int64_t ends[SHMVIEW_MAX_NDIM], index[SHMVIEW_MAX_NDIM] = {0};
    bool few = shape_product(desc->shape, ndim, true) <= 4 * MODEL_PLACES;
    verdict errors = 0;
    for (uint32_t d = 0; d < ndim; d++)
        ends[d] = few || desc->shape[d] < 2 ? desc->shape[d] : 2;
    do {
        struct place place = {.at = (wide)desc->offset};
        for (uint32_t d = 0; d < ndim; d++) {
            place.at += (wide)index[d] * desc->strides[d];
            if (few || !index[d])
                continue;
            /* if this place and the next are aligned, all are */
            errors |= place.at % align ? REFUSED(MISALIGNED) : 0;
            place.at += reach((wide)(desc->shape[d] - 2) * desc->strides[d]);
        }
        errors |= place_errors(&place, bytes, align, size);
        if (place.at + bytes > INT64_MAX || place.at < INT64_MIN)
            errors |= REFUSED(OVERFLOW);
    } while (index_next(index, ends, ndim));
    return errors;
}

/* Returns the errors of a view without elements, which must still begin in the segment and be
 * aligned. */
static verdict errors_of_empty(const struct view_desc *desc, uint32_t ndim, uint32_t align,
                               uint64_t size)
{
    verdict errors = desc->offset > size ? REFUSED(BOUNDS) : 0;
    if (desc->offset % align)
        errors |= REFUSED(MISALIGNED);
    for (uint32_t d = 0; d < ndim; d++)
        if (desc->shape[d] > 1 && desc->strides[d] % (int64_t)align)
            errors |= REFUSED(MISALIGNED);
    return errors;
}

/* Returns whether dimension d or a later one leads to a stored place. */
static bool leads_later(const struct view_desc *desc, uint32_t d)
{
    while (d < desc->ndim && !leads_on(desc, d))
        d++;
    return d < desc->ndim;
}

/* Returns the errors of the dimensions from `first` on, after the first stored offset. Where a row
 * lies is checked only when the offset is followed, but its strides are known. */
static verdict errors_of_rows(const struct view_desc *desc, uint32_t first)
{
    for (uint32_t d = first; d < desc->ndim; d++) {
        int64_t align = leads_later(desc, d) ? CELL_BYTES : desc->item->align;
        if (desc->shape[d] > 1 && desc->strides[d] % align)
            return REFUSED(MISALIGNED);
    }
    return 0;
}

/* Returns the errors that may be reported early for rows that cannot fit the segment wherever they
 * begin. */
static verdict rows_may(const struct view_desc *desc, uint32_t first, uint64_t size)
{
    wide span = 0;
    verdict may = 0;
    for (uint32_t d = first; d < desc->ndim; d++) {
        wide bytes = reach((wide)(desc->shape[d] - 1) * desc->strides[d]);
        span += bytes < 0 ? -bytes : bytes;
        if (d + 1 == desc->ndim || leads_on(desc, d))
            may |= span + (leads_on(desc, d) ? CELL_BYTES : desc->item->itemsize) > size
                       ? REFUSED(BOUNDS) | REFUSED(OVERFLOW)
                       : 0;
        if (leads_on(desc, d))
            span = 0;
    }
    return may;
}

/* Returns the errors that may be reported in addition for a view with a negative length, which has
 * no list of elements. */
static verdict errors_of_first(const struct view_desc *desc, uint64_t size)
{
    struct place place = {.at = (wide)desc->offset};
    return place_errors(&place, desc->item->itemsize, desc->item->align, size);
}

verdict model_check(const struct view_desc *desc, const struct memory *memory)
{
    verdict errors = 0;
    uint32_t n = 0, itemsize, align;
    if (desc->ndim > SHMVIEW_MAX_NDIM)
        return REFUSED(INVALID);
    for (uint32_t d = 0; d < desc->ndim; d++)
        if (desc->shape[d] < 0)
            return REFUSED(INVALID) | errors_of_first(desc, memory->size);
    while (n < desc->ndim && !leads_on(desc, n))
        n++;
    bool has_cells = n < desc->ndim;
    itemsize = has_cells ? CELL_BYTES : desc->item->itemsize;
    align = has_cells ? CELL_BYTES : desc->item->align;
    n += has_cells;
    if (shape_product(desc->shape, desc->ndim, true) * desc->item->itemsize > INT64_MAX)
        errors |= REFUSED(OVERFLOW);
    if (shape_product(desc->shape, desc->ndim, false) == 0)
        errors |= errors_of_empty(desc, n, align, memory->size);
    else
        errors |= errors_of_each(desc, n, itemsize, align, memory->size);
    errors |= errors_of_rows(desc, n);
    return (errors ? errors : ACCEPTED) | rows_may(desc, n, memory->size);
}

/* --- Contiguity ---------------------------------------------------------- */

/* Returns whether the elements follow each other in the order in which axes count their indices. */
static bool follows(const struct model *m, bool last_is_fastest)
{
    int64_t index[SHMVIEW_MAX_NDIM] = {0}, shape[SHMVIEW_MAX_NDIM];
    wide wanted = m->places[0].at;
    for (uint32_t d = 0; d < m->ndim; d++)
        shape[d] = m->shape[last_is_fastest ? d : m->ndim - 1 - d];
    do {
        size_t flat = 0;
        for (uint32_t d = 0; d < m->ndim; d++)
            flat =
                flat * (size_t)m->shape[d] + (size_t)index[last_is_fastest ? d : m->ndim - 1 - d];
        if (m->places[flat].at != wanted)
            return false;
        wanted += m->itemsize;
    } while (index_next(index, shape, m->ndim));
    return true;
}

bool model_is_contiguous(const struct model *m, char order)
{
    if (m->is_indirect)
        return false;
    bool is_c = m->n == 0 || follows(m, true), is_f = m->n == 0 || follows(m, false);
    return order == 'C' ? is_c : order == 'F' ? is_f : order == 'A' && (is_c || is_f);
}
