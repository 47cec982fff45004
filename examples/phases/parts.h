/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - which parts of a step are done.
 *
 * The samples are cut into parts, and each worker takes one after the other. The states of the
 * parts lie in the segment, under its lock. They suffice to repair the common result if a worker
 * dies while it holds the lock: the parts that are done are counted again, and another worker
 * repeats the one that was being counted. */
#ifndef PHASES_PARTS_H
#define PHASES_PARTS_H

#include <shmview/shmview.h>

#include "step.h"

#define PARTS_PER_WORKER 4

enum part {
    PART_TO_DO,
    PART_COUNTING, /* a worker is adding it to the common result */
    PART_DONE,     /* and counted */
    PART_TAKEN,    /* by worker 0; PART_TAKEN + i: by worker i */
};

/* Takes the lock, and repairs the common result if its last owner died. The message names this
 * process as who. Ends the program on failure. */
void parts_lock(const char *who, enum step step, struct shmview_segment *segment,
                const struct arrays *arrays);

/* Gives part i to worker i, and leaves all others to the workers that are ready first. Call it only
 * while no worker runs. */
void parts_assign(const struct arrays *arrays, int n_workers);

/* Returns how many parts are not done. Call it under the lock, or while no worker runs. */
size_t parts_left(const struct arrays *arrays);

/* Takes the first free part for a worker. Call it under the lock. Returns the index of the part, or
 * arrays->n_parts if there is none. */
size_t parts_take(const struct arrays *arrays, int worker);

/* Frees the parts that a dead worker had taken. Needs no lock, because nobody else touches a part
 * that is taken. */
void parts_give_up(const struct arrays *arrays, int worker);

/* The samples of a part. */
struct range parts_range(const struct arrays *arrays, size_t part);

#endif
