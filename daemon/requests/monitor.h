/* SPDX-License-Identifier: Apache-2.0 */
/* The method Monitor: connections that are told of events.
 *
 * A connection is told as fast as it reads; what it has no room for stays in the ring of
 * events.h, where it may be lost. Telling takes turns of a quarter of a millisecond, so that where
 * there are many monitors events may be lost as well. */
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/requests/request.h"

/* The method. */
void monitor_start(struct request *request, const union wanted *want);

/* The connection is gone. Does nothing if it is no monitor's. */
void monitor_end(struct connection *connection);

/* It can take more. */
void monitor_drained(struct connection *connection);

#endif
