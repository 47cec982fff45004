/* SPDX-License-Identifier: Apache-2.0 */
#include "combine.h"

#include <stdlib.h>
#include <string.h>

#include "bcast.h"
#include "collective.h"
#include "piece.h"
#include "text.h"

/* Bytes of a tile: two of them stay in the second-level cache while the contributions are added. */
#define TILE_BYTES (64u << 10)
/* Bytes that travel at a time between two nodes, small enough to be combined out of the cache. */
#define PIECE_BYTES (2048u << 10)
/* Smaller pieces take as long as these, because of the latency. */
#define LEAST_PIECE_BYTES (4u << 10)

/* Two buffers for elements as the operation works on them, and their segments. */
struct tiles {
    struct shmview_segment *segments[2];
    char *bytes[2];
};

static int tiles_init(struct tiles *ret, uint64_t bytes)
{
    struct tiles tiles = {0};
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++) {
        tiles.bytes[i] = aligned_alloc(64, (bytes + 63) / 64 * 64);
        if (!tiles.bytes[i])
            result = text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a tile");
        else if (shmview_wrap(tiles.bytes[i], bytes, 0, NULL, NULL, &tiles.segments[i]) < 0)
            result = text_core(-SHMVIEW_ERR_NO_MEMORY, "a tile");
    }
    *ret = tiles;
    return result;
}

static void tiles_deinit(struct tiles *tiles)
{
    for (int i = 0; i < 2; i++) {
        shmview_detach(tiles->segments[i]);
        free(tiles->bytes[i]);
    }
}

/* Tile i as a view of the shape of `like`. */
static int tile_view(const struct tiles *tiles, int i, const struct operation *operation,
                     const struct shmview_view *like, struct shmview_view *ret)
{
    int64_t shape[SHMVIEW_MAX_NDIM] = {0};
    for (uint32_t d = 0; d < like->ndim; d++)
        shape[d] = like->shape[d];
    const struct shmview_view_spec spec = {
        .format = operation->format, .ndim = like->ndim, .shape = shape};
    int result = shmview_view_make(tiles->segments[i], &spec, ret);
    return result < 0 ? text_core(result, "a tile") : 0;
}

/* The elements of a view as the operation works on them: where they are, or copied into tile i. */
static int load(const struct tiles *tiles, int i, const struct operation *operation,
                const struct shmview_view *view, const void **ret)
{
    struct shmview_view tile;
    if (view->flags == 0 && shmview_view_is_contiguous(view, 'C') &&
        strcmp(view->format, operation->format) == 0) {
        *ret = view->data;
        return 0;
    }
    int result = tile_view(tiles, i, operation, view, &tile);
    if (result == 0 && (result = shmview_copy(&tile, view)) < 0)
        text_core(result, "the elements of a contribution");
    *ret = tiles->bytes[i];
    return result;
}

static int store(const struct tiles *tiles, int i, const struct operation *operation,
                 const struct shmview_view *view)
{
    struct shmview_view tile;
    int result = tile_view(tiles, i, operation, view, &tile);
    if (result == 0 && (result = shmview_copy(view, &tile)) < 0)
        text_core(result, "the elements of a result");
    return result;
}

/* Bytes of a tile that holds any piece of a view in both forms. */
static uint64_t bytes_of_piece(const struct pieces *pieces, const struct operation *operation)
{
    const int64_t longest = pieces->length / pieces->n + (pieces->length % pieces->n != 0);
    const uint64_t rest = pieces->view.nbytes / pieces->view.itemsize / (uint64_t)pieces->length;
    return (uint64_t)longest * rest * operation->itemsize;
}

/* One tile of all members: the last contribution, and then each one before it, in the order of the
 * ranks. The result is stored after all have been read, because it may lie in one of them. */
