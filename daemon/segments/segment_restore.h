/* SPDX-License-Identifier: Apache-2.0 */
/* Checks whether the objects that an earlier daemon left are still those of a segment. Between two
 * daemons another program of the same user may have removed or replaced them. */
#ifndef DAEMON_SEGMENT_RESTORE_H
#define DAEMON_SEGMENT_RESTORE_H

#include "daemon/segments/segment.h"

/* Checks that each object has its name, and has the device and the inode of the record. Sizes of
 * data and control do not matter here, because segment_repair() restores them. Of the slots it
 * reads only how many there are: segment_claim_slot() or the first attachment reads the rest
 * (use.h).
 *
 * Returns 0; -ESTALE if an object is not the one that was created; or another -errno. *ret_why
 * names the object in any case. */
int segment_restore(struct segment *segment, const char **ret_why);

#endif
