/* SPDX-License-Identifier: Apache-2.0 */
/* Halos: each block sends its edges to the blocks beside it, in every direction that has a halo. A
 * direction is -1, 0 or 1 in each dimension. Every rank goes through the directions in the same
 * order, sends that way and receives what comes from the opposite side; so messages between two
 * ranks that are neighbours in several directions meet in order. */
#include <shmview/error.h>
#include <stdlib.h>

#include "split.h"
#include "text.h"

/* Goes to the next direction; returns false after the last one. */
static bool next_direction(const struct shmview_mpi_blocks *split, int *direction)
{
    for (uint32_t d = split->map.ndim; d-- > 0;) {
        if (split->halo[d] == 0)
            continue;
        if (++direction[d] <= 1)
            return true;
        direction[d] = -1;
    }
    return false;
}

/* Finds the rank in a direction, times sign. Returns false if there is none or no direction. */
static bool find_neighbour(const struct shmview_mpi_blocks *split, const int *direction, int sign,
                           int *ret_rank)
{
    int rank = 0;
    bool is_any = false;
    for (uint32_t d = 0; d < split->map.ndim; d++) {
        int n = split->map.axes[d].n_places, place = split->place[d] + sign * direction[d];
        is_any = is_any || direction[d];
        if ((place < 0 || place >= n) && !(split->periodic >> d & 1))
            return false;
        rank = rank * n + (place + n) % n;
    }
    *ret_rank = rank;
    return is_any;
}

/* The end of the edge in a direction, or of the halo on the opposite side. */
static void make_end(const struct shmview_mpi_blocks *split, const int *direction, int rank,
                     bool send, struct exchange_end *ret_end)
{
    const struct shmview_view *view = &split->whole;
    struct layout_loop loops[SHMVIEW_MAX_NDIM] = {0};
    struct exchange_end end = {.rank = rank, .send = send};
    unsigned char *data = view->data;
    for (uint32_t d = 0; d < view->ndim; d++) {
        int64_t width = split->halo[d], n = split->inner.shape[d], first = width;
        if (send && direction[d] > 0)
            first = n;
        else if (!send && direction[d] < 0)
            first = width + n;
        else if (!send && direction[d] > 0)
            first = 0;
        end.shape.shape[d] = direction[d] ? width : n;
        loops[d] = (struct layout_loop){.n = end.shape.shape[d], .stride = view->strides[d]};
        data += first * view->strides[d];
    }
    end.shape.ndim = view->ndim;
    end.shape.itemsize = view->itemsize;
    end.shape.format = split->format;
    layout_of_loops(data, view->itemsize, view->ndim, loops, &end.layout);
    *ret_end = end;
}

int split_make_halo(struct shmview_mpi_blocks *split)
{
    size_t n = 1;
    int direction[SHMVIEW_MAX_NDIM] = {0}, rank = 0;
    for (uint32_t d = 0; d < split->map.ndim; d++) {
        n *= split->halo[d] ? 3 : 1;
        direction[d] = split->halo[d] ? -1 : 0;
    }
    split->halo_ends = calloc(2 * n, sizeof *split->halo_ends);
    if (!split->halo_ends)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a halo");
    do {
        if (find_neighbour(split, direction, 1, &rank))
            make_end(split, direction, rank, true, &split->halo_ends[split->n_halo_ends++]);
        if (find_neighbour(split, direction, -1, &rank))
            make_end(split, direction, rank, false, &split->halo_ends[split->n_halo_ends++]);
    } while (next_direction(split, direction));
    return 0;
}

int shmview_mpi_halo(struct shmview_mpi_blocks *split, int64_t deadline_ns)
{
    if (split->read_only)
        return text_fail(-SHMVIEW_ERR_READ_ONLY, "rank %d: the block with the halo is read-only",
                         split->read_only - 1);
    return exchange_run(split->link, split->halo_ends, split->n_halo_ends, deadline_ns);
}
