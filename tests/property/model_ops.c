/* SPDX-License-Identifier: Apache-2.0 */
#include "model_ops.h"

#include <string.h>

/* Begins a view of the same kind, without shape and places. */
static void model_begin(const struct model *from, struct model *ret)
{
    ret->itemsize = from->itemsize;
    ret->align = from->align;
    ret->ndim = 0;
    ret->is_read_only = from->is_read_only;
    ret->is_indirect = from->is_indirect;
    ret->has_list = from->has_list;
    ret->n = 0;
}

static bool fits_list(const struct model *m)
{
    wide n = shape_product(m->shape, m->ndim, false);
    return n == 0 || (m->has_list && n <= MODEL_PLACES);
}

/* --- Operations that pick and repeat elements ----------------------------- */

/* Maps the index of a new element to that of the old element in its place. */
struct pick {
    void (*source)(const struct pick *pick, const int64_t *index, int64_t *ret_old);
    uint32_t old_ndim, new_ndim, dimension;
    int64_t first, step;
    const int64_t *old_shape;
    const uint32_t *axes;
};

static void gather(const struct model *from, const struct pick *pick, struct model *ret)
{
    int64_t index[SHMVIEW_MAX_NDIM] = {0}, old[SHMVIEW_MAX_NDIM];
    ret->has_list = fits_list(ret);
    if (!ret->has_list || shape_product(ret->shape, ret->ndim, false) == 0)
        return;
    do {
        size_t flat = 0;
        pick->source(pick, index, old);
        for (uint32_t d = 0; d < from->ndim; d++)
            flat = flat * (size_t)from->shape[d] + (size_t)old[d];
        ret->places[ret->n++] = from->places[flat];
    } while (index_next(index, ret->shape, ret->ndim));
}

static void source_slice(const struct pick *pick, const int64_t *index, int64_t *ret_old)
{
    for (uint32_t d = 0; d < pick->old_ndim; d++)
        ret_old[d] = d == pick->dimension ? pick->first + index[d] * pick->step : index[d];
}

static void source_index(const struct pick *pick, const int64_t *index, int64_t *ret_old)
{
    for (uint32_t d = 0; d < pick->old_ndim; d++)
        ret_old[d] = d == pick->dimension ? pick->first : index[d - (d > pick->dimension)];
}

static void source_transpose(const struct pick *pick, const int64_t *index, int64_t *ret_old)
{
    for (uint32_t d = 0; d < pick->old_ndim; d++)
        ret_old[pick->axes[d]] = index[d];
}

static void source_broadcast(const struct pick *pick, const int64_t *index, int64_t *ret_old)
{
    uint32_t added = pick->new_ndim - pick->old_ndim;
    for (uint32_t d = 0; d < pick->old_ndim; d++)
        ret_old[d] = pick->old_shape[d] == 1 ? 0 : index[d + added];
}

/* Moving the start of a dimension by bytes changes the suboffset that leads to it. That suboffset
 * must not become negative. */
static verdict shift_verdict(const struct view_desc *desc, uint32_t dimension, wide bytes)
{
    for (uint32_t d = dimension; d-- > 0;) {
        if (!leads_on(desc, d))
            continue;
        bytes += desc->suboffsets[d];
        return bytes < 0           ? REFUSED(INVALID)
               : bytes > INT64_MAX ? REFUSED(INVALID) | REFUSED(OVERFLOW)
                                   : ACCEPTED;
    }
    return ACCEPTED;
}

/* By docs.python.org, "Common sequence operations", notes 3 to 5. Returns the number of
 * elements. */
