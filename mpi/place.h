/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of one node: those that the leader makes or adopts, and the others attach. */
#ifndef MPI_PLACE_H
#define MPI_PLACE_H

#include "job.h"

/* What the members need to attach. */
struct place {
    char socket[108];
    char control[64];
    int outcome; /* 0, or SHMVIEW_OWNER_DIED */
};

/* Stores the text that is stored already again, with the name of this node before it. Returns
 * error. */
int place_fail(int error);

/* The leader connects, creates or adopts the segment, declares its layouts, and makes the control
 * area. On failure it has undone what it did. */
int place_lead(struct shmview_mpi *job, const char *name, const struct shmview_mpi_spec *spec,
               struct place *ret_place);
/* Another member connects and attaches both. */
int place_follow(struct shmview_mpi *job, const char *name, const struct shmview_mpi_spec *spec,
                 const struct place *place);
/* Detaches both and disconnects. If undo is set, the leader removes what it has created. Returns
 * -SHMVIEW_ERR_BUSY and does nothing if the segment is in use. */
int place_leave(struct shmview_mpi *job, bool undo);

#endif
