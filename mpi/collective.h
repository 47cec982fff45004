/* SPDX-License-Identifier: Apache-2.0 */
/* What all collectives have in common: they compare their arguments, hold the segment while bytes
 * arrive, and end with a phase.
 *
 *     collective_begin()    every rank: arguments are compared on the node and between the nodes;
 *                           the leader takes the lock if its node will receive bytes
 *     ... every rank works on its part, the leader on that between the nodes ...
 *     collective_end()      the leader begins the phase and releases the lock, or leaves the lock
 *                           as by a dead owner if anything failed
 *
 * Both are called by all members of a node, whatever happened before. */
#ifndef MPI_COLLECTIVE_H
#define MPI_COLLECTIVE_H

#include <stdbool.h>

#include "job.h"

struct collective {
    const char *name;                     /* of the call, for texts */
    int root;                             /* -1: none */
    const char *phase;                    /* or NULL */
    const struct shmview_view *from, *to; /* of this rank, or NULL */
    /* What all ranks must share: one block of the elements that move. */
    const struct shmview_view *block;
    uint32_t operation; /* its identity, or 0 */
    bool shares_to;     /* all members of a node must pass the same view `to` */
    bool receives;      /* this node's segment will be written */
    bool is_workspace;  /* but has no result then: its phase stays */

    /* Set by collective_begin(). */
    int64_t deadline_ns;
    bool is_locked, was_dirty;
    /* On leaders: `to` is not contiguous on every node, so that none may make it one dimension. */
    bool keeps_shape;
};

/* Checks that view is one of the job's segment, without suboffsets, and writable if it is written.
 */
int collective_check_view(const struct shmview_mpi *job, const struct shmview_view *view,
                          const char *what, bool is_written);
/* Divides a view along its first dimension, and returns block i. */
int collective_block(const struct shmview_mpi *job, const struct shmview_view *view, int i,
                     struct shmview_view *ret_block);

/* status is an error that this rank has found in its arguments, or 0. Returns 0, or the error of
 * the job, after which the collective has ended. */
int collective_begin(struct shmview_mpi *job, struct collective *c, int status);
/* All members of the node come together, with the status of each. Returns the first error. */
int collective_gather(struct shmview_mpi *job, struct collective *c, int status);
/* The members of all nodes come together, likewise. */
int collective_agree(struct shmview_mpi *job, struct collective *c, int status);
int collective_end(struct shmview_mpi *job, struct collective *c, int status);

/* The views of a member of this node, between begin and end. */
int collective_from(struct shmview_mpi *job, int member, struct shmview_view *ret_view);
int collective_to(struct shmview_mpi *job, int member, struct shmview_view *ret_view);

#endif
