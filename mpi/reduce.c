/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "bcast.h"
#include "collective.h"
#include "combine.h"
#include "operation.h"
#include "text.h"

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

/* The order of the ranks is not that of the nodes, and the operation does not commute: MPI reduces
 * private copies. */
static int reduce_unordered(struct shmview_mpi *job, const struct operation *operation,
                            const struct shmview_view *from, const struct shmview_view *to)
{
    const uint64_t n = from->nbytes / from->itemsize;
    if (n > INT32_MAX)
        return text_fail(-SHMVIEW_ERR_LIMIT, "more than 2^31 elements for this operation");
    const size_t bytes = n * operation->itemsize;
    char *in = calloc(1, bytes ? bytes : 1), *out = calloc(1, bytes ? bytes : 1);
    struct shmview_segment *segment = NULL;
    struct shmview_view packed;
    int64_t shape[SHMVIEW_MAX_NDIM] = {0};
    for (uint32_t d = 0; d < from->ndim; d++)
        shape[d] = from->shape[d];
    const struct shmview_view_spec spec = {
        .format = operation->format, .ndim = from->ndim, .shape = shape};
    int result = in && out ? 0 : text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a reduction");
    for (int step = 0; step < 2 && result == 0; step++) {
        const bool is_first = step == 0;
        result = shmview_wrap(is_first ? in : out, bytes, 0, NULL, NULL, &segment);
        if (result == 0)
            result = shmview_view_make(segment, &spec, &packed);
        if (result == 0 && (is_first || job->member == 0))
            result = is_first ? shmview_copy(&packed, from) : shmview_copy(to, &packed);
        if (result < 0)
            text_core(result, "a reduction");
        shmview_detach(segment);
        segment = NULL;
        if (result == 0 && is_first)
            result =
                text_check(MPI_Allreduce(in, out, (int)n, operation->type, operation->op, job->all),
                           "a reduction in the order of the ranks");
    }
    free(in);
    free(out);
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
    }
    int result = collective_begin(job, c, status);
    if (result < 0) {
        operation_deinit(&operation);
        return result;
    }
    if (!operation.commutes && !job->is_ordered) {
        result = reduce_unordered(job, &operation, from, to);
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
