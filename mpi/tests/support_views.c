/* SPDX-License-Identifier: Apache-2.0 */
#include "support_views.h"

#include <shmview/mpi.h>
#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"

#define MARGIN 256

/* Sets strides and the offset of the first element, and returns the bytes of the memory. */
static uint64_t place(uint32_t ndim, const int64_t *shape, int64_t itemsize, enum strides kind,
                      int64_t *strides, int64_t *ret_offset)
{
    uint32_t order[SHMVIEW_MAX_NDIM]; /* the fastest first */
    for (uint32_t d = 0; d < ndim; d++)
        order[d] = kind == STRIDES_FORTRAN ? d : ndim - 1 - d;
    if (kind == STRIDES_MIXED && ndim > 2) {
        order[0] = ndim - 2;
        order[1] = ndim - 1;
    }
    int64_t step = itemsize, offset = 0;
    for (uint32_t i = 0; i < ndim; i++) {
        uint32_t d = order[i];
        if ((kind == STRIDES_STEPPED || kind == STRIDES_MIXED) && d == ndim - 1)
            step *= 2;
        if (kind == STRIDES_PADDED && i == 1)
            step += itemsize;
        strides[d] = step;
        step *= shape[d] ? shape[d] : 1;
        if (kind == STRIDES_REVERSED || (kind == STRIDES_MIXED && d == 0)) {
            offset += (shape[d] ? shape[d] - 1 : 0) * strides[d];
            strides[d] = -strides[d];
        }
    }
    *ret_offset = offset;
    return (uint64_t)(step + 2 * itemsize);
}

void made_view_init(struct made_view *made, const char *format, uint32_t ndim, const int64_t *shape,
                    enum strides strides)
{
    struct shmview_format parsed;
    OK(shmview_format_parse(format, &parsed, NULL, 0));
    int64_t steps[SHMVIEW_MAX_NDIM] = {0}, offset = 0;
    uint64_t n_bytes = place(ndim, shape, parsed.itemsize, strides, steps, &offset) + MARGIN;
    n_bytes = (n_bytes + 63) / 64 * 64;
    made->memory = aligned_alloc(64, n_bytes);
    CHECK(made->memory);
    memset(made->memory, 0, n_bytes);
    OK(shmview_wrap(made->memory, n_bytes, 0, NULL, NULL, &made->segment));
    const struct shmview_view_spec spec = {.format = format,
                                           .offset = (uint64_t)offset,
                                           .ndim = ndim,
                                           .shape = shape,
                                           .strides = ndim ? steps : NULL};
    OK(shmview_view_make(made->segment, &spec, &made->view));
}

void made_view_deinit(struct made_view *made)
{
    OK(shmview_detach(made->segment));
    free(made->memory);
}

/* Goes to the next index in C order; returns 0 after the last one. */
static int advance(const struct shmview_view *view, ptrdiff_t *index)
{
    for (uint32_t d = view->ndim; d-- > 0;) {
        if (++index[d] < view->shape[d])
            return 1;
        index[d] = 0;
    }
    return 0;
}

void made_view_number(const struct made_view *made, unsigned seed, unsigned gap_begin,
                      unsigned gap_end)
{
    const struct shmview_view *view = &made->view;
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    unsigned n = seed;
    if (view->nbytes == 0)
        return;
    do {
        unsigned char *bytes = shmview_at(view, index);
        for (uint32_t i = 0; i < view->itemsize; i++) {
            n = n * 1664525u + 1013904223u;
            bytes[i] = i >= gap_begin && i < gap_end ? 0 : (unsigned char)(n >> 24 | 1);
        }
    } while (advance(view, index));
}

unsigned char *made_view_elements(const struct made_view *made)
{
    const struct shmview_view *view = &made->view;
    unsigned char *elements = malloc(view->nbytes + 1);
    CHECK(elements);
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    unsigned char *to = elements;
    if (view->nbytes == 0)
        return elements;
    do {
        memcpy(to, shmview_at(view, index), view->itemsize);
        to += view->itemsize;
    } while (advance(view, index));
    return elements;
}

int made_view_is_clean(const struct made_view *made)
{
    const struct shmview_view *view = &made->view;
    struct shmview_view whole;
    OK(shmview_view_cast(made->segment, "B", 0, SHMVIEW_REST, &whole));
    uint64_t n_set = 0, n_elements = 0;
    const unsigned char *bytes = whole.data;
    for (uint64_t i = 0; i < whole.nbytes; i++)
        n_set += bytes[i] != 0;
    unsigned char *elements = made_view_elements(made);
    for (uint64_t i = 0; i < view->nbytes; i++)
        n_elements += elements[i] != 0;
    free(elements);
    return n_set == n_elements;
}
