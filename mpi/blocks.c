/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter, gather, allgather and alltoall: blocks of views from rank to rank. Within a node each
 * rank copies its own blocks; between the nodes the leaders do, from and to the views of all. */
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "text.h"

/* The transfers of one leader. */
struct work {
    struct shmview_view *views;
    struct transfer_part *parts;
    size_t n, room;
};

static int make_room(struct work *work, size_t room)
{
    work->views = calloc(room ? room : 1, sizeof *work->views);
    work->parts = calloc(room ? room : 1, sizeof *work->parts);
    work->room = room;
    if (work->views && work->parts)
        return 0;
    return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for %zu blocks", room);
}

static void add(struct work *work, const struct shmview_view *view, int node, bool send)
{
    work->views[work->n] = *view;
    work->parts[work->n] = (struct transfer_part){&work->views[work->n], node, send};
    work->n++;
}

static int run(struct shmview_mpi *job, struct work *work, int result, int64_t deadline_ns)
{
    if (result == 0 && work->n)
        result = transfer_run(job->link, work->parts, work->n, deadline_ns);
    free(work->views);
    free(work->parts);
    return result;
}

static int copy(const struct shmview_view *to, const struct shmview_view *from)
{
    int result = shmview_copy(to, from);
    return result < 0 ? text_core(result, "a block") : 0;
}

/* Whether two blocks have the same shape and format. */
static bool is_alike(const struct shmview_view *a, const struct shmview_view *b)
{
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, a->ndim * sizeof a->shape[0]) == 0 &&
           strcmp(a->format, b->format) == 0;
}

/* The member of its node that a rank is. */
static int member_of(const struct shmview_mpi *job, int rank)
{
    const int *ranks = job_ranks(job, job->node_of[rank]);
    int i = 0;
    while (ranks[i] != rank)
        i++;
    return i;
}

/* Adds the blocks of the ranks of `node` of a large view. */
static int add_blocks(struct shmview_mpi *job, struct work *work, const struct shmview_view *large,
                      int node, int peer, bool send)
{
    int result = 0;
    for (int i = 0; i < job_n_members(job, node) && result == 0; i++) {
        struct shmview_view block;
        result = collective_block(job, large, job_ranks(job, node)[i], &block);
        if (result == 0)
            add(work, &block, peer, send);
    }
    return result;
}

/* Adds the views that the members of this node passed as from or to. */
static int add_members(struct shmview_mpi *job, struct work *work, int peer, bool send)
{
    int result = 0;
    for (int i = 0; i < job->n_members && result == 0; i++) {
        struct shmview_view view;
        result = send ? collective_from(job, i, &view) : collective_to(job, i, &view);
        if (result == 0)
            add(work, &view, peer, send);
    }
    return result;
}

/* The leaders' part of scatter and gather. large is the view of root, on its node. */
static int exchange_rooted(struct shmview_mpi *job, const struct collective *c, int node,
                           const struct shmview_view *large, bool is_scatter)
{
    struct work work = {0};
    int result = make_room(&work, (size_t)job->n_ranks);
    if (job->node_index != node && result == 0)
        result = add_members(job, &work, node, !is_scatter);
    for (int i = 0; job->node_index == node && i < job->n_nodes && result == 0; i++)
        if (i != node)
            result = add_blocks(job, &work, large, i, i, is_scatter);
    return run(job, &work, result, c->deadline_ns);
}

static int rooted(struct shmview_mpi *job, const struct shmview_view *from,
                  const struct shmview_view *to, int root, const char *phase, bool is_scatter)
{
    const int node = shmview_mpi_node(job, root);
    const bool is_here = node == job->node_index, is_root = root == job->rank;
    struct collective c = {.name = is_scatter ? "scatter" : "gather",
                           .root = node < 0 ? job->n_ranks : root,
                           .phase = phase,
                           .from = is_scatter && !is_root ? NULL : from,
                           .to = !is_scatter && !is_root ? NULL : to,
                           .block = is_scatter ? to : from,
                           .receives = is_scatter || is_here};
    struct shmview_view large, block;
    int status = 0;
    if (!is_scatter || is_root)
        status = collective_check_view(job, from, "from", false);
    if (status == 0 && (is_scatter || is_root))
        status = collective_check_view(job, to, "to", true);
    if (status == 0 && is_root) {
        /* The block of root's large view is the one that all others must have. */
        status = collective_block(job, is_scatter ? from : to, root, &block);
        if (status == 0 && !is_alike(&block, c.block))
            status = text_fail(-SHMVIEW_ERR_INVALID,
                               "%s: the blocks of rank %d have another shape or format than its "
                               "small view",
                               c.name, root);
    }
    int result = collective_begin(job, &c, status);
    if (result < 0)
        return result;
    if (is_here) {
        const int member = member_of(job, root);
        result =
            is_scatter ? collective_from(job, member, &large) : collective_to(job, member, &large);
        if (result == 0)
            result = collective_block(job, &large, job->rank, &block);
        if (result == 0)
            result = is_scatter ? copy(to, &block) : copy(&block, from);
    }
    if (result == 0 && job->member == 0)
        result = exchange_rooted(job, &c, node, &large, is_scatter);
    return collective_end(job, &c, result);
}

