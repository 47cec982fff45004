/* SPDX-License-Identifier: Apache-2.0 */
/* Which ranks are on one node. */
#ifndef MPI_NODE_H
#define MPI_NODE_H

#include <mpi.h>
#include <stdint.h>

/* As shmview_mpi_node_comm(), for an intracommunicator. Waits until deadline_ns for the ranks to
 * come; then blocks only while they divide the communicator. Returns _TIMED_OUT, too. */
int node_split(MPI_Comm comm, int64_t deadline_ns, MPI_Comm *ret_node);

#endif
