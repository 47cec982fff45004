/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a daemon where another one was: takes over what the store and /dev/shm agree
 * on, announces the deaths that happened meanwhile, removes what belongs to nobody. */
#ifndef DAEMON_RECOVERY_H
#define DAEMON_RECOVERY_H

#include "daemon/requests/state.h"

/* state's registry is empty and has its store; the loop is there. Returns 0 or -errno.
 * Whatever does not fit is logged and left out; what cannot be told at present (memory,
 * descriptors) is an error: then nothing was given up, and another daemon may begin again. */
int recovery_run(struct state *state);

#endif
