/* SPDX-License-Identifier: Apache-2.0 */
/* Elements from one split of an array to another: each rank sends to each other one the elements
 * that it has in the one split and the other rank in the other, in one message. */
#include <shmview/error.h>
#include <stdlib.h>
#include <string.h>

#include "split.h"
#include "text.h"
#include "verdict.h"

/* The ends of this rank, and the tables of places that they use. */
struct move {
    struct exchange_end *ends;
    size_t n_ends;
    int64_t **tables;
    size_t n_tables;
};

/* The first element of place here on axis that has a global index of at least global. */
static int64_t first_from(const struct split_axis *axis, int here, int64_t global)
{
    int64_t low = 0, high = split_axis_length(axis, here);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (split_axis_global(axis, here, middle) < global)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Fills a loop over those elements of place here on axis that are at place there on other. They are
 * often equally far apart; else the loop gets a table. ret_first is where the first one is, in
 * bytes. */
static int loop_of_common(const struct split_axis *axis, int here, const struct split_axis *other,
                          int there, int64_t stride, struct move *move,
                          struct layout_loop *ret_loop, int64_t *ret_first)
{
    /* Without the elements outside the other axis, which may be a small part of this one. */
    const int64_t begin = first_from(axis, here, other->begin);
    const int64_t end = first_from(axis, here, other->end);
    int64_t n_common = 0, last = 0, step = 0, first = 0;
    int64_t *table = NULL;
    for (int turn = 0; turn < 2; turn++) {
        bool is_even = true;
        n_common = 0;
        for (int64_t i = begin; i < end; i++) {
            if (split_axis_owner(other, split_axis_global(axis, here, i)) != there)
                continue;
            if (n_common == 0)
                first = i;
            else if (n_common == 1)
                step = i - last;
            else if (i - last != step)
                is_even = false;
            if (table)
                table[n_common] = i * stride;
            last = i;
            n_common++;
        }
        if (is_even)
            break;
        if (!table) {
            table = calloc((size_t)n_common, sizeof *table);
            if (!table)
                return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for the places of a split");
            move->tables[move->n_tables++] = table;
        }
    }
    *ret_first = table ? 0 : first * stride;
    *ret_loop = (struct layout_loop){.n = n_common, .stride = step * stride, .at = table};
    return 0;
}

/* Adds the end of what this rank has in map and another rank in other, unless that is nothing. */
static int add_end(struct shmview_mpi_link *link, const struct split_map *map,
                   const struct shmview_view *view, const struct split_map *other, int rank,
                   bool send, uint64_t format, struct move *move)
{
    int here[SHMVIEW_MAX_NDIM] = {0}, there[SHMVIEW_MAX_NDIM] = {0};
    if (!split_place(map, link->me, here) || !split_place(other, rank, there))
        return 0;
    struct layout_loop loops[SHMVIEW_MAX_NDIM] = {0};
    struct exchange_end *end = &move->ends[move->n_ends];
    *end = (struct exchange_end){.rank = rank, .send = send};
    unsigned char *data = view->data;
    for (uint32_t d = 0; d < map->ndim; d++) {
        int64_t first = 0;
        int result = loop_of_common(&map->axes[d], here[d], &other->axes[d], there[d],
                                    view->strides[d], move, &loops[d], &first);
        if (result < 0)
            return result;
        if (loops[d].n == 0)
            return 0;
        data += first;
        end->shape.shape[d] = loops[d].n;
    }
    end->shape.ndim = map->ndim;
    end->shape.itemsize = view->itemsize;
    end->shape.format = format;
    layout_of_loops(data, view->itemsize, map->ndim, loops, &end->layout);
    move->n_ends++;
    return 0;
}

int split_move(struct shmview_mpi_link *link, const struct split_map *from,
               const struct shmview_view *from_view, const struct split_map *to,
               const struct shmview_view *to_view, uint64_t format, int64_t deadline_ns)
{
    size_t n = (size_t)link->n;
    struct move move = {.ends = calloc(2 * n, sizeof *move.ends),
                        .tables = calloc(2 * n * SHMVIEW_MAX_NDIM, sizeof *move.tables)};
    int result = 0;
    if (!move.ends || !move.tables) {
        free(move.tables);
        free(move.ends);
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory to move a split");
    }
    /* Not all begin with the same rank. */
    for (int i = 0; result == 0 && i < link->n; i++)
        result = add_end(link, from, from_view, to, (link->me + i) % link->n, true, format, &move);
    for (int i = 0; result == 0 && i < link->n; i++)
        result = add_end(link, to, to_view, from, (link->me + i) % link->n, false, format, &move);
    if (result == 0)
        result = exchange_run(link, move.ends, move.n_ends, deadline_ns);
    for (size_t i = 0; i < move.n_tables; i++)
        free(move.tables[i]);
    free(move.tables);
    free(move.ends);
    return result;
}

static bool shapes_equal(const struct split_map *a, const struct split_map *b)
{
    bool equal = a->ndim == b->ndim;
    for (uint32_t d = 0; equal && d < a->ndim; d++)
        equal = a->axes[d].end == b->axes[d].end;
    return equal;
}

int shmview_mpi_split_copy(const struct shmview_mpi_blocks *to,
                           const struct shmview_mpi_blocks *from, int64_t deadline_ns)
{
    int result = 0;
    if (to->link != from->link)
        return text_fail(-SHMVIEW_ERR_INVALID, "the two splits are of different links");
    if (to->format != from->format || to->inner.itemsize != from->inner.itemsize ||
        !shapes_equal(&to->map, &from->map))
        result = text_fail(-SHMVIEW_ERR_CONVERSION, "the two splits differ in shape or type");
    else if (to->inner.flags & SHMVIEW_VIEW_READ_ONLY)
        result = text_fail(-SHMVIEW_ERR_READ_ONLY, "the block to copy to is read-only");
    result = verdict_of_link(from->link, result, 0, "a copy of a split", deadline_ns);
    if (result < 0)
        return result;
    return split_move(from->link, &from->map, &from->inner, &to->map, &to->inner, from->format,
                      deadline_ns);
}

void split_on_root(const struct split_map *map, int root, struct split_map *ret_map)
{
    struct split_map whole = {.ndim = map->ndim, .root = root};
    for (uint32_t d = 0; d < map->ndim; d++) {
        int64_t n = map->axes[d].end;
        whole.axes[d] = (struct split_axis){.end = n, .block = n ? n : 1, .n_places = 1};
    }
    *ret_map = whole;
}

/* Checks the view of the root. */
static int check_root_view(const struct shmview_mpi_blocks *split, const struct shmview_view *view)
{
    if (!view)
        return text_fail(-SHMVIEW_ERR_INVALID, "there is no view to gather into");
    bool fits = exchange_format(view) == split->format && view->ndim == split->map.ndim &&
                view->itemsize == split->inner.itemsize;
    for (uint32_t d = 0; fits && d < view->ndim; d++)
        fits = view->shape[d] == split->map.axes[d].end;
    if (!fits)
        return text_fail(-SHMVIEW_ERR_CONVERSION, "the view has not shape and type of the split");
    if (view->flags & SHMVIEW_VIEW_READ_ONLY)
        return text_fail(-SHMVIEW_ERR_READ_ONLY, "the view to gather into is read-only");
    if (view->flags & SHMVIEW_VIEW_INDIRECT)
        return text_fail(-SHMVIEW_ERR_CONTIGUOUS, "the view to gather into has suboffsets");
    return 0;
}

int shmview_mpi_split_gather(const struct shmview_mpi_blocks *split, int root,
                             const struct shmview_view *view, int64_t deadline_ns)
{
    struct shmview_mpi_link *link = split->link;
    int result = 0;
    if (root < 0 || root >= link->n)
        result = text_fail(-SHMVIEW_ERR_INVALID, "there is no rank %d among %d", root, link->n);
    else if (root == link->me)
        result = check_root_view(split, view);
    result = verdict_of_link(link, result, (uint64_t)root, "a gather", deadline_ns);
    if (result < 0)
        return result;
    struct split_map whole;
    split_on_root(&split->map, root, &whole);
    return split_move(link, &split->map, &split->inner, &whole, view, split->format, deadline_ns);
}
