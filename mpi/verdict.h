/* SPDX-License-Identifier: Apache-2.0 */
/* Small exchanges between the ranks of a communicator, each with a deadline. */
#ifndef MPI_VERDICT_H
#define MPI_VERDICT_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "link.h"

/* Waits until the request is complete, or until deadline_ns. Returns 0, -SHMVIEW_ERR_TIMED_OUT,
 * after which MPI may still use the request's memory, or _PEER. */
int verdict_wait(MPI_Request *request, const char *doing, int64_t deadline_ns);

/* A value that all ranks must share, and the status of all of them. */
struct verdict {
    int status; /* the least of all ranks: 0, or an error */
    int rank;   /* one that has this status */
    int is_equal;
    int highest;     /* the greatest positive outcome of all ranks */
    bool is_missing; /* a rank has _PEER or _TIMED_OUT, so that another one is missing */
};

/* Compares status (0, a positive outcome, or an error whose text is stored) and the value of all
 * ranks. If one has an error, every rank stores its text. doing is for the text of other failures.
 * Returns 0 if the exchange succeeded, with the outcome in *ret_result; else _TIMED_OUT, _PEER or
 * _NO_MEMORY, after which the communicator is of no use. */
int verdict_take(MPI_Comm comm, int status, uint64_t value, const char *doing, int64_t deadline_ns,
                 struct verdict *ret_result);

/* The agreement of all ranks of a link, which is broken if the exchange fails. status is 0, a
 * positive outcome, or an error of this rank whose text is stored, and value what all ranks must
 * have alike. Returns the greatest outcome of all ranks if none has an error and the values are
 * equal. Otherwise all ranks fail: with the error of a rank that has one, whose number begins the
 * text; with -SHMVIEW_ERR_CONVERSION if values differ; or with _LOST or an error of verdict_take().
 */
int verdict_of_link(struct shmview_mpi_link *link, int status, uint64_t value, const char *doing,
                    int64_t deadline_ns);

/* Copies bytes of root to all ranks. */
int verdict_copy(MPI_Comm comm, void *bytes, size_t n, int root, int64_t deadline_ns);

#endif
