/* SPDX-License-Identifier: Apache-2.0 */
/* The method Monitor: connections that receive events.
 *
 * The daemon sends events as fast as the client reads them. Events for which the socket has no room
 * stay in the ring of events.h, where newer ones may replace them. Sending takes turns of a quarter
 * of a millisecond, so that with many monitors events may be lost as well. */
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
