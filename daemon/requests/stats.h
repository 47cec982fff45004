/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: what there is, and what was done since the daemon was started. */
#ifndef DAEMON_STATS_H
#define DAEMON_STATS_H

#include "daemon/requests/request.h"

/* The method Stats. A reply takes about a millisecond: it holds as many segments as fit. */
void stats_tell(struct request *request, const union wanted *want);

#endif
