/* SPDX-License-Identifier: Apache-2.0 */
/* The method Monitor: connections that receive events.
 *
 *   Monitor -> subscribed -> event, event ... -> the client hangs up
 *
 * The daemon sends events as fast as the client reads them. Events for which the socket has no room
 * stay in the ring of events.h, where newer ones may replace them. Then the client gets the event
 * `lost` with their number. Thus a client that does not read costs one reply of memory at most.
 * Sending takes turns of a quarter of a millisecond, so that with many monitors events may be lost
 * as well.
 *
 * Each monitor receives only events of segments that its user may see, because names of segments
 * are not public. While a monitor wants events of phases, the daemon polls the phases
 * (phases.h). */
#ifndef DAEMON_MONITOR_H
#define DAEMON_MONITOR_H

#include "daemon/requests/request.h"

/* The method Monitor. Sends the event `subscribed` first, whose serial number the client may pass
 * to a later call. Requires a call with "more". */
void monitor_start(struct request *request, const union wanted *want);

/* Ends the monitor of a connection that is closed, if it has one. */
void monitor_end(struct connection *connection);

/* Called when everything for the connection is sent, so that it can take more events. */
void monitor_drained(struct connection *connection);

#endif