static int64_t slice_count(int64_t n, int64_t start, int64_t stop, int64_t step, int64_t *ret_first)
{
    wide i = start, j = stop, count = 0;
    i = start == INT64_MIN ? (step > 0 ? 0 : n) : start < 0 ? i + n : i;
    j = stop == INT64_MIN ? (step > 0 ? n : -1) : stop < 0 ? j + n : j;
    if (step > 0) {
        i = i < 0 ? 0 : i > n ? n : i;
        j = j > n ? n : j;
    } else {
        i = i > n - 1 ? n - 1 : i;
        j = j < -1 ? -1 : j;
    }
    *ret_first = (int64_t)(i < 0 ? 0 : i);
    if (n > MODEL_PLACES && step > 0)
        return j > i ? (int64_t)((j - i + step - 1) / step) : 0;
    if (n > MODEL_PLACES)
        return i > j ? (int64_t)((i - j - step - 1) / -(wide)step) : 0;
    for (; step > 0 ? i < j : i > j; i += step)
        count++;
    return (int64_t)count;
}

verdict model_slice(const struct origin *of, uint32_t dimension, int64_t start, int64_t stop,
                    int64_t step, struct model *ret)
{
    const struct model *m = of->model;
    int64_t first;
    if (dimension >= m->ndim || step == 0)
        return REFUSED(INVALID);
    step = step == INT64_MIN ? 1 : step; /* this step also means: left out */
    model_begin(m, ret);
    ret->ndim = m->ndim;
    memcpy(ret->shape, m->shape, sizeof ret->shape);
    ret->shape[dimension] = slice_count(m->shape[dimension], start, stop, step, &first);
    struct pick pick = {.source = source_slice,
                        .old_ndim = m->ndim,
                        .dimension = dimension,
                        .first = first,
                        .step = step};
    gather(m, &pick, ret);
    verdict v = shift_verdict(of->desc, dimension, (wide)first * of->desc->strides[dimension]);
    bool is_empty = shape_product(ret->shape, ret->ndim, false) == 0;
    return is_empty ? v | ACCEPTED : v;
}

/* The view of row i of the first dimension must be valid by itself. */
static verdict row_verdict(const struct origin *of, int64_t i)
{
    struct view_desc row = *of->desc;
    row.ndim = 1;
    struct place place = place_find(&row, of->memory, &i);
    if (place.lost)
        return place.lost;
    if (place.at > INT64_MAX)
        return REFUSED(BOUNDS);
    row.offset = (uint64_t)place.at;
    row.ndim = of->desc->ndim - 1;
    row.indirect = false;
    for (uint32_t d = 0; d < row.ndim; d++) {
        row.shape[d] = row.shape[d + 1];
        row.strides[d] = row.strides[d + 1];
        row.suboffsets[d] = row.suboffsets[d + 1];
        row.indirect = row.indirect || row.suboffsets[d] >= 0;
    }
    return model_check(&row, of->memory);
}

verdict model_index(const struct origin *of, uint32_t dimension, int64_t i, struct model *ret)
{
    const struct model *m = of->model;
    if (dimension >= m->ndim)
        return REFUSED(INVALID);
    bool is_row = leads_on(of->desc, dimension);
    int64_t n = m->shape[dimension];
    if (i < -n || i >= n)
        return REFUSED(BOUNDS) | (is_row && dimension ? REFUSED(INVALID) : 0);
    if (is_row && dimension)
        return REFUSED(INVALID);
    i = i < 0 ? i + n : i;
    model_begin(m, ret);
    ret->is_indirect = false;
    for (uint32_t d = 0; d < m->ndim; d++) {
        if (d == dimension)
            continue;
        ret->shape[ret->ndim++] = m->shape[d];
        ret->is_indirect = ret->is_indirect || leads_on(of->desc, d);
    }
    struct pick pick = {
        .source = source_index, .old_ndim = m->ndim, .dimension = dimension, .first = i};
    gather(m, &pick, ret);
    verdict v = is_row ? row_verdict(of, i)
                       : shift_verdict(of->desc, dimension, (wide)i * of->desc->strides[dimension]);
    bool is_empty = shape_product(ret->shape, ret->ndim, false) == 0;
    return is_empty ? v | ACCEPTED : v;
}