int shmview_mpi_scatter(struct shmview_mpi *job, const struct shmview_view *from,
                        const struct shmview_view *to, int root, const char *phase)
{
    return rooted(job, from, to, root, phase, true);
}

int shmview_mpi_gather(struct shmview_mpi *job, const struct shmview_view *from,
                       const struct shmview_view *to, int root, const char *phase)
{
    return rooted(job, from, to, root, phase, false);
}

/* Checks that block 0 of `large` has the shape and format of `small`. */
static int check_block(struct shmview_mpi *job, const char *name, const struct shmview_view *large,
                       const struct shmview_view *small)
{
    struct shmview_view block;
    int status = collective_block(job, large, 0, &block);
    if (status == 0 && !is_alike(&block, small))
        status =
            text_fail(-SHMVIEW_ERR_INVALID,
                      "%s: rank %d: from and to do not have blocks of the same shape and format",
                      name, job->rank);
    return status;
}

/* Every leader sends the views of its members to all others. */
static int exchange_all(struct shmview_mpi *job, const struct collective *c)
{
    struct work work = {0};
    int result =
        make_room(&work, (size_t)job->n_ranks + (size_t)job->n_nodes * (size_t)job->n_members);
    for (int i = 1; i < job->n_nodes && result == 0; i++) {
        const int to = (job->node_index + i) % job->n_nodes;
        const int from = (job->node_index - i + job->n_nodes) % job->n_nodes;
        result = add_members(job, &work, to, true);
        if (result == 0)
            result = add_blocks(job, &work, c->to, from, from, false);
    }
    return run(job, &work, result, c->deadline_ns);
}

int shmview_mpi_allgather(struct shmview_mpi *job, const struct shmview_view *from,
                          const struct shmview_view *to, const char *phase)
{
    struct collective c = {.name = "allgather",
                           .root = -1,
                           .phase = phase,
                           .from = from,
                           .to = to,
                           .block = from,
                           .shares_to = true,
                           .receives = true};
    struct shmview_view block;
    int status = collective_check_view(job, from, "from", false);
    if (status == 0)
        status = collective_check_view(job, to, "to", true);
    if (status == 0)
        status = check_block(job, c.name, to, from);
    int result = collective_begin(job, &c, status);
    if (result < 0)
        return result;
    result = collective_block(job, to, job->rank, &block);
    if (result == 0)
        result = copy(&block, from);
    if (result == 0 && job->member == 0)
        result = exchange_all(job, &c);
    return collective_end(job, &c, result);
}

/* Block s of `from` of each member to each rank s of another node, in the order of sender and
 * receiver on both sides. */
static int exchange_blocks(struct shmview_mpi *job, const struct collective *c)
{
    struct work work = {0};
    const int mine = job->node_index;
    struct shmview_view view, block;
    int result = make_room(&work, 2 * (size_t)job->n_ranks * (size_t)job->n_members);
    for (int i = 1; i < job->n_nodes && result == 0; i++) {
        const int to = (mine + i) % job->n_nodes, from = (mine - i + job->n_nodes) % job->n_nodes;
        for (int s = 0; s < job->n_members && result == 0; s++) {
            result = collective_from(job, s, &view);
            for (int r = 0; r < job_n_members(job, to) && result == 0; r++) {
                result = collective_block(job, &view, job_ranks(job, to)[r], &block);
                if (result == 0)
                    add(&work, &block, to, true);
            }
        }
        for (int s = 0; s < job_n_members(job, from) && result == 0; s++)
            for (int r = 0; r < job->n_members && result == 0; r++) {
                result = collective_to(job, r, &view);
                if (result == 0)
                    result = collective_block(job, &view, job_ranks(job, from)[s], &block);
                if (result == 0)
                    add(&work, &block, from, false);
            }
    }
    return run(job, &work, result, c->deadline_ns);
}

int shmview_mpi_alltoall(struct shmview_mpi *job, const struct shmview_view *from,
                         const struct shmview_view *to, const char *phase)
{
    struct collective c = {.name = "alltoall",
                           .root = -1,
                           .phase = phase,
                           .from = from,
                           .to = to,
                           .block = from,
                           .receives = true};
    int status = collective_check_view(job, from, "from", false);
    if (status == 0)
        status = collective_check_view(job, to, "to", true);
    struct shmview_view in, out;
    if (status == 0)
        status = collective_block(job, from, 0, &out);
    if (status == 0)
        status = check_block(job, c.name, to, &out);
    int result = collective_begin(job, &c, status);
    if (result < 0)
        return result;
    for (int i = 0; i < job->n_members && result == 0; i++) {
        struct shmview_view other;
        result = collective_from(job, i, &other);
        if (result == 0)
            result = collective_block(job, &other, job->rank, &out);
        if (result == 0)
            result = collective_block(job, to, job_ranks(job, job->node_index)[i], &in);
        if (result == 0)
            result = copy(&in, &out);
    }
    if (result == 0 && job->member == 0)
        result = exchange_blocks(job, &c);
    return collective_end(job, &c, result);
}
