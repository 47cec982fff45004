/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/pieces.h"

#include <shmview/shmview.h>

/* Cuts the first dimension of which one index fits into limit, or the last one. */
void pieces_begin(struct pieces *p, const struct shmview_view *view, uint64_t limit)
{
    uint64_t bytes = view->nbytes;
    *p = (struct pieces){.view = *view, .step = 1, .is_done = view->nbytes == 0};
    for (; !p->is_done && p->dimension < view->ndim; p->dimension++) {
        bytes /= (uint64_t)view->shape[p->dimension]; /* at one index of this dimension */
        if (bytes <= limit)
            break;
    }
    if (p->dimension == view->ndim && view->ndim > 0)
        p->dimension--;
    if (bytes && bytes <= limit)
        p->step = (ptrdiff_t)(limit / bytes);
}

/* Moves to the next piece, like an odometer: the cut dimension moves first. */
static void advance(struct pieces *p)
{
    p->at += p->step;
    if (p->view.ndim && p->at < p->view.shape[p->dimension])
        return;
    p->at = 0;
    for (uint32_t d = p->dimension; d-- > 0; p->index[d] = 0)
        if (++p->index[d] < p->view.shape[d])
            return;
    p->is_done = true;
}

int pieces_next(struct pieces *p, struct shmview_view *ret_piece)
{
    struct shmview_view v = p->view;
    int r = 0;
    if (p->is_done)
        return PIECES_END;
    for (uint32_t d = 0; r == 0 && d < p->dimension; d++)
        r = shmview_view_index(&v, 0, p->index[d], &v);
    if (r == 0 && v.ndim) {
        ptrdiff_t left = v.shape[0] - p->at, n = left < p->step ? left : p->step;
        r = shmview_view_slice(&v, 0, p->at, p->at + n, 1, &v);
    }
    if (r)
        return r;
    advance(p);
    *ret_piece = v;
    return PIECES_NEXT;
}