verdict model_transpose(const struct origin *of, const uint32_t *axes, struct model *ret)
{
    const struct model *m = of->model;
    uint32_t reversed[SHMVIEW_MAX_NDIM], seen = 0;
    for (uint32_t d = 0; d < m->ndim; d++) {
        reversed[d] = axes ? axes[d] : m->ndim - 1 - d;
        if (reversed[d] >= m->ndim || (seen & 1u << reversed[d]))
            return REFUSED(INVALID);
        seen |= 1u << reversed[d];
    }
    if (m->is_indirect)
        return REFUSED(INVALID);
    model_begin(m, ret);
    ret->ndim = m->ndim;
    for (uint32_t d = 0; d < m->ndim; d++)
        ret->shape[d] = m->shape[reversed[d]];
    struct pick pick = {.source = source_transpose, .old_ndim = m->ndim, .axes = reversed};
    gather(m, &pick, ret);
    return ACCEPTED;
}

verdict model_broadcast(const struct origin *of, uint32_t ndim, const int64_t *shape,
                        struct model *ret)
{
    const struct model *m = of->model;
    if (ndim < m->ndim || ndim > SHMVIEW_MAX_NDIM)
        return REFUSED(INVALID);
    for (uint32_t d = 0; d < ndim; d++) {
        bool is_new = d < ndim - m->ndim;
        int64_t was = is_new ? 1 : m->shape[d - (ndim - m->ndim)];
        if (shape[d] < 0 || (was != 1 && was != shape[d]))
            return REFUSED(INVALID);
    }
    if (shape_product(shape, ndim, true) * m->itemsize > INT64_MAX)
        return REFUSED(OVERFLOW) | REFUSED(INVALID);
    model_begin(m, ret);
    ret->ndim = ndim;
    memcpy(ret->shape, shape, ndim * sizeof *shape);
    ret->is_read_only = true;
    struct pick pick = {
        .source = source_broadcast, .old_ndim = m->ndim, .new_ndim = ndim, .old_shape = m->shape};
    gather(m, &pick, ret);
    return ACCEPTED;
}

/* --- Operations that change shape or element ------------------------------ */

/* Returns whether any strides give this list: those between the first element and its
 * neighbours. */
static bool is_strided(const struct model *m)
{
    int64_t index[SHMVIEW_MAX_NDIM] = {0};
    wide strides[SHMVIEW_MAX_NDIM] = {0};
    size_t step = 1, flat = 0;
    for (uint32_t d = m->ndim; d-- > 0;) {
        if (m->shape[d] > 1)
            strides[d] = m->places[step].at - m->places[0].at;
        step *= (size_t)m->shape[d];
    }
    do {
        wide at = m->places[0].at;
        for (uint32_t d = 0; d < m->ndim; d++)
            at += index[d] * strides[d];
        if (at != m->places[flat++].at)
            return false;
    } while (index_next(index, m->shape, m->ndim));
    return true;
}

/* Writes shape with its -1 replaced. Returns 0, or the errors. */
static verdict complete_shape(const struct model *m, uint32_t ndim, const int64_t *shape,
                              int64_t *ret_shape)
{
    uint32_t n_open = 0, n_wrong = 0, open = 0;
    if (ndim > SHMVIEW_MAX_NDIM)
        return REFUSED(INVALID);
    for (uint32_t d = 0; d < ndim; d++) {
        ret_shape[d] = shape[d] < 0 ? 1 : shape[d];
        n_wrong += shape[d] < -1;
        n_open += shape[d] == -1;
        open = shape[d] == -1 ? d : open;
    }
    verdict may = shape_product(ret_shape, ndim, true) > INT64_MAX ? REFUSED(OVERFLOW) : 0;
    if (n_wrong || n_open > 1)
        return REFUSED(INVALID) | may;
    wide old = shape_product(m->shape, m->ndim, false);
    wide others = shape_product(ret_shape, ndim, false);
    if (n_open && others == 0)
        return REFUSED(INVALID) | REFUSED(ILL_SIZED) | may;
    if (n_open && old % others == 0)
        ret_shape[open] = (int64_t)(old / others);
    return shape_product(ret_shape, ndim, false) == old ? 0 : REFUSED(ILL_SIZED) | may;
}

