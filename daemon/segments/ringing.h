/* SPDX-License-Identifier: Apache-2.0 */
/* Segments whose watchers are woken when the daemon has a turn for it.
 *
 * A client may have attached thousands of segments, and may ring for all of them. Each is here
 * once, whoever rings for it and however often, and its watchers are woken after the last ring. */
#ifndef DAEMON_RINGING_H
#define DAEMON_RINGING_H

#include "daemon/rights/turns.h"

struct segment_use;

struct ringing {
    TAILQ_HEAD(, segment_use) due;
    struct turns *turns;
    struct turn turn;
};

/* Before the first ring. */
void ringing_init(struct ringing *ringing, struct turns *turns);

/* Wakes those who watch the segment soon. Somebody does. */
void ringing_add(struct segment_use *use);

/* Nobody watches the segment any more. */
void ringing_cancel(struct segment_use *use);

#endif
