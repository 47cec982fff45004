/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank has which elements of a global array, and where. */
#ifndef MPI_SPLIT_H
#define MPI_SPLIT_H

#include <shmview/mpi_split.h>
#include <shmview/view.h>
#include <stdbool.h>

#include "exchange.h"
#include "link.h"

/* One dimension: the indices from begin to end, in blocks of block elements, which n_places places
 * take by turns. */
struct split_axis {
    int64_t begin, end;
    int64_t block;
    int n_places;
};

/* An array over the ranks of a link: ranks count the places with the last axis fastest. If root is
 * 0 or more, that rank has the only place. */
struct split_map {
    uint32_t ndim;
    int root;
    struct split_axis axes[SHMVIEW_MAX_NDIM];
};

struct shmview_mpi_blocks {
    struct shmview_mpi_link *link;
    struct split_map map;
    int place[SHMVIEW_MAX_NDIM]; /* of this rank */
    int64_t halo[SHMVIEW_MAX_NDIM];
    uint32_t periodic;
    struct shmview_view whole, inner;
    int read_only;   /* 1 + a rank that cannot write the halo of its block, on all ranks; or 0 */
    uint64_t format; /* exchange_format() */
    struct exchange_end *halo_ends;
    size_t n_halo_ends;
};

/* Sets the place of a rank. Returns whether it has one. */
bool split_place(const struct split_map *map, int rank, int *ret_place);

/* How many elements a place of an axis has. */
int64_t split_axis_length(const struct split_axis *axis, int place);

/* The global index of element i of a place; and the place of a global index, -1 if it is outside.
 */
int64_t split_axis_global(const struct split_axis *axis, int place, int64_t i);
int split_axis_owner(const struct split_axis *axis, int64_t global);

/* Moves the elements that both maps have, from the views of one to those of the other; each view is
 * that of this rank's place, and is not read where there is none. */
int split_move(struct shmview_mpi_link *link, const struct split_map *from,
               const struct shmview_view *from_view, const struct split_map *to,
               const struct shmview_view *to_view, uint64_t format, int64_t deadline_ns);

/* Makes the map of an array that rank root has as a whole. */
void split_on_root(const struct split_map *map, int root, struct split_map *ret_map);

/* Makes the ends of the halo exchange. */
int split_make_halo(struct shmview_mpi_blocks *split);

#endif
