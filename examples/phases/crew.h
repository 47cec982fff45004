/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h - the workers of one step, at work at the same time. */
#ifndef PHASES_CREW_H
#define PHASES_CREW_H

#include "step.h"

#define CREW_MAX 64

/* Starts n_workers processes, 1 to CREW_MAX, each on its own range, and waits
 * for all of them: what one step wrote is complete when the next one begins.
 * With dies, worker 0 is killed while it holds the lock.
 *
 * Returns 0, or the number of workers that failed, each told on stderr. */
int crew_run(const char *segment, enum step step, int n_workers, int dies);

#endif
