/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h - which parts of a step are done.
 *
 * The samples are cut into parts, and a worker takes one after the other. The
 * states of the parts lie in the segment, under its lock. They say enough to
 * repair the common result when a worker dies while it holds the lock: the parts
 * that are done are counted again, and the one that was being counted is done
 * again by whoever takes it next. */
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

/* Takes the lock, and repairs the common result if its last owner died. who is
 * this process, for the message. Ends the program on failure. */
void parts_lock(const char *who, enum step step, struct shmview_segment *segment,
                const struct arrays *arrays);

/* While no worker runs: part i is the first one of worker i, and all others are
 * for whoever is ready. */
void parts_assign(const struct arrays *arrays, int n_workers);

/* How many are not done. Under the lock, or while no worker runs. */
size_t parts_left(const struct arrays *arrays);

/* Under the lock: takes the first part that is to do, for that worker. Returns its
 * index, or arrays->n_parts if there is none. */
size_t parts_take(const struct arrays *arrays, int worker);

/* After the death of a worker: what it had taken is to do. Needs no lock, because
 * nobody else touches a part that is taken. */
void parts_give_up(const struct arrays *arrays, int worker);

/* The samples of a part. */
struct range parts_range(const struct arrays *arrays, size_t part);

#endif