static int combine_tile(struct shmview_mpi *job, const struct operation *operation,
                        const struct tiles *tiles, const struct pieces *from,
                        const struct pieces *to, int64_t i)
{
    struct shmview_view piece;
    const void *bytes = NULL;
    int result = piece_get(&from[job->n_members - 1], i, &piece);
    const uint64_t n = result == 0 ? piece.nbytes / piece.itemsize : 0;
    if (result == 0)
        result = load(tiles, 0, operation, &piece, &bytes);
    if (result == 0 && bytes != tiles->bytes[0])
        memcpy(tiles->bytes[0], bytes, n * operation->itemsize);
    for (int member = job->n_members - 2; member >= 0 && result == 0; member--) {
        result = piece_get(&from[member], i, &piece);
        if (result == 0)
            result = load(tiles, 1, operation, &piece, &bytes);
        if (result == 0)
            result = operation_apply(operation, bytes, tiles->bytes[0], n);
    }
    if (result == 0)
        result = piece_get(to, i, &piece);
    return result == 0 ? store(tiles, 0, operation, &piece) : result;
}

/* Divides all views alike: each may only become one dimension if all can. */
static int divide(struct shmview_mpi *job, const struct shmview_view *to, struct pieces *from,
                  struct pieces *ret_to)
{
    /* One slice for each member, of which this member's is divided into tiles. */
    int result = pieces_of_bytes(to, TILE_BYTES, ret_to);
    int is_flat = result == 0 && ret_to->view.ndim != to->ndim;
    for (int i = 0; i < job->n_members && result == 0; i++) {
        struct shmview_view view;
        result = collective_from(job, i, &view);
        if (result == 0)
            result = pieces_of_bytes(&view, TILE_BYTES, &from[i]);
        if (result == 0 && (from[i].view.ndim != view.ndim) != is_flat)
            is_flat = -1;
    }
    if (is_flat >= 0 || result < 0)
        return result;
    for (int i = -1; i < job->n_members && result == 0; i++) {
        struct pieces *pieces = i < 0 ? ret_to : &from[i];
        struct shmview_view view = *to;
        if (i >= 0)
            result = collective_from(job, i, &view);
        if (result == 0)
            result = pieces_keep_shape(&view, TILE_BYTES, pieces);
    }
    return result;
}

int combine_slice(struct shmview_mpi *job, const struct operation *operation,
                  const struct shmview_view *to)
{
    struct pieces divided, *from = calloc((size_t)job->n_members, sizeof *from);
    struct tiles tiles = {0};
    if (!from)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a reduction");
    int result = divide(job, to, from, &divided);
    if (result == 0 && divided.n) {
        result = tiles_init(&tiles, bytes_of_piece(&divided, operation));
        const int64_t n = divided.n, each = n / job->n_members, more = n % job->n_members;
        const int64_t begin = job->member * each + (job->member < more ? job->member : more);
        const int64_t end = begin + each + (job->member < more);
        for (int64_t i = begin; i < end && result == 0; i++)
            result = combine_tile(job, operation, &tiles, from, &divided, i);
    }
    tiles_deinit(&tiles);
    free(from);
    return result;
}

/* --- Between the nodes --------------------------------------------------- */

/* Piece i of the results, which is sent and received in the format of the view. */
struct trade {
    struct shmview_mpi *job;
    const struct operation *operation;
    struct pieces pieces;
    struct tiles tiles;
    struct shmview_segment *inbox;
    char *inbox_bytes;
    bool keeps_shape;
    int64_t deadline_ns;
};

/* The inbox as a view like piece. */
static int inbox_view(const struct trade *trade, const struct shmview_view *piece,
                      struct shmview_view *ret)
{
    int64_t shape[SHMVIEW_MAX_NDIM] = {0};
    for (uint32_t d = 0; d < piece->ndim; d++)
        shape[d] = piece->shape[d];
    const struct shmview_view_spec spec = {
        .format = piece->format, .ndim = piece->ndim, .shape = shape};
    int result = shmview_view_make(trade->inbox, &spec, ret);
    return result < 0 ? text_core(result, "a piece from another node") : 0;
}

/* Combines a piece with what is in the inbox, which comes before it in the order of the ranks if
 * is_before is set. */
