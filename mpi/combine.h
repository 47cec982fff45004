/* SPDX-License-Identifier: Apache-2.0 */
/* The two halves of a reduction: within a node, and between the nodes. */
#ifndef MPI_COMBINE_H
#define MPI_COMBINE_H

#include "job.h"
#include "operation.h"

/* Combines this rank's slice of the contributions of all members of the node, into `to`. */
int combine_slice(struct shmview_mpi *job, const struct operation *operation,
                  const struct shmview_view *to);

/* All leaders call: combines the results of the nodes, in the views `to` of all nodes, or if root
 * is not -1 in that of node root. keeps_shape is that of struct collective. */
int combine_nodes(struct shmview_mpi *job, const struct operation *operation,
                  const struct shmview_view *to, int root, bool keeps_shape, int64_t deadline_ns);

#endif
