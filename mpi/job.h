/* SPDX-License-Identifier: Apache-2.0 */
/* The handle: the communicators of a job, its segment, and where each rank is. */
#ifndef MPI_JOB_H
#define MPI_JOB_H

#include <mpi.h>
#include <shmview/mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "transfer.h"

#define JOB_TIMEOUT_NS 60000000000

struct shmview_mpi {
    MPI_Comm all;     /* every rank, as in the caller's communicator */
    MPI_Comm node;    /* the members of this node */
    MPI_Comm leaders; /* member 0 of each node, in the order of the nodes; or MPI_COMM_NULL */
    int rank, n_ranks;
    int member, n_members;
    int node_index, n_nodes;

    /* For each rank its node. Ranks by node: those of node i are ranks[first[i]] to
     * ranks[first[i + 1] - 1], in the order of its members. */
    int *node_of, *ranks, *first;
    bool is_ordered; /* ranks[i] is i for all i */

    struct shmview_mpi_link *link; /* between the leaders, which have it */
    int *names;                    /* of its ranks, for its texts */
    struct shmview_connection *connection;
    bool owns_connection;
    struct shmview_segment *segment, *control_segment;
    struct control *control;
    bool has_created; /* this rank has created the segment */

    int64_t timeout_ns;
    uint32_t epoch; /* meetings so far */
    bool is_broken, is_closing;
    int failed_rank;
    /* A meeting of this call has failed. Every member brings that error to the next one. */
    bool is_failing;
    char *phases; /* names of the layouts, each with its NUL, then an empty one */
};

/* The ranks of members of a node. */
static inline const int *job_ranks(const struct shmview_mpi *job, int node)
{
    return job->ranks + job->first[node];
}

static inline int job_n_members(const struct shmview_mpi *job, int node)
{
    return job->first[node + 1] - job->first[node];
}

#endif
