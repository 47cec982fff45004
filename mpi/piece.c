/* SPDX-License-Identifier: Apache-2.0 */
#include "piece.h"

#include <shmview/mpi.h>

#include "text.h"

int pieces_keep_shape(const struct shmview_view *view, uint64_t bytes, struct pieces *ret)
{
    const int64_t one[] = {1};
    struct pieces pieces = {.view = *view};
    int result = view->ndim == 0 ? shmview_view_reshape(view, 1, one, &pieces.view) : 0;
    if (result < 0)
        return text_core(result, "the pieces of a view");
    for (uint32_t d = 1; d < pieces.view.ndim; d++)
        if (pieces.view.shape[d] > pieces.view.shape[pieces.dimension])
            pieces.dimension = d;
    pieces.length = pieces.view.shape[pieces.dimension];
    const int64_t n = (int64_t)(view->nbytes / bytes + (view->nbytes % bytes != 0));
    pieces.n = n < pieces.length ? n : pieces.length;
    *ret = pieces;
    return 0;
}

int pieces_of_bytes(const struct shmview_view *view, uint64_t bytes, struct pieces *ret)
{
    const int64_t all[] = {-1};
    struct shmview_view flat = *view;
    if (view->ndim > 1 && view->nbytes && shmview_view_is_contiguous(view, 'C')) {
        int result = shmview_view_reshape(view, 1, all, &flat);
        if (result < 0)
            return text_core(result, "the pieces of a view");
    }
    return pieces_keep_shape(&flat, bytes, ret);
}

int piece_get(const struct pieces *pieces, int64_t i, struct shmview_view *ret)
{
    /* Without a product that may overflow. */
    const int64_t each = pieces->length / pieces->n, more = pieces->length % pieces->n;
    const int64_t begin = i * each + (i < more ? i : more);
    const int64_t end = begin + each + (i < more);
    int result = shmview_view_slice(&pieces->view, pieces->dimension, begin, end, 1, ret);
    return result < 0 ? text_core(result, "a piece of a view") : 0;
}
