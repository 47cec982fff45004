/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of views between the leaders: exchange.h for views that are not prepared. */
#ifndef MPI_TRANSFER_H
#define MPI_TRANSFER_H

#include <shmview/mpi_type.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One end of a message. */
struct transfer_part {
    const struct shmview_view *view; /* without suboffsets; borrowed until transfer_run() returns */
    int rank;                        /* the other side */
    bool send;                       /* else receive */
};

/* Runs n parts until all are done. Returns what exchange_run() returns. */
int transfer_run(struct shmview_mpi_link *link, const struct transfer_part *parts, size_t n,
                 int64_t deadline_ns);
int transfer_send(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                  int64_t deadline_ns);
int transfer_receive(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                     int64_t deadline_ns);

#endif
