/* SPDX-License-Identifier: Apache-2.0 */
/* The method Stats: figures of the instance, of the caller's quotas, and of segments with their
 * attachments.
 *
 * A hundred thousand segments would take too long for one request. Therefore a reply has as many
 * segments as fit into a quarter of a millisecond, 100 at most, and the id after which the next
 * call continues. Segments may come and go between the calls. Only administrators and the daemon's
 * own user get the figures of all users together. */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include "daemon/requests/request.h"

/* The method Stats. */
void stats_tell(struct request *request, const union wanted *want);

#endif
