/* SPDX-License-Identifier: Apache-2.0 */
/* Takes over the segments of an earlier daemon of the instance, when a daemon starts. Clients go on
 * using their segments while no daemon runs, and do not notice the change.
 *
 * Recovery takes over each segment for which the registry and /dev/shm agree; announces the deaths
 * of clients that ended while no daemon ran; and removes objects that belong to no segment. */
#ifndef DAEMON_RECOVERY_H
#define DAEMON_RECOVERY_H

#include "daemon/requests/state.h"

/* Recovers into the registry of state, which must be empty and have its store; the loop must be
 * initialised. Returns 0 or -errno.
 *
 * A record that cannot be valid, whatever is tried, is logged and dropped. Any other failure, such
 * as a lack of memory or descriptors, is an error: then nothing has been given up for it, and
 * another daemon can begin again. */
int recovery_run(struct state *state);

#endif
