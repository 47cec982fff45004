/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/numbers.h"

int numbers_init(struct numbers *m, size_t n)
{
    *m = (struct numbers){.n = n};
    m->values = malloc((n ? n : 1) * sizeof *m->values);
    if (!m->values)
        return -SHMVIEW_ERR_NO_MEMORY;
    int r = shmview_wrap(m->values, (n ? n : 1) * sizeof *m->values, 0, NULL, NULL, &m->segment);
    return r ? r : shmview_view_cast(m->segment, "float64", 0, SHMVIEW_REST, &m->view);
}

void numbers_deinit(struct numbers *m)
{
    shmview_detach(m->segment);
    free(m->values);
    *m = (struct numbers){.n = 0};
}

int numbers_load(const struct numbers *m, const struct shmview_view *view, size_t n)
{
    struct shmview_view to;
    int64_t shape[SHMVIEW_MAX_NDIM];
    for (uint32_t d = 0; d < view->ndim; d++)
        shape[d] = view->shape[d];
    int r = shmview_view_slice(&m->view, 0, 0, (int64_t)n, 1, &to);
    r = r ? r : shmview_view_reshape(&to, view->ndim, shape, &to);
    return r ? r : shmview_copy(&to, view);
}
