/* SPDX-License-Identifier: Apache-2.0 */
/* May this user do this to that segment? Pure functions of facts. */
#ifndef DAEMON_POLICY_H
#define DAEMON_POLICY_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether uid may see, attach, describe and remove what owner created. */
bool policy_may_use(uid_t uid, uid_t owner);

#endif
