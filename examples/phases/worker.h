/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - a worker process: one step on some parts of the samples.
 *
 * A worker is another process of this program. It shares only the name of the segment with its
 * parent, and finds everything else there. */
#ifndef PHASES_WORKER_H
#define PHASES_WORKER_H

#include "step.h"

#define WORKER_OPTION "--worker"

struct worker {
    const char *segment; /* borrowed */
    enum step step;
    int index; /* which of them */
    int count; /* how many there are */
    int dies;  /* whether it kills itself while it holds the lock */
};

/* Starts a worker process. Returns its pid; ends the program if it cannot. */
int worker_start(const struct worker *worker);

/* Runs the worker process with the arguments that worker_start() made. Returns its exit status. */
int worker_main(char **arguments);

#endif
