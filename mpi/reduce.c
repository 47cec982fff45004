/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "bcast.h"
#include "collective.h"
#include "combine.h"
#include "operation.h"
#include "text.h"
#include "verdict.h"

/* A wait of all ranks looks so often for the dead. */
#define LOOK_NS 100000000

static int check(struct shmview_mpi *job, const char *name, const struct shmview_view *from,
                 const struct shmview_view *to)
{
    int status = collective_check_view(job, from, "from", false);
    if (status == 0)
        status = collective_check_view(job, to, "to", true);
    if (status < 0)
        return status;
    if (from->ndim != to->ndim || strcmp(from->format, to->format) != 0 ||
        memcmp(from->shape, to->shape, from->ndim * sizeof from->shape[0]) != 0)
        return text_fail(-SHMVIEW_ERR_INVALID,
                         "%s: rank %d: from and to have different shapes or formats", name,
                         job->rank);
    return 0;
}

/* Private copies, as the operation works on them: of this rank's elements and of the result. */
struct copies {
    char *bytes[2];
    struct shmview_segment *segments[2];
    struct shmview_view views[2];
};

static int copies_init(const struct shmview_mpi *job, const struct operation *operation,
                       const struct shmview_view *from, uint64_t n, struct copies *ret)
{
    const uint64_t bytes = n * operation->itemsize;
    int64_t shape[SHMVIEW_MAX_NDIM] = {0};
    if (n > INT32_MAX)
        return text_fail(-SHMVIEW_ERR_LIMIT, "more than 2^31 elements for this operation");
    for (uint32_t d = 0; d < from->ndim; d++)
        shape[d] = from->shape[d];
    const struct shmview_view_spec spec = {
        .format = operation->format, .ndim = from->ndim, .shape = shape};
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++) {
        ret->bytes[i] = calloc(1, bytes ? bytes : 1);
        if (!ret->bytes[i])
            return text_fail(-SHMVIEW_ERR_NO_MEMORY, "rank %d: no memory for a reduction",
                             job->rank);
        result = shmview_wrap(ret->bytes[i], bytes, 0, NULL, NULL, &ret->segments[i]);
        if (result == 0)
            result = shmview_view_make(ret->segments[i], &spec, &ret->views[i]);
    }
    if (result == 0)
        result = shmview_copy(&ret->views[0], from);
    if (result < 0)
        text_fail(result, "rank %d: a reduction: %s", job->rank, shmview_error_text());
    return result;
}

static void copies_deinit(struct copies *copies)
{
    for (int i = 0; i < 2; i++) {
        shmview_detach(copies->segments[i]);
        free(copies->bytes[i]);
    }
}

/* Reduces the copies of all ranks. If it fails, MPI may still use them. A wait looks for dead
 * members of the node as often as that of a meeting. */
static int reduce_copies(struct shmview_mpi *job, const struct operation *operation, uint64_t n,
                         const struct copies *copies, int64_t deadline_ns)
{
    static const char doing[] = "a reduction in the order of the ranks";
    MPI_Request request = MPI_REQUEST_NULL;
    int result = text_check(MPI_Iallreduce(copies->bytes[0], copies->bytes[1], (int)n,
                                           operation->type, operation->op, job->all, &request),
                            doing);
    while (result == 0) {
        const int64_t look = shmview_deadline(LOOK_NS);
        result = verdict_wait(&request, doing, look < deadline_ns ? look : deadline_ns);
        if (result != -SHMVIEW_ERR_TIMED_OUT || look >= deadline_ns)
            break;
        result = control_look(job);
    }
    return result;
}

/* The order of the ranks is not that of the nodes, and the operation does not commute: MPI reduces
 * private copies, after every rank has made its own. */
static int reduce_unordered(struct shmview_mpi *job, const struct operation *operation,
                            const struct shmview_view *from, const struct shmview_view *to,
                            struct collective *c)
{
    const uint64_t n = from->nbytes / from->itemsize;
    struct copies copies = {0};
    int result = collective_agree(job, c, copies_init(job, operation, from, n, &copies));
    if (result == 0) {
        result = reduce_copies(job, operation, n, &copies, c->deadline_ns);
        if (result < 0) {
            job->is_broken = true; /* and the copies stay */
            return result;
        }
        if (job->member == 0 && (result = shmview_copy(to, &copies.views[1])) < 0)
            text_core(result, "the elements of a result");
    }
    copies_deinit(&copies);
    return result;
}

static int reduce(struct shmview_mpi *job, const struct shmview_view *from,
                  const struct shmview_view *to, MPI_Op op, struct collective *c, int node)
{
    struct operation operation = {.op = MPI_OP_NULL};
    int status = check(job, c->name, from, to);
    if (status == 0)
        status = operation_init(&operation, op, to);
    if (status == 0) {
        c->from = from;
        c->to = c->block = to;
        c->operation = operation.identity;
    }
    int result = collective_begin(job, c, status);
    if (result < 0) {
        operation_deinit(&operation);
        return result;
    }
    if (!operation.commutes && !job->is_ordered) {
        result = reduce_unordered(job, &operation, from, to, c);
    } else {
        result = combine_slice(job, &operation, to);
        result = collective_gather(job, c, result);
        if (result == 0 && job->member == 0)
            result = combine_nodes(job, &operation, to, node, c->keeps_shape, c->deadline_ns);
    }
    operation_deinit(&operation);
    return collective_end(job, c, result);
}

int shmview_mpi_reduce(struct shmview_mpi *job, const struct shmview_view *from,
                       const struct shmview_view *to, MPI_Op op, int root, const char *phase)
{
    const int node = shmview_mpi_node(job, root);
    struct collective c = {.name = "reduce",
                           .root = node < 0 ? job->n_ranks : root,
                           .phase = phase,
                           .shares_to = true,
                           .receives = true,
                           .is_workspace = node != job->node_index};
    return reduce(job, from, to, op, &c, node);
}

int shmview_mpi_allreduce(struct shmview_mpi *job, const struct shmview_view *from,
                          const struct shmview_view *to, MPI_Op op, const char *phase)
{
    struct collective c = {
        .name = "allreduce", .root = -1, .phase = phase, .shares_to = true, .receives = true};
    return reduce(job, from, to, op, &c, -1);
}
