/* SPDX-License-Identifier: Apache-2.0 */
/* The elements of one node to all others, by the leaders. */
#ifndef MPI_BCAST_H
#define MPI_BCAST_H

#include "job.h"

/* All leaders call, with views of the same shape and format. root is a node. keeps_shape is that of
 * struct collective. */
int bcast_between_nodes(struct shmview_mpi *job, const struct shmview_view *view, int root,
                        bool keeps_shape, int64_t deadline_ns);

#endif
