/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a daemon left of a segment still is that segment. */
#ifndef DAEMON_SEGMENT_RESTORE_H
#define DAEMON_SEGMENT_RESTORE_H

#include "daemon/segments/segment.h"

/* Takes over what a daemon left: the objects are there by their names, and are those that
 * device and inodes tell. Every slot is as the liveness object shows it; those of users
 * that died unnoticed are to be given back by the caller.
 * Returns 0; -ESTALE with *ret_why where something does not fit; or -errno. */
int segment_restore(struct segment *segment, const char **ret_why);

#endif
