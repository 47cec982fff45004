/* SPDX-License-Identifier: Apache-2.0 */
/* A party that takes part in the test: its threads, its handles, its children. */
#ifndef STRESS_WORKER_H
#define STRESS_WORKER_H

#include <shmview/shmview.h>

#include "client/segment/segment.h"
#include "stress/arena.h"

#define WORKER_SEGMENT "stress"

struct worker_handle {
    struct shmview_connection *connection; /* its own, or NULL */
    struct shmview_segment *segment;
};

/* Attaches, through connection or, if that is NULL, through a new one. Returns 0, or an error
 * after it was reported. */
int worker_attach(struct worker_handle *handle, struct shmview_connection *connection);
void worker_detach(struct worker_handle *handle);

/* The life of a worker or guest, in a process that was just forked. inherited is the
 * supervisor's handle. */
__attribute__((noreturn)) void worker_live(struct party *party, uint64_t reservation,
                                           struct shmview_segment *inherited);

/* Forks a guest if there is a free party. holding: this thread holds the lock of the segment, in
 * either mode. */
void worker_fork(struct shmview_segment *segment, bool holding);

/* Exits this process in order, whatever it holds. */
__attribute__((noreturn)) void worker_exit(void);

#endif
