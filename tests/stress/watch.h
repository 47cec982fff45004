/* SPDX-License-Identifier: Apache-2.0 */
/* Finds threads that wait although nobody holds what they wait for. */
#ifndef STRESS_WATCH_H
#define STRESS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "client/segment/segment.h"

struct watch {
    int64_t looked;   /* when it looked last */
    int64_t fresh;    /* waits count from here, if they began earlier */
    int64_t advanced; /* when a thread last got the lock */
    uint64_t taken;
};

/* Counts a stall for each thread that has waited too long, and kills its party, so that the
 * others go on. Must be called about every 100 ms. */
void watch_look(struct watch *watch, const struct shmview_segment *segment);

/* Counts a stall, and prints the state of the lock. */
void watch_tell(const struct shmview_segment *segment, const char *what);

/* Returns whether no living party is within an action. */
bool watch_all_idle(void);

#endif
