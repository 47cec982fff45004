/* SPDX-License-Identifier: Apache-2.0 */
/* Producers and consumers: what keeps a segment in memory, and who gives it back.
 *
 * A buffer or a tensor that is out holds its segment. n_buffers counts them:
 *
 *   n          shmview_detach() refuses while n is not 0
 *   LATER + n  the handle was given up; whoever drops the last one detaches
 *
 * One word, so that of two threads that drop the last one and give up the handle exactly
 * one detaches. A forked child has a count of its own, for its own copies of the buffers. */
#ifndef CLIENT_EXPORT_H
#define CLIENT_EXPORT_H

#include "client/segment/segment.h"

#pragma GCC visibility push(hidden)

#define DETACH_LATER 0x80000000u /* of n_buffers */

/* Returns a segment with nothing in it that is not on the list yet, or NULL with an error. */
struct shmview_segment *segment_new(struct shmview_connection *connection);

/* One more is out. Returns 0 and owes segment_drop(), or an error. Both belong into one
 * NOT_FORKED with what remembers them, so that a child inherits both or neither. */
int segment_hold(struct shmview_segment *segment);
/* One less. Returns whether it was the last of a segment that was given up; then the caller
 * owes segment_close(), outside of NOT_FORKED. Else the segment may be gone already. */
bool segment_drop(struct shmview_segment *segment);
/* Gives the attachment or the foreign memory back and frees the handle. */
void segment_close(struct shmview_segment *segment);

#pragma GCC visibility pop

#endif
