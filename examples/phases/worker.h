/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - a worker process: one step on some parts of the samples.
 *
 * A worker is this program, started anew. It shares nothing with its parent but
 * the name of the segment; everything else it finds there. */
#ifndef PHASES_WORKER_H
#define PHASES_WORKER_H

#include "step.h"

#define WORKER_OPTION "--worker"

struct worker {
    const char *segment; /* borrowed */
    enum step step;
    int index; /* which of them */
    int count; /* how many there are */
    int dies;  /* show what happens if it is killed while it holds the lock */
};

/* Starts a worker process. Returns its pid; ends the program if it cannot. */
int worker_start(const struct worker *worker);

/* What the worker process does with the arguments that worker_start() made.
 * Returns its exit status. */
int worker_main(char **arguments);

#endif
