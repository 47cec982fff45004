/* SPDX-License-Identifier: Apache-2.0 */
#include "split.h"

#include <shmview/error.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"
#include "text.h"
#include "verdict.h"

#define BLOCK_ALIGN 64u

/* The results of a description, on one rank. */
struct plan {
    struct split_map map;
    int place[SHMVIEW_MAX_NDIM];
    int64_t halo[SHMVIEW_MAX_NDIM];
    int64_t inner[SHMVIEW_MAX_NDIM], whole[SHMVIEW_MAX_NDIM]; /* shapes of this rank's block */
    uint32_t itemsize;
    uint64_t n_bytes; /* of this rank's block, rounded up */
    uint64_t hash;    /* of the description */
};

bool split_place(const struct split_map *map, int rank, int *ret_place)
{
    if (map->root >= 0) {
        memset(ret_place, 0, map->ndim * sizeof *ret_place);
        return rank == map->root;
    }
    for (uint32_t d = map->ndim; d-- > 0;) {
        const int n_places = map->axes[d].n_places;
        if (n_places < 1)
            return false;
        ret_place[d] = rank % n_places;
        rank /= n_places;
    }
    return true;
}

int64_t split_axis_length(const struct split_axis *axis, int place)
{
    int64_t n = axis->end - axis->begin, round = axis->block * axis->n_places;
    if (round <= 0)
        return 0;
    int64_t rest = n % round - place * axis->block;
    rest = rest < 0 ? 0 : rest > axis->block ? axis->block : rest;
    return n / round * axis->block + rest;
}

int64_t split_axis_global(const struct split_axis *axis, int place, int64_t i)
{
    return axis->begin + (i / axis->block * axis->n_places + place) * axis->block + i % axis->block;
}

