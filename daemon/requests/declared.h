/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that the configuration declares: made where they are missing, compared where
 * they exist. What exists is never changed but for layouts that it lacks. */
#ifndef DAEMON_DECLARED_H
#define DAEMON_DECLARED_H

#include <stdatomic.h>

#include "daemon/config/config.h"
#include "daemon/segments/segment.h"

struct state;

/* Declared segments that are being made. */
struct declaring {
    unsigned n_pending;
    atomic_bool cancel;
    void (*done)(struct state *); /* called when none is left */
    void *arg;                    /* for it */
};

/* Sees to each segment of the configuration in force. Those that are missing are allocated
 * off the loop; calls state->declared.done when none is left, at once if there was none.
 * That the last call is not done yet is the caller's to know. */
void declared_start(struct state *state);

/* Gives a segment the layouts of its declaration that it lacks; says what differs. */
void declared_add_layouts(struct segment *segment, const struct config_segment *want);

/* One is made, or could not be. */
void declared_done(struct state *state);

#endif