verdict model_reshape(const struct origin *of, uint32_t ndim, const int64_t *shape,
                      struct model *ret)
{
    const struct model *m = of->model;
    model_begin(m, ret);
    verdict errors = complete_shape(m, ndim, shape, ret->shape);
    if (m->is_indirect)
        errors |= REFUSED(INVALID);
    if (errors)
        return errors;
    ret->ndim = ndim;
    ret->n = m->n;
    memcpy(ret->places, m->places, m->n * sizeof m->places[0]);
    if (shape_product(ret->shape, ndim, true) * m->itemsize > INT64_MAX)
        return REFUSED(OVERFLOW) | REFUSED(INVALID);
    if (!m->has_list)
        return ACCEPTED | REFUSED(INVALID);
    return m->n == 0 || is_strided(ret) ? ACCEPTED : REFUSED(INVALID);
}

verdict model_recast(const struct origin *of, const struct format *item, struct model *ret)
{
    const struct model *m = of->model;
    int64_t last = m->ndim ? m->shape[m->ndim - 1] : 1;
    verdict errors = 0, may = m->has_list ? 0 : REFUSED(INVALID); /* unknown without a list */
    if (m->is_indirect || (m->has_list && !model_is_contiguous(m, 'C')))
        errors |= REFUSED(INVALID);
    if (m->ndim == 0 && m->itemsize != item->itemsize)
        errors |= REFUSED(INVALID) | REFUSED(ILL_SIZED);
    if ((wide)last * m->itemsize % item->itemsize)
        errors |= REFUSED(ILL_SIZED);
    if (of->desc->offset % item->align)
        errors |= REFUSED(MISALIGNED);
    if (errors)
        return errors | may;
    model_begin(m, ret);
    ret->itemsize = item->itemsize;
    ret->align = item->align;
    ret->ndim = m->ndim;
    memcpy(ret->shape, m->shape, sizeof ret->shape);
    if (m->ndim)
        ret->shape[m->ndim - 1] = (int64_t)((wide)last * m->itemsize / item->itemsize);
    ret->has_list = fits_list(ret);
    /* goes through every byte; a new element begins after each item->itemsize of them */
    for (size_t byte = 0; ret->has_list && byte < m->n * m->itemsize; byte += item->itemsize)
        ret->places[ret->n++] =
            (struct place){.at = m->places[byte / m->itemsize].at + (wide)(byte % m->itemsize)};
    if (shape_product(ret->shape, ret->ndim, true) * ret->itemsize > INT64_MAX)
        return REFUSED(OVERFLOW) | REFUSED(INVALID);
    return ACCEPTED | may;
}

static void field_places(const struct model *m, const struct format_node *node, struct model *ret)
{
    ret->has_list = fits_list(ret);
    for (size_t i = 0; ret->has_list && i < m->n; i++)
        for (uint32_t k = 0; k < node->repeat; k++) {
            struct place place = m->places[i];
            place.at += (wide)node->offset + (wide)k * node->bytes;
            ret->places[ret->n++] = place;
        }
}

verdict model_field(const struct origin *of, uint32_t node, const struct format *item,
                    struct model *ret)
{
    const struct model *m = of->model;
    const struct format_node *of_field = &of->desc->item->nodes[node];
    if (m->ndim + of_field->ndim > SHMVIEW_MAX_NDIM)
        return REFUSED(INVALID);
    model_begin(m, ret);
    ret->itemsize = item->itemsize;
    ret->align = item->align;
    ret->ndim = m->ndim;
    memcpy(ret->shape, m->shape, sizeof ret->shape);
    for (uint32_t d = 0; d < of_field->ndim; d++)
        ret->shape[ret->ndim++] = of_field->shape[d];
    field_places(m, of_field, ret);
    verdict v = shift_verdict(of->desc, m->ndim, of_field->offset);
    if (shape_product(ret->shape, ret->ndim, false) == 0)
        v |= ACCEPTED;
    return v;
}
