/* SPDX-License-Identifier: Apache-2.0 */
/* A process that keeps a daemon running, as a service manager does. When a daemon has ended at a
 * point (points.c) or was killed, the keeper starts the next one, which ends at no point. */
#ifndef CRASH_KEEPER_H
#define CRASH_KEEPER_H

#include <stdatomic.h>
#include <stdbool.h>

#include "support/child.h"
#include "support/daemon.h"

#define POINT_STATUS 97 /* exit status of a daemon that ended at its point */

struct keeper {
    struct daemon daemon; /* pid 0: the daemon is a child of the keeper, not of the test */
    struct child child;
    bool is_armed;            /* a daemon was started that should end at a point */
    struct keeper_news *news; /* shared with the keeper's process */
};

/* Starts a keeper and its first daemon, on a socket of that name. The daemon ends at its point
 * number ends_at; 0: at none. Does not wait until the daemon listens. */
void keeper_start(struct keeper *keeper, const char *name, unsigned ends_at);

/* Fills in daemon.instance from the log. A daemon must have logged that it listens. */
void keeper_find_instance(struct keeper *keeper);

/* Return how many daemons have ended so far, and whether one of them ended at a point. The last
 * daemon, which keeper_stop() ends, does not count. */
unsigned keeper_deaths(const struct keeper *keeper);
bool keeper_at_point(const struct keeper *keeper);

/* Kills the daemon with SIGKILL. The keeper starts the next one when keeper_go_on() is called;
 * that daemon ends at its point number ends_at. */
void keeper_kill(struct keeper *keeper);
void keeper_go_on(struct keeper *keeper, unsigned ends_at);

/* Sends SIGTERM to the daemon. Returns when it has exited or ended at a point; the keeper starts
 * another one. */
void keeper_replace(struct keeper *keeper);

/* Sends SIGINT to the daemon, and to each that follows, until one exits with status 0. Asserts
 * that no socket and no object is left. Returns whether any daemon has ended at a point. */
bool keeper_stop(struct keeper *keeper);

#endif
