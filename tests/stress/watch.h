/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for threads that wait though nobody holds what they wait for. */
#ifndef STRESS_WATCH_H
#define STRESS_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "client/segment/segment.h"

struct watch {
    int64_t looked;   /* last */
    int64_t fresh;    /* waits are as old as this at the most */
    int64_t advanced; /* when somebody last got the lock */
    uint64_t taken;
};

/* Looks, and counts a stall for each that has waited too long; that party is killed,
 * so that the others go on. To be called every 100 ms or so. */
void watch_look(struct watch *watch, const struct shmview_segment *segment);

/* Counts a stall, and tells what the lock looks like. */
void watch_tell(const struct shmview_segment *segment, const char *what);

/* Whether no living party is in the middle of an action. */
bool watch_all_idle(void);

#endif
