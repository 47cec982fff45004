/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a view into pieces of a limited size.
 *
 * The elements of a piece follow each other in C order, and so do the pieces. Therefore load and
 * save can move a view of any size and any strides through a small buffer. A piece is itself a
 * view, so shmview_copy() gathers or converts its elements. */
#ifndef CLI_PIECES_H
#define CLI_PIECES_H

#include <stdbool.h>

#include <shmview/view.h>

/* The position in a view. It refers to the memory of the view, which must stay attached. */
struct pieces {
    struct shmview_view view;
    uint32_t dimension;                /* the one that is cut; all before it are indexed */
    ptrdiff_t step;                    /* its length in a piece; the last piece may be shorter */
    ptrdiff_t at;                      /* where the next piece begins in it */
    ptrdiff_t index[SHMVIEW_MAX_NDIM]; /* of the next piece, in the dimensions before */
    bool is_done;
};

/* Begins to cut view into pieces of at most limit bytes. An element that is larger than that makes
 * a piece of its own. */
void pieces_begin(struct pieces *p, const struct shmview_view *view, uint64_t limit);

enum pieces_outcome {
    PIECES_END, /* the last piece was returned before */
    PIECES_NEXT,
};

/* Returns PIECES_NEXT with the next piece, PIECES_END after the last one, or a negated
 * SHMVIEW_ERR_* from shmview_view_index() or shmview_view_slice(). */
int pieces_next(struct pieces *p, struct shmview_view *ret_piece);

#endif
