/* SPDX-License-Identifier: Apache-2.0 */
/* Restores objects that a client has truncated or enlarged.
 *
 * Files in /dev/shm cannot be sealed. So a client with the access write can change the size of the
 * data, and a client with a slot the size of the control object. Other clients then get SIGBUS, or
 * /dev/shm is filled beyond every quota. The daemon gives such an object its size back, and makes a
 * damaged lock usable again. It does this at each attachment, when it starts, and from a timer. It
 * cannot restore the bytes that were cut off. */
#ifndef DAEMON_SEGMENT_REPAIR_H
#define DAEMON_SEGMENT_REPAIR_H

#include "daemon/segments/registry.h"

/* Checks the data and the control object, and repairs them if necessary. Memory beyond the size is
 * freed. Missing bytes become zeros; then the next owner of the lock gets SHMVIEW_OWNER_DIED. The
 * header of the control object is checked only if the daemon has that object open. Logs and counts
 * each repair. The log names the clients that had the right to change the size.
 *
 * Returns 0; or -errno, for instance if there is no memory for the missing bytes now. From 1 MiB on
 * a thread commits or frees the memory after this call, and its errors show at the next check.
 * Until it is done, no other repair of that object begins: this function returns 0, and neither
 * logs nor counts. What the thread has not restored then shows at the next check. */
int segment_repair(struct segment *segment);

/* Repairs up to 32 segments, in the order of their ids, beginning with the first one above *after.
 * Sets *after for the next call: to 0 when this one reached the last segment, so that the next one
 * begins with the first again. Errors are ignored, because a later call tries again. */
void segment_repair_some(const struct registry *registry, uint64_t *after);

#endif
