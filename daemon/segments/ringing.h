/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of segments whose watchers must be woken. The daemon wakes them in turns.
 *
 * A client may have attached thousands of segments and may ring for all of them, each with up to 64
 * watchers. Waking all of these at once would stop the loop. A segment is in the queue at most
 * once, however many clients ring for it: its watchers then read a counter which has all changes.
 * They are woken after the last ring, so none of them misses a change. The daemon itself pays for
 * these turns, because clients of several users may have rung for one segment. */
#ifndef DAEMON_RINGING_H
#define DAEMON_RINGING_H

#include "daemon/rights/turns.h"

struct segment_use;

/* One for each instance, in the home of its segments. */
struct ringing {
    TAILQ_HEAD(, segment_use) due; /* the segment that waits longest comes first */
    struct turns *turns;           /* borrowed */
    struct turn turn;
};

/* Must be called before the first ring. turns need not be ready by then. */
void ringing_init(struct ringing *ringing, struct turns *turns);

/* Adds the segment to the queue, unless it is in it. It must have a watcher. */
void ringing_add(struct segment_use *use);

/* Removes the segment from the queue, if it is in it. Called when its last watcher has gone. */
void ringing_cancel(struct segment_use *use);

#endif