int split_axis_owner(const struct split_axis *axis, int64_t global)
{
    if (global < axis->begin || global >= axis->end)
        return -1;
    return (int)((global - axis->begin) / axis->block % axis->n_places);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static enum shmview_mpi_distribution distribution_of(const struct shmview_mpi_split_spec *spec,
                                                     uint32_t d)
{
    return spec->distribution ? spec->distribution[d] : SHMVIEW_MPI_BLOCK;
}

/* Chooses the grid. */
static int plan_grid(int n_ranks, const struct shmview_mpi_split_spec *spec, int *ret_grid)
{
    int grid[SHMVIEW_MAX_NDIM] = {0}, n_free = 0;
    int64_t fixed = 1; /* at most n_ranks * n_ranks */
    for (uint32_t d = 0; d < spec->ndim; d++) {
        grid[d] = distribution_of(spec, d) == SHMVIEW_MPI_WHOLE ? 1
                  : spec->grid                                  ? spec->grid[d]
                                                                : 0;
        if (grid[d] < 0 || grid[d] > n_ranks)
            return text_fail(-SHMVIEW_ERR_INVALID, "%d processes in dimension %u of the grid",
                             grid[d], d);
        n_free += grid[d] == 0;
        if (grid[d] && fixed <= n_ranks)
            fixed *= grid[d];
    }
    if (n_ranks % fixed != 0 || (n_free == 0 && fixed != n_ranks))
        return text_fail(-SHMVIEW_ERR_INVALID, "%d ranks do not fill a grid of %lld processes",
                         n_ranks, (long long)fixed);
    int result = text_check(MPI_Dims_create(n_ranks, (int)spec->ndim, grid), "a grid");
    if (result == 0)
        memcpy(ret_grid, grid, sizeof grid);
    return result;
}

/* Plans one dimension. */
static int plan_axis(const struct shmview_mpi_split_spec *spec, uint32_t d, int n_places,
                     struct plan *plan)
{
    enum shmview_mpi_distribution distribution = distribution_of(spec, d);
    int64_t n = spec->shape[d], block = spec->block ? spec->block[d] : 0;
    int64_t halo = spec->halo ? spec->halo[d] : 0;
    if (n_places < 1 || n < 0 || block < 0 || halo < 0 || n > INT64_MAX / 4 ||
        block > INT64_MAX / 4 / n_places || halo > INT64_MAX / 4 ||
        (unsigned)distribution > SHMVIEW_MPI_WHOLE)
        return text_fail(-SHMVIEW_ERR_INVALID, "a length of dimension %u is wrong", d);
    if (block == 0)
        block = distribution == SHMVIEW_MPI_CYCLIC ? 1 : (n + n_places - 1) / n_places;
    if (block == 0)
        block = 1;
    if (distribution != SHMVIEW_MPI_CYCLIC && block * n_places < n)
        return text_fail(-SHMVIEW_ERR_INVALID,
                         "%d blocks of %lld elements do not hold the %lld of dimension %u",
                         n_places, (long long)block, (long long)n, d);
    struct split_axis axis = {.end = n, .block = block, .n_places = n_places};
    if (halo && distribution == SHMVIEW_MPI_CYCLIC)
        return text_fail(-SHMVIEW_ERR_INVALID, "dimension %u is cyclic and cannot have a halo", d);
    if (halo > split_axis_length(&axis, n_places - 1))
        return text_fail(-SHMVIEW_ERR_INVALID,
                         "dimension %u: a halo of %lld is wider than a block of %lld", d,
                         (long long)halo, (long long)split_axis_length(&axis, n_places - 1));
    plan->map.axes[d] = axis;
    plan->halo[d] = halo;
    plan->hash = mix(mix(mix(mix(plan->hash, (uint64_t)n), (uint64_t)block), (uint64_t)halo),
                     (uint64_t)n_places);
    return 0;
}

static int make_plan(const struct shmview_mpi_link *link, const struct shmview_mpi_split_spec *spec,
                     struct plan *plan)
{
    struct shmview_format format;
    int grid[SHMVIEW_MAX_NDIM] = {0};
    if (spec->ndim == 0 || spec->ndim > SHMVIEW_MAX_NDIM || !spec->shape || !spec->format)
        return text_fail(-SHMVIEW_ERR_INVALID,
                         "a split needs a format, a shape, and 1 to %d dimensions",
                         SHMVIEW_MAX_NDIM);
    int result = shmview_format_parse(spec->format, &format, NULL, 0);
    if (result < 0)
        return text_core(result, "a split");
    plan->map.root = -1;
    plan->map.ndim = spec->ndim;
    plan->itemsize = format.itemsize;
    /* Ranks without a node come together in node_split(), and those that have one do not. */
    plan->hash = mix(mix(spec->ndim, spec->periodic), spec->node != NULL);
    for (const char *c = format.text; *c; c++)
        plan->hash = mix(plan->hash, (unsigned char)*c);
    result = plan_grid(link->n, spec, grid);
    for (uint32_t d = 0; result == 0 && d < spec->ndim; d++)
        result = plan_axis(spec, d, grid[d], plan);
    if (result < 0)
        return result;
    split_place(&plan->map, link->me, plan->place);
    uint64_t n_bytes = plan->itemsize;
    bool overflows = false;
    for (uint32_t d = 0; d < spec->ndim; d++) {
        plan->inner[d] = split_axis_length(&plan->map.axes[d], plan->place[d]);
        plan->whole[d] = plan->inner[d] + 2 * plan->halo[d];
        overflows |= __builtin_mul_overflow(n_bytes, (uint64_t)plan->whole[d], &n_bytes);
    }
    if (overflows || n_bytes > INT64_MAX / 2)
        return text_fail(-SHMVIEW_ERR_OVERFLOW, "a block does not fit into 63 bits");
    plan->n_bytes = (n_bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    return 0;
}

/* Finds how many bytes the ranks of this node need, and those before this rank. Blocks only while
 * other ranks are on their way here, because all have agreed to come. */
static int share_node(struct shmview_mpi_link *link, const struct shmview_mpi_split_spec *spec,
                      uint64_t n_bytes, uint64_t *ret_before, uint64_t *ret_all)
{
    MPI_Comm node = MPI_COMM_NULL;
    int result, is_last = 0, rank = 0, n = 0;
    if (spec->node)
        result = text_check(MPI_Comm_dup(*spec->node, &node), "the ranks of a node");
    else
        result = node_split(link->forward, INT64_MAX, &node);
    if (result < 0)
        return result;
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &n);
    is_last = rank == n - 1;
    uint64_t to_here = 0, all = 0;
    result = text_check(MPI_Scan(&n_bytes, &to_here, 1, MPI_UINT64_T, MPI_SUM, node), "a split");
    all = is_last ? to_here : 0;
    if (result == 0)
        result = text_check(MPI_Bcast(&all, 1, MPI_UINT64_T, n - 1, node), "a split");
    MPI_Comm_free(&node);
    if (result == 0) {
        *ret_before = to_here - n_bytes;
        *ret_all = all;
    }
    return result;
}

/* Plans and agrees with the other ranks. */
static int agree_on_plan(struct shmview_mpi_link *link, const struct shmview_mpi_split_spec *spec,
                         int64_t deadline_ns, struct plan *ret_plan, uint64_t *ret_before,
                         uint64_t *ret_all)
{
    int result = make_plan(link, spec, ret_plan);
    result = verdict_of_link(link, result, result < 0 ? 0 : ret_plan->hash, "a split", deadline_ns);
    return result < 0 ? result : share_node(link, spec, ret_plan->n_bytes, ret_before, ret_all);
}

int shmview_mpi_split_bytes(struct shmview_mpi_link *link,
                            const struct shmview_mpi_split_spec *spec, int64_t deadline_ns,
                            uint64_t *ret_bytes)
{
    struct plan plan = {0};
    uint64_t before = 0, all = 0;
    int result = agree_on_plan(link, spec, deadline_ns, &plan, &before, &all);
    if (result == 0)
        *ret_bytes = all;
    return result;
}

/* Makes the two views of a block. */
static int make_views(struct shmview_mpi_blocks *split, const struct plan *plan, const char *format,
                      struct shmview_segment *segment, uint64_t offset)
{
    int64_t strides[SHMVIEW_MAX_NDIM] = {0};
    int result = shmview_fill_strides(plan->map.ndim, plan->whole, plan->itemsize, 'C', strides);
    struct shmview_view_spec spec = {.format = format,
                                     .offset = offset,
                                     .ndim = plan->map.ndim,
                                     .shape = plan->whole,
                                     .strides = strides};
    if (result == 0)
        result = shmview_view_make(segment, &spec, &split->whole);
    for (uint32_t d = 0; d < plan->map.ndim; d++)
        spec.offset += (uint64_t)(plan->halo[d] * strides[d]);
    spec.shape = plan->inner;
    if (result == 0)
        result = shmview_view_make(segment, &spec, &split->inner);
    if (result < 0)
        return text_core(result, "a block of a split");
    split->format = exchange_format(&split->inner);
    return 0;
}

/* Returns 0, an error, or 1 + this rank if it cannot write its halo. */
static int fill_split(struct shmview_mpi_blocks *split, const struct shmview_mpi_split_spec *spec,
                      const struct plan *plan, struct shmview_segment *segment, uint64_t offset)
{
    split->map = plan->map;
    split->periodic = spec->periodic;
    memcpy(split->place, plan->place, sizeof split->place);
    memcpy(split->halo, plan->halo, sizeof split->halo);
    int result = make_views(split, plan, spec->format, segment, offset);
    if (result == 0)
        result = split_make_halo(split);
    /* A split for reading has no exchange of halos. All ranks must know, for none may wait for the
     * edge of a rank that refuses. */
    if (result == 0 && split->n_halo_ends && split->whole.flags & SHMVIEW_VIEW_READ_ONLY)
        return split->link->me + 1;
    return result;
}

int shmview_mpi_split(struct shmview_mpi_link *link, const struct shmview_mpi_split_spec *spec,
                      struct shmview_segment *segment, uint64_t offset, int64_t deadline_ns,
                      struct shmview_mpi_blocks **ret_split)
{
    struct plan plan = {0};
    uint64_t before = 0, all = 0;
    int result = agree_on_plan(link, spec, deadline_ns, &plan, &before, &all);
    if (result < 0)
        return result;
    struct shmview_mpi_blocks *split = calloc(1, sizeof *split);
    if (split) {
        split->link = link;
        result = fill_split(split, spec, &plan, segment, offset + before);
    } else {
        result = text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a split");
    }
    result = verdict_of_link(link, result, 0, "a split", deadline_ns);
    if (result < 0 || !split) { /* without memory, result is an error */
        shmview_mpi_split_free(split);
        return result;
    }
    split->read_only = result;
    *ret_split = split;
    return 0;
}

int shmview_mpi_split_free(struct shmview_mpi_blocks *split)
{
    if (split)
        free(split->halo_ends);
    free(split);
    return 0;
}

int shmview_mpi_split_view(const struct shmview_mpi_blocks *split, struct shmview_view *ret_view)
{
    *ret_view = split->inner;
    return 0;
}

int shmview_mpi_split_whole(const struct shmview_mpi_blocks *split, struct shmview_view *ret_view)
{
    *ret_view = split->whole;
    return 0;
}

int shmview_mpi_split_global(const struct shmview_mpi_blocks *split, const int64_t *index,
                             int64_t *ret_index)
{
    for (uint32_t d = 0; d < split->map.ndim; d++)
        if (index[d] < 0 || index[d] >= split->inner.shape[d])
            return text_fail(-SHMVIEW_ERR_BOUNDS, "dimension %u: index %lld of a block of %lld", d,
                             (long long)index[d], (long long)split->inner.shape[d]);
    for (uint32_t d = 0; d < split->map.ndim; d++)
        ret_index[d] = split_axis_global(&split->map.axes[d], split->place[d], index[d]);
    return 0;
}

int shmview_mpi_split_grid(const struct shmview_mpi_blocks *split, int *ret_grid, int *ret_place)
{
    for (uint32_t d = 0; d < split->map.ndim; d++) {
        if (ret_grid)
            ret_grid[d] = split->map.axes[d].n_places;
        if (ret_place)
            ret_place[d] = split->place[d];
    }
    return 0;
}
