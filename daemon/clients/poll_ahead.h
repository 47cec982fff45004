/* SPDX-License-Identifier: Apache-2.0 */
/* After a request the loop looks for the next one a while before it sleeps: a client that asks
 * one thing after the other then has its answer in less time than waking a processor takes. Where
 * that is of no use it is soon given up, and tried again now and then; never where there is but one
 * processor, which the client needs. */
#ifndef DAEMON_POLL_AHEAD_H
#define DAEMON_POLL_AHEAD_H

#include <stdbool.h>

#include <uv.h>

#include "common/base/spin.h"

struct poll_ahead {
    uv_idle_t idle; /* active while it looks: the loop does not sleep */
    struct spin spin;
    bool is_possible;
    bool was_asked; /* since the last wait */
    int64_t began_ns;
    long preempted; /* so often, when it began */
    uint32_t ns;    /* so long this time */
};

void poll_ahead_init(struct poll_ahead *poll_ahead, uv_loop_t *loop);

/* There was a request. */
void poll_ahead_note(struct poll_ahead *poll_ahead);

/* The loop is about to wait. */
void poll_ahead_before_wait(struct poll_ahead *poll_ahead);

#endif
