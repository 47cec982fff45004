/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of views between the ranks of a link.
 *
 * exchange_run() has the ends of any number of messages, each of them a view on this rank and a
 * rank on the other side, and runs them all together until all are done. Both sides name the same
 * shape and elements of the same type; strides may differ. Between two ranks messages have no tags:
 * the n-th one sent is the n-th one received, in the order of the ends and of the calls. Elements
 * travel as bytes.
 *
 * Each end is contiguous, and then MPI works on the view itself; or MPI does so by a datatype; or
 * it is packed through two pieces of EXCHANGE_PIECE_BYTES by turns (choice.h).
 *
 * A message of more than a piece begins with a greeting from each side to the other. It has shape
 * and type, so that both sides refuse a mismatch, and what each side has to carry, so that both
 * decide alike whether the message is whole or in pieces. A shorter message is whole and has no
 * greeting. Its tag has a hash of shape and type, and a receiver that waits for another one finds
 * it by probing after a millisecond.
 *
 *      sender                     receiver
 *        | greeting --> forward     |
 *        |     back <-- greeting    |      only beyond EXCHANGE_PIECE_BYTES
 *        | data ------> forward     |
 *
 * After a failure with TIMED_OUT or PEER the link is broken: requests of MPI may be left that use
 * the views of this call, and every further call fails with LOST. */
#ifndef MPI_EXCHANGE_H
#define MPI_EXCHANGE_H

#include <mpi.h>
#include <shmview/mpi_type.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "layout.h"

#define EXCHANGE_PIECE_BYTES 65536u

/* What both sides of a message must have alike. */
struct exchange_shape {
    uint64_t format; /* a hash */
    uint32_t itemsize;
    uint32_t ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
};

/* One end of a message. */
struct exchange_end {
    struct layout layout;
    struct exchange_shape shape;
    int rank;  /* the other side. If it is this rank itself, the call has both ends */
    bool send; /* else receive */
};

/* Makes an end of a view, which is borrowed until exchange_run() returns. Returns
 * -SHMVIEW_ERR_CONTIGUOUS for a view with suboffsets, _READ_ONLY to receive into a view that is, or
 * _INVALID for a wrong rank. */
int exchange_end_of_view(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                         bool send, struct exchange_end *ret_end);

/* Runs the one message of a view, as exchange_end_of_view() and exchange_run() do, but a short one
 * without gaps with as little work as possible. */
int exchange_one(struct shmview_mpi_link *link, const struct shmview_view *view, int rank,
                 bool send, int64_t deadline_ns);

/* The hash of the type of a view's elements. */
uint64_t exchange_format(const struct shmview_view *view);

/* Runs n messages. Returns 0, or -SHMVIEW_ERR_CONVERSION if the sides of one differ (all others are
 * completed first), _TIMED_OUT, _PEER, _LOST, _NO_MEMORY or _INVALID. The text names the rank. */
int exchange_run(struct shmview_mpi_link *link, const struct exchange_end *ends, size_t n,
                 int64_t deadline_ns);

#endif
