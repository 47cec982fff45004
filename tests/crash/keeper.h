/* SPDX-License-Identifier: Apache-2.0 */
/* A process that keeps a daemon running, as a service manager does: one that has ended at a
 * point (points.c) or was killed is started again at once, and then ends at none. */
#ifndef CRASH_KEEPER_H
#define CRASH_KEEPER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "support/child.h"
#include "support/daemon.h"

#define POINT_STATUS 97 /* of a daemon that ended at its point */

struct keeper {
    struct daemon daemon; /* pid 0: the keeper's child, not ours */
    struct child child;
    bool is_armed;            /* a daemon runs that is to end at a point */
    struct keeper_news *news; /* shared with it */
};

/* Starts a daemon on a socket of that name, which ends at its n-th point; 0: at none. Does
 * not wait until it listens. */
void keeper_start(struct keeper *keeper, const char *name, unsigned ends_at);

/* Fills in daemon.instance; one has said that it listens. */
void keeper_find_instance(struct keeper *keeper);

/* How many daemons have ended so far, and were followed by another one; whether one of them
 * did so at a point. */
unsigned keeper_deaths(const struct keeper *keeper);
bool keeper_at_point(const struct keeper *keeper);

/* kill -9 to the daemon. The next one is started when keeper_go_on() is called, and ends at
 * its n-th point. */
void keeper_kill(struct keeper *keeper);
void keeper_go_on(struct keeper *keeper, unsigned ends_at);

/* SIGTERM to the daemon: another one is started when it has left, or has ended on its way. */
void keeper_replace(struct keeper *keeper);

/* SIGINT, also to those that follow, until one has left in order; asserts that nothing is left.
 * Returns whether one of all has ended at a point. */
bool keeper_stop(struct keeper *keeper);

#endif
