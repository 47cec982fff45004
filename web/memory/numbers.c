/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/numbers.h"

#include <string.h>

int numbers_init(struct numbers *m, size_t n)
{
    *m = (struct numbers){.n = n};
    m->values = malloc((n ? n : 1) * sizeof *m->values);
    if (!m->values)
        return -SHMVIEW_ERR_NO_MEMORY;
    int r = shmview_wrap(m->values, (n ? n : 1) * sizeof *m->values, 0, NULL, NULL, &m->segment);
    r = r ? r : shmview_view_cast(m->segment, "float64", 0, SHMVIEW_REST, &m->view);
    r = r ? r : shmview_view_cast(m->segment, "int64", 0, SHMVIEW_REST, &m->signeds);
    return r ? r : shmview_view_cast(m->segment, "uint64", 0, SHMVIEW_REST, &m->unsigneds);
}

void numbers_deinit(struct numbers *m)
{
    shmview_detach(m->segment);
    free(m->values);
    *m = (struct numbers){.n = 0};
}

/* Returns the cells into which elements of a type are copied. The library copies no value into a
 * double that this cannot hold exactly, so integers of 64 bits stay integers at first. */
static const struct shmview_view *cells_for(const struct numbers *m, uint32_t dtype)
{
    switch (dtype & ~(uint32_t)SHMVIEW_SWAPPED) {
    case SHMVIEW_INT64:
        return &m->signeds;
    case SHMVIEW_UINT64:
    case SHMVIEW_POINTER:
        return &m->unsigneds;
    default:
        return &m->view;
    }
}

/* Rounds n cells to doubles in place; memcpy() because both types use one memory. */
static void round_all(const struct numbers *m, const struct shmview_view *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int64_t s;
        uint64_t u;
        memcpy(&s, &m->values[i], sizeof s);
        memcpy(&u, &m->values[i], sizeof u);
        m->values[i] = cells == &m->signeds ? (double)s : (double)u;
    }
}

int numbers_load(const struct numbers *m, const struct shmview_view *view, size_t n)
{
    struct shmview_view to;
    int64_t shape[SHMVIEW_MAX_NDIM];
    for (uint32_t d = 0; d < view->ndim; d++)
        shape[d] = view->shape[d];
    const struct shmview_view *cells = cells_for(m, view->dtype);
    int r = shmview_view_slice(cells, 0, 0, (int64_t)n, 1, &to);
    r = r ? r : shmview_view_reshape(&to, view->ndim, shape, &to);
    r = r ? r : shmview_copy(&to, view);
    if (r == 0 && cells != &m->view)
        round_all(m, cells, n);
    return r;
}
