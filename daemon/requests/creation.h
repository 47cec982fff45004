/* SPDX-License-Identifier: Apache-2.0 */
/* Creating a segment takes as long as the kernel takes to zero its memory, so that of all but
 * small ones runs on libuv's thread pool:
 *
 *   reserved (name taken) -> allocating (worker) -> done, attached -> answered
 *                                   \-> failed, or its client died: rolled back */
#ifndef DAEMON_CREATION_H
#define DAEMON_CREATION_H

#include "daemon/requests/request.h"

/* The method Create. */
void creation_start(struct request *request, const union wanted *want);

/* Creates a segment that the configuration declares, as Create would, with its layouts.
 * What goes wrong is said; calls declared_done(), never at once. want is borrowed until
 * then. */
void creation_declare(struct state *state, const struct config_segment *want);

/* The connection is gone: what it was creating is rolled back. */
void creation_cancel(struct connection *connection);

#endif
