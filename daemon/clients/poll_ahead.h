/* SPDX-License-Identifier: Apache-2.0 */
/* After a request the loop polls for the next one before it sleeps. A client that sends one request
 * after the other then gets its reply in less time than the kernel needs to wake a processor. A
 * ping takes 7.7 us while both sides poll; an echo server whose sides sleep takes 50.
 *
 * spin.h decides how long to poll, from the success of earlier polls, so that a daemon
 * whose clients are idle polls after one request of sixteen only. On a machine with one processor
 * the daemon never polls, because the client needs that processor. */
#ifndef DAEMON_POLL_AHEAD_H
#define DAEMON_POLL_AHEAD_H

#include <stdbool.h>

#include <uv.h>

#include "common/base/spin.h"

/* One for each loop; used on it only. */
struct poll_ahead {
    uv_idle_t idle;     /* active while the loop polls: libuv then does not sleep */
    struct spin spin;   /* the success of earlier polls */
    bool is_possible;   /* the machine has more than one processor */
    bool was_asked;     /* there was a request since the last wait */
    int64_t began_ns;   /* of this poll */
    int64_t now_ns;     /* the last look at the clock */
    int64_t yielded_ns; /* when this poll last yielded the processor, or began */
    long given;         /* spin_times_given() when this poll began */
    uint32_t ns;        /* how long this poll may take */
};

/* Prepares the struct. Never fails. */
void poll_ahead_init(struct poll_ahead *poll_ahead, uv_loop_t *loop);

/* Call at each request. */
void poll_ahead_note(struct poll_ahead *poll_ahead);

/* Call when the loop is about to wait: decides whether it polls, goes on polling, or sleeps. may is
 * false while work waits that gets only what the loop leaves of its processor: then it sleeps. */
void poll_ahead_before_wait(struct poll_ahead *poll_ahead, bool may);

#endif
