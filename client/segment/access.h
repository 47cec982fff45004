/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use a segment: names become numbers here. */
#ifndef CLIENT_ACCESS_H
#define CLIENT_ACCESS_H

#include <shmview/access.h>

#include "client/segment/segment.h"

#pragma GCC visibility push(hidden)

/* Fills *ret from change, NULL for nothing. Returns 0 and owes free(ret->acl), or an error. */
int access_grant(const struct shmview_access_change *change, struct wire_grant *ret);

#pragma GCC visibility pop

#endif