static int absorb(const struct trade *trade, const struct shmview_view *piece, bool is_before)
{
    const struct operation *operation = trade->operation;
    struct shmview_view inbox;
    const void *theirs = NULL, *mine = NULL;
    const uint64_t n = piece->nbytes / piece->itemsize;
    int result = inbox_view(trade, piece, &inbox);
    if (result == 0)
        result = load(&trade->tiles, 1, operation, &inbox, &theirs);
    if (result == 0)
        result = load(&trade->tiles, 0, operation, piece, &mine);
    if (result < 0 || !mine || !theirs)
        return result;
    if (is_before && mine == piece->data)
        return operation_apply(operation, theirs, piece->data, n);
    if (is_before) {
        result = operation_apply(operation, theirs, trade->tiles.bytes[0], n);
        return result == 0 ? store(&trade->tiles, 0, operation, piece) : result;
    }
    if (theirs != trade->tiles.bytes[1])
        memcpy(trade->tiles.bytes[1], theirs, n * operation->itemsize);
    result = operation_apply(operation, mine, trade->tiles.bytes[1], n);
    return result == 0 ? store(&trade->tiles, 1, operation, piece) : result;
}

/* Each node combines a part of the pieces for all: in step s, a node sends the part that is s nodes
 * before it to the next one, and combines the one that it receives with its own. After n - 1 steps
 * it has the result of part `node + 1`. The operation commutes. */
static int reduce_ring(struct trade *trade)
{
    struct shmview_mpi *job = trade->job;
    const int n = job->n_nodes, next = (job->node_index + 1) % n;
    const int previous = (job->node_index + n - 1) % n;
    const int64_t all = trade->pieces.n, rounds = all / n + (all % n != 0);
    int result = 0;
    for (int64_t round = 0; round < rounds; round++)
        for (int step = 0; step < n - 1 && result == 0; step++) {
            const int64_t out = round * n + (job->node_index - step + n) % n;
            const int64_t in = round * n + (job->node_index - step - 1 + 2 * n) % n;
            struct shmview_view sent, mine, inbox;
            struct transfer_part parts[2];
            size_t n_parts = 0;
            if (out < all && (result = piece_get(&trade->pieces, out, &sent)) == 0)
                parts[n_parts++] = (struct transfer_part){&sent, next, true};
            if (result == 0 && in < all && (result = piece_get(&trade->pieces, in, &mine)) == 0 &&
                (result = inbox_view(trade, &mine, &inbox)) == 0)
                parts[n_parts++] = (struct transfer_part){&inbox, previous, false};
            if (result == 0 && n_parts)
                result = transfer_run(job->link, parts, n_parts, trade->deadline_ns);
            if (result == 0 && in < all)
                result = absorb(trade, &mine, true);
        }
    return result;
}

/* The node that has the result of a piece after reduce_ring(). */
static int owner_of(const struct trade *trade, int64_t piece)
{
    const int n = trade->job->n_nodes;
    return ((int)(piece % n) + n - 1) % n;
}

/* The ends of this node for one result, which its owner sends to all nodes, or to root. */
static size_t ends_of(const struct trade *trade, int64_t piece, const struct shmview_view *view,
                      int root, struct transfer_part *ret_parts)
{
    const struct shmview_mpi *job = trade->job;
    const int owner = owner_of(trade, piece);
    size_t n = 0;
    if (owner != job->node_index && (root < 0 || root == job->node_index))
        ret_parts[n++] = (struct transfer_part){view, owner, false};
    for (int k = 0; owner == job->node_index && k < job->n_nodes; k++)
        if (k != owner && (root < 0 || root == k))
            ret_parts[n++] = (struct transfer_part){view, k, true};
    return n;
}

/* Brings the results from their owners to all nodes, or to root. */
static int spread_ring(struct trade *trade, int root)
{
    const int64_t n_nodes = trade->job->n_nodes, all = trade->pieces.n;
    struct shmview_view *views = calloc((size_t)n_nodes, sizeof *views);
    struct transfer_part *parts = calloc(2 * (size_t)n_nodes, sizeof *parts);
    int result = 0;
    if (!views || !parts) {
        free(views);
        free(parts);
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a reduction");
    }
    for (int64_t begin = 0; begin < all && result == 0; begin += n_nodes) {
        size_t n_parts = 0;
        for (int64_t i = begin; i < all && i < begin + n_nodes && result == 0; i++) {
            result = piece_get(&trade->pieces, i, &views[i - begin]);
            if (result == 0)
                n_parts += ends_of(trade, i, &views[i - begin], root, parts + n_parts);
        }
        if (result == 0 && n_parts)
            result = transfer_run(trade->job->link, parts, n_parts, trade->deadline_ns);
    }
    free(views);
    free(parts);
    return result;
}

