/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/scratch.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 64 /* enough for every type of element */

int scratch_init(struct scratch *s, const struct shmview_view *view, const char *format)
{
    struct shmview_format f;
    int r = shmview_format_parse(format, &f, NULL, 0);
    if (r)
        return r;
    uint64_t most = view->itemsize > SCRATCH_BYTES ? 1 : SCRATCH_BYTES / view->itemsize;
    uint64_t n = view->nbytes / view->itemsize < most ? view->nbytes / view->itemsize : most;
    uint64_t bytes = (n * f.itemsize / ALIGN + 1) * ALIGN;
    s->format = format;
    s->memory = aligned_alloc(ALIGN, bytes);
    if (!s->memory)
        return -SHMVIEW_ERR_NO_MEMORY;
    memset(s->memory, 0, bytes); /* shmview_copy() leaves padding in elements alone, and save
                                      would otherwise write old heap memory to the file */
    return shmview_wrap(s->memory, bytes, 0, NULL, NULL, &s->segment);
}

int scratch_like(struct scratch *s, const struct shmview_view *piece, struct shmview_view *ret)
{
    int64_t shape[SHMVIEW_MAX_NDIM];
    const struct shmview_view_spec spec = {
        .format = s->format, .ndim = piece->ndim, .shape = shape};
    for (uint32_t d = 0; d < piece->ndim; d++)
        shape[d] = piece->shape[d];
    return shmview_view_make(s->segment, &spec, ret);
}

void scratch_deinit(struct scratch *s)
{
    shmview_detach(s->segment);
    free(s->memory);
    *s = (struct scratch){0};
}
