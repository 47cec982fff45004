/* SPDX-License-Identifier: Apache-2.0 */
/* A view divided along its longest dimension. */
#ifndef MPI_PIECE_H
#define MPI_PIECE_H

#include <shmview/view.h>
#include <stdint.h>

struct pieces {
    struct shmview_view view; /* as one dimension if the elements have no gaps */
    uint32_t dimension;
    int64_t length; /* along that dimension */
    int64_t n;      /* pieces, 0 if there is no element */
};

/* Divides a view into the most equal pieces of at most `bytes` each, as far as its longest
 * dimension allows. */
int pieces_of_bytes(const struct shmview_view *view, uint64_t bytes, struct pieces *ret);
/* Like pieces_of_bytes(), but never as one dimension, so that views of one shape are divided alike
 * whatever their strides are. */
int pieces_keep_shape(const struct shmview_view *view, uint64_t bytes, struct pieces *ret);
int piece_get(const struct pieces *pieces, int64_t i, struct shmview_view *ret);

#endif
