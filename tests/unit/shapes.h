/* SPDX-License-Identifier: Apache-2.0 */
/* Makes views of any shape and strides in foreign_memory, and visits them in C order. */
#ifndef UNIT_SHAPES_H
#define UNIT_SHAPES_H

#include "unit/foreign.h"

static uint64_t shapes_seed = 2024;

static inline uint64_t shapes_random(uint64_t n)
{
    return unit_random(&shapes_seed) / 7 % n;
}

/* Chooses lengths from 0 to 5, and now and then a long one. Returns the number of dimensions. */
static inline uint32_t shapes_shape(int64_t *ret)
{
    uint32_t ndim = (uint32_t)shapes_random(5);
    for (uint32_t d = 0; d < ndim; d++)
        ret[d] = (int64_t)(1 + shapes_random(5));
    if (ndim && shapes_random(20) == 0)
        ret[shapes_random(ndim)] = 0;
    if (ndim && shapes_random(6) == 0) {
        for (uint32_t d = 1; d < ndim; d++)
            ret[d] = (int64_t)(1 + shapes_random(2));
        ret[0] = (int64_t)(100 + shapes_random(500));
    }
    return ndim;
}

/* Makes a view of that shape within `bytes` bytes from begin: dimensions in any order, with gaps,
 * upwards and downwards. No two elements share a byte, unless with_repeats allows strides of 0.
 * Returns false if it does not fit. */
static inline bool shapes_view(const char *format, uint32_t ndim, const int64_t *shape,
                               uint64_t begin, uint64_t bytes, bool with_repeats,
                               struct shmview_view *ret)
{
    struct shmview_view item = foreign_row(format, 0, 1);
    int64_t strides[8], step = item.itemsize, low = 0, high = item.itemsize;
    uint32_t order[8];
    for (uint32_t d = 0; d < ndim; d++) {
        uint32_t at = (uint32_t)shapes_random(d + 1);
        order[d] = order[at];
        order[at] = d;
    }
    for (uint32_t k = 0; k < ndim; k++) {
        int64_t *stride = &strides[order[k]], n = shape[order[k]];
        step += shapes_random(3) ? 0 : (int64_t)(item.itemsize * shapes_random(3));
        *stride = shapes_random(3) ? step : -step;
        if (with_repeats && shapes_random(5) == 0)
            *stride = 0;
        else
            step *= n ? n : 1;
        low += n && *stride < 0 ? (n - 1) * *stride : 0;
        high += n && *stride > 0 ? (n - 1) * *stride : 0;
    }
    if ((uint64_t)(high - low) > bytes)
        return false;
    uint64_t places = (bytes - (uint64_t)(high - low)) / item.itemsize + 1;
    const struct shmview_view_spec spec = {
        .format = format,
        .offset = begin + (uint64_t)-low + shapes_random(places) * item.itemsize,
        .ndim = ndim,
        .shape = shape,
        .strides = strides,
    };
    *ret = foreign_view(&spec);
    return true;
}

/* Computes the index of element number `at`, in C order. */
static inline void shapes_index(const struct shmview_view *view, uint64_t at, ptrdiff_t *ret)
{
    for (uint32_t d = view->ndim; d-- > 0; at /= (uint64_t)view->shape[d])
        ret[d] = (ptrdiff_t)(at % (uint64_t)view->shape[d]);
}

static inline unsigned char *shapes_at(const struct shmview_view *view, uint64_t at)
{
    ptrdiff_t index[8];
    shapes_index(view, at, index);
    return shmview_at(view, index);
}

static inline void shapes_scribble(void)
{
    for (size_t i = 0; i < FOREIGN_BYTES; i += 8) {
        uint64_t bits = unit_random(&shapes_seed);
        memcpy(foreign_memory + i, &bits, 8);
    }
}

#endif
