/* SPDX-License-Identifier: Apache-2.0 */
#include "bcast.h"

#include "collective.h"
#include "piece.h"
#include "text.h"

/* The pieces in which a long broadcast goes from node to node, so that all nodes send and receive
 * at the same time. */
#define CHAIN_BYTES (1u << 20)

/* In each step the nodes that have the elements send them to as many others. */
static int along_tree(struct shmview_mpi *job, const struct shmview_view *view, int root,
                      int64_t deadline_ns)
{
    const int n = job->n_nodes, me = (job->node_index - root + n) % n;
    int result = 0;
    for (int has = 1; has < n && result == 0; has *= 2) {
        if (me < has && me + has < n)
            result = transfer_send(job->link, view, (me + has + root) % n, deadline_ns);
        else if (me >= has && me < 2 * has)
            result = transfer_receive(job->link, view, (me - has + root) % n, deadline_ns);
    }
    return result;
}

/* In each step a node receives one piece, and sends the piece before it. */
static int along_chain(struct shmview_mpi *job, const struct shmview_view *view, int root,
                       bool keeps_shape, int64_t deadline_ns)
{
    const int n = job->n_nodes, me = (job->node_index - root + n) % n;
    struct pieces pieces;
    int result = keeps_shape ? pieces_keep_shape(view, CHAIN_BYTES, &pieces)
                             : pieces_of_bytes(view, CHAIN_BYTES, &pieces);
    for (int64_t i = 0; i <= pieces.n && result == 0; i++) {
        struct shmview_view in, out;
        struct transfer_part parts[2];
        size_t n_parts = 0;
        if (me > 0 && i < pieces.n) {
            result = piece_get(&pieces, i, &in);
            parts[n_parts++] = (struct transfer_part){&in, (job->node_index - 1 + n) % n, false};
        }
        if (result == 0 && me < n - 1 && i > 0) {
            result = piece_get(&pieces, i - 1, &out);
            parts[n_parts++] = (struct transfer_part){&out, (job->node_index + 1) % n, true};
        }
        if (result == 0 && n_parts)
            result = transfer_run(job->link, parts, n_parts, deadline_ns);
    }
    return result;
}

/* With p pieces and n nodes, the chain takes the time of p + n - 2 pieces, and the tree that of p
 * pieces for each of its steps. */
static bool chain_is_faster(uint64_t n_bytes, int n)
{
    const uint64_t pieces = (n_bytes + CHAIN_BYTES - 1) / CHAIN_BYTES;
    uint64_t steps = 0;
    for (int has = 1; has < n; has *= 2)
        steps++;
    return n > 2 && pieces + (uint64_t)n - 2 < steps * pieces;
}

int bcast_between_nodes(struct shmview_mpi *job, const struct shmview_view *view, int root,
                        bool keeps_shape, int64_t deadline_ns)
{
    if (chain_is_faster(view->nbytes, job->n_nodes))
        return along_chain(job, view, root, keeps_shape, deadline_ns);
    return along_tree(job, view, root, deadline_ns);
}

int shmview_mpi_bcast(struct shmview_mpi *job, const struct shmview_view *view, int root,
                      const char *phase)
{
    struct collective c = {.name = "bcast", .root = root, .phase = phase, .shares_to = true};
    const int node = shmview_mpi_node(job, root);
    int status = collective_check_view(job, view, "the view", node != job->node_index);
    /* The root's node switches its phase too, so that the nodes are in the same one. */
    c.receives = true;
    if (status == 0) {
        c.to = c.block = view;
        if (node < 0)
            c.root = job->n_ranks;
    }
    int result = collective_begin(job, &c, status);
    if (result < 0)
        return result;
    if (job->member == 0)
        result = bcast_between_nodes(job, view, node, c.keeps_shape, c.deadline_ns);
    return collective_end(job, &c, result);
}
