/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to set who may use a segment. Programs name users and groups by name or number; the
 * protocol has only numbers, so names are looked up here. */
#ifndef CLIENT_ACCESS_H
#define CLIENT_ACCESS_H

#include <shmview/access.h>

#include "client/segment/segment.h"

#pragma GCC visibility push(hidden)

/* Makes the wire form of change, which may be NULL for no change. Looking up a name may block, as
 * getpwnam() does. Returns 0, after which the caller must free ret->acl, or an error. */
int access_grant(const struct shmview_access_change *change, struct wire_grant *ret);

#pragma GCC visibility pop

#endif