/* In the order of the nodes, for an operation that does not commute: the last node sends to the one
 * before it, which combines and sends on, and so forth. Node 0 has the result. */
static int reduce_line(struct trade *trade)
{
    struct shmview_mpi *job = trade->job;
    int result = 0;
    for (int64_t i = 0; i < trade->pieces.n && result == 0; i++) {
        struct shmview_view piece, inbox;
        result = piece_get(&trade->pieces, i, &piece);
        if (result == 0 && job->node_index < job->n_nodes - 1) {
            result = inbox_view(trade, &piece, &inbox);
            if (result == 0)
                result =
                    transfer_receive(job->link, &inbox, job->node_index + 1, trade->deadline_ns);
            if (result == 0)
                result = absorb(trade, &piece, false);
        }
        if (result == 0 && job->node_index > 0)
            result = transfer_send(job->link, &piece, job->node_index - 1, trade->deadline_ns);
    }
    return result;
}

static int spread_line(struct trade *trade, const struct shmview_view *to, int root)
{
    struct shmview_mpi *job = trade->job;
    if (root < 0)
        return bcast_between_nodes(job, to, 0, trade->keeps_shape, trade->deadline_ns);
    if (root == 0)
        return 0;
    if (job->node_index == 0)
        return transfer_send(job->link, to, root, trade->deadline_ns);
    return job->node_index == root ? transfer_receive(job->link, to, 0, trade->deadline_ns) : 0;
}

/* A piece for each node, if they are not too small, so that all nodes send, receive and combine at
 * the same time. */
static uint64_t choose_piece(uint64_t n_bytes, int n_nodes)
{
    const uint64_t each = (n_bytes + (uint64_t)n_nodes - 1) / (uint64_t)n_nodes;
    if (each > PIECE_BYTES)
        return PIECE_BYTES;
    return each < LEAST_PIECE_BYTES ? LEAST_PIECE_BYTES : each;
}

int combine_nodes(struct shmview_mpi *job, const struct operation *operation,
                  const struct shmview_view *to, int root, bool keeps_shape, int64_t deadline_ns)
{
    struct trade trade = {
        .job = job, .operation = operation, .keeps_shape = keeps_shape, .deadline_ns = deadline_ns};
    if (job->n_nodes == 1)
        return 0;
    const uint64_t piece_bytes =
        operation->commutes ? choose_piece(to->nbytes, job->n_nodes) : PIECE_BYTES;
    int result = keeps_shape ? pieces_keep_shape(to, piece_bytes, &trade.pieces)
                             : pieces_of_bytes(to, piece_bytes, &trade.pieces);
    if (result < 0 || trade.pieces.n == 0)
        return result;
    const uint64_t bytes = bytes_of_piece(&trade.pieces, operation);
    result = tiles_init(&trade.tiles, bytes);
    trade.inbox_bytes = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (result == 0 && (!trade.inbox_bytes ||
                        shmview_wrap(trade.inbox_bytes, bytes, 0, NULL, NULL, &trade.inbox) < 0))
        result = text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a piece from another node");
    if (result == 0 && operation->commutes) {
        result = reduce_ring(&trade);
        if (result == 0)
            result = spread_ring(&trade, root);
    } else if (result == 0) {
        result = reduce_line(&trade);
        if (result == 0)
            result = spread_line(&trade, to, root);
    }
    tiles_deinit(&trade.tiles);
    shmview_detach(trade.inbox);
    /* After a failure MPI may still write into it. */
    if (result == 0)
        free(trade.inbox_bytes);
    return result;
}
