/* SPDX-License-Identifier: Apache-2.0 */
/* Those who ask faster than they may wait here; what they send is left in their sockets.
 *
 *   asks too fast -> throttled, last of his user's connections -> resumed in turn
 *
 * Each user has a list of his own, so that the others do not wait for him. */
#ifndef DAEMON_THROTTLE_H
#define DAEMON_THROTTLE_H

#include "daemon/base/alarm.h"
#include "daemon/clients/connection.h"
#include "daemon/rights/quota.h"

struct throttle {
    struct quota *quota;
    struct alarm alarm; /* set while anybody waits */
    int64_t due_ns;
};

/* Returns 0 or -errno. */
int throttle_init(struct throttle *throttle, uv_loop_t *loop, struct quota *quota);

/* Counts one request of the connection, which has a payer. Returns whether it may be taken
 * now; else the connection waits, and is given its turn when it may. */
bool throttle_may_ask(struct throttle *throttle, struct connection *connection, bool is_admin);

/* The connection waits no more: it was closed. */
void throttle_cancel(struct throttle *throttle, struct connection *connection);

#endif
