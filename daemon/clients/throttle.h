/* SPDX-License-Identifier: Apache-2.0 */
/* Holds requests back that come faster than the configured rate.
 *
 *   request too early -> connection throttled, last in the list of its user -> resumed in turn
 *
 * A throttled connection is not read, so its further requests stay in its socket and cost the
 * daemon nothing. Each user has a list, so that no user waits for the requests of another. Users
 * with waiting connections take turns, one request each. */
#ifndef DAEMON_THROTTLE_H
#define DAEMON_THROTTLE_H

#include "daemon/base/alarm.h"
#include "daemon/clients/connection.h"
#include "daemon/rights/quota.h"

/* One for each loop; used on it only. The lists are in the quota and its users. */
struct throttle {
    struct quota *quota; /* borrowed */
    struct alarm alarm;  /* set while a connection waits */
    int64_t due_ns;      /* when the alarm rings, if it is set */
};

/* Prepares the struct. Returns 0 or -errno. */
int throttle_init(struct throttle *throttle, uv_loop_t *loop, struct quota *quota);

/* Counts one request of the connection, which must have a payer. Returns whether the request may be
 * taken now. Otherwise marks the connection as throttled, and calls connection_resume() when the
 * request may be tried again. */
bool throttle_may_ask(struct throttle *throttle, struct connection *connection, bool is_admin);

/* Call when the connection was closed: removes it from the list. */
void throttle_cancel(struct throttle *throttle, struct connection *connection);

#endif
