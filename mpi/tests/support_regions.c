/* SPDX-License-Identifier: Apache-2.0 */
#include "support_regions.h"

#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"

struct shmview_view region_view(struct shmview_segment *segment, int region, const char *format,
                                uint32_t ndim, const int64_t *shape, unsigned order)
{
    struct shmview_format parsed;
    OK(shmview_format_parse(format, &parsed, NULL, 0));
    int64_t strides[SHMVIEW_MAX_NDIM] = {0};
    OK(shmview_fill_strides(ndim, shape, parsed.itemsize, order % 4 == 1 ? 'F' : 'C', strides));
    int64_t offset = (int64_t)region * REGION_BYTES;
    for (uint32_t d = 0; d < ndim; d++) {
        if (order % 4 == 2)
            strides[d] *= 2;
        if (order % 4 == 3 && shape[d] > 0) {
            offset += (shape[d] - 1) * strides[d];
            strides[d] = -strides[d];
        }
    }
    const struct shmview_view_spec spec = {.format = format,
                                           .offset = (uint64_t)offset,
                                           .ndim = ndim,
                                           .shape = shape,
                                           .strides = strides};
    struct shmview_view view;
    OK(shmview_view_make(segment, &spec, &view));
    CHECK(view.nbytes * 2 <= REGION_BYTES);
    return view;
}

char *region_pattern(const struct shmview_view *view, int seed)
{
    char *bytes = calloc(1, view->nbytes + 1);
    CHECK(bytes);
    for (uint64_t i = 0; i < view->nbytes && seed >= 0; i++)
        bytes[i] = (char)((i * 31 + (uint64_t)seed * 17 + i / 251) & 0x7f);
    return bytes;
}

/* The index of element i in C order. */
static void index_of(const struct shmview_view *view, uint64_t i, ptrdiff_t *ret_index)
{
    for (uint32_t d = view->ndim; d-- > 0;) {
        ret_index[d] = (ptrdiff_t)(i % (uint64_t)view->shape[d]);
        i /= (uint64_t)view->shape[d];
    }
}

static char *element(const struct shmview_view *view, uint64_t i)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    void *pointer;
    index_of(view, i, index);
    OK(shmview_view_pointer(view, index, &pointer));
    return pointer;
}

void region_store(const struct shmview_view *view, const char *bytes)
{
    for (uint64_t i = 0; i < view->nbytes / view->itemsize; i++)
        memcpy(element(view, i), bytes + i * view->itemsize, view->itemsize);
}

int region_equal(const struct shmview_view *view, const char *bytes)
{
    for (uint64_t i = 0; i < view->nbytes / view->itemsize; i++)
        if (memcmp(element(view, i), bytes + i * view->itemsize, view->itemsize) != 0)
            return 0;
    return 1;
}

void region_set(const struct shmview_view *view, int i, double value)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    index_of(view, (uint64_t)i, index);
    OK(shmview_set_double(view, index, value));
}

double region_get(const struct shmview_view *view, int i)
{
    ptrdiff_t index[SHMVIEW_MAX_NDIM] = {0};
    double value = 0;
    index_of(view, (uint64_t)i, index);
    OK(shmview_get_double(view, index, &value));
    return value;
}
