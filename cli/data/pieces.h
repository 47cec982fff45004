/* SPDX-License-Identifier: Apache-2.0 */
/* A view in pieces of a limited size, in C order: each is a view of elements that follow each other
 * in that order. */
#ifndef CLI_PIECES_H
#define CLI_PIECES_H

#include <stdbool.h>

#include <shmview/view.h>

struct pieces {
    struct shmview_view view;
    uint32_t dimension; /* that is cut; those before it are indexed */
    ptrdiff_t step;     /* its length in a piece */
    ptrdiff_t at;
    ptrdiff_t index[SHMVIEW_MAX_NDIM];
    bool is_done;
};

/* Pieces of at most limit bytes, but of one element at least. */
void pieces_begin(struct pieces *p, const struct shmview_view *view, uint64_t limit);

enum pieces_outcome {
    PIECES_END, /* there are no more */
    PIECES_NEXT,
};

/* Returns PIECES_NEXT with the next piece, PIECES_END without one, or what shmview_view_index()
 * returns. */
int pieces_next(struct pieces *p, struct shmview_view *ret_piece);

#endif
