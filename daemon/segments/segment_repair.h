/* SPDX-License-Identifier: Apache-2.0 */
/* Clients can truncate and enlarge the objects that they may write to, through their descriptors:
 * the data, and with any access that locks the control object. An object gets back the size that
 * it was made with, and a lock that was damaged is usable again. */
#ifndef DAEMON_SEGMENT_REPAIR_H
#define DAEMON_SEGMENT_REPAIR_H

#include "daemon/segments/registry.h"

/* Looks at data and control object. Memory beyond the size is given back. Missing bytes become
 * zeros, and the next owner of the lock learns that the last one died inside. The header of the
 * control object is looked at if that is open. Logs which clients could have done it, and counts
 * it. Returns 0, or -errno where memory for the missing bytes cannot be had now. */
int segment_repair(struct segment *segment);

/* Does so for some of the segments with an id above *after, then goes on with the first. */
void segment_repair_some(const struct registry *registry, uint64_t *after);

#endif
