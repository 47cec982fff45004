/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that the configuration declares. When the daemon starts, and after each reload, it
 * creates those that do not exist.
 *
 * It never changes a segment that exists, because clients may be using it: a difference from the
 * declaration is logged as a warning. There are two exceptions, which disturb nobody: layouts that
 * the segment does not have are added, and a stream whose first bytes were never written gets them,
 * because an earlier daemon may have died before it wrote them. A segment that is no longer
 * declared stays until it is removed. */
#ifndef DAEMON_DECLARED_H
#define DAEMON_DECLARED_H

#include <stdatomic.h>

#include "daemon/config/config.h"
#include "daemon/segments/segment.h"

struct state;

/* The creation of declared segments. reload.c sets done and arg. */
struct declaring {
    unsigned n_pending;           /* creations that are not over */
    atomic_bool cancel;           /* set when the daemon exits; threads read it */
    void (*done)(struct state *); /* called when n_pending becomes 0 */
    void *arg;                    /* for done */
};

/* Creates or compares each segment of the configuration in force. Threads allocate the missing
 * ones. Calls state->declared.done when all of them exist or have failed, which may be before this
 * function returns. The caller must not call it again before that. */
void declared_start(struct state *state);

/* Adds the declared layouts that the segment does not have, and makes it a stream if it is declared
 * as one. Logs what differs, and errors. */
void declared_complete(struct segment *segment, const struct config_segment *want);

/* Called when one creation is over, whether it succeeded or not. */
void declared_done(struct state *state);

#endif
