/* SPDX-License-Identifier: Apache-2.0 */
/* crew.h - runs the workers of one step at the same time. */
#ifndef PHASES_CREW_H
#define PHASES_CREW_H

#include "step.h"

#define CREW_MAX 64

/* Starts n_workers processes, 1 to CREW_MAX, and waits for all of them. Prints on stderr which of
 * them failed, and frees the parts that these had taken for the others. If dies is set, worker 0 is
 * killed while it holds the lock. */
void crew_run(const char *segment, const struct arrays *arrays, enum step step, int n_workers,
              int dies);

#endif
