/* SPDX-License-Identifier: Apache-2.0 */
/* The count of buffers and tensors that still use a segment.
 *
 * A buffer or a tensor that a consumer has not released holds its segment, because the consumer has
 * bare addresses into the mapping. n_buffers of the segment counts them:
 *
 *     n          shmview_detach() refuses unless n is 0
 *     LATER + n  shmview_detach_later() was called; the release that makes n 0 detaches
 *
 * Count and mark are one word. Therefore, if one thread releases the last buffer while another one
 * calls shmview_detach_later(), exactly one of them detaches. A forked child has a count of its
 * own, for its own copies of the buffers. */
#ifndef CLIENT_EXPORT_H
#define CLIENT_EXPORT_H

#include "client/segment/segment.h"

#pragma GCC visibility push(hidden)

#define DETACH_LATER 0x80000000u /* of n_buffers */

/* Returns an empty handle that is not on any list yet, or NULL after setting the error text.
 * connection NULL: foreign memory. The caller must free it or complete it. */
struct shmview_segment *segment_new(struct shmview_connection *connection);

/* Completes an empty handle from the reply to Create or Attach; flags are those of
 * shmview_attach(). created is the name for a Create, otherwise NULL. Returns 0, or an error after
 * it has removed what was created, ended the attachment and freed the handle. The caller still owes
 * reply_deinit(). */
int segment_take(struct shmview_segment *segment, struct reply *reply, unsigned flags,
                 const char *created);
/* Removes a segment that this client has created. Keeps the text of the error. Call it before the
 * attachment ends: that may free the name, and then another process may have it. */
void segment_undo(struct shmview_connection *connection, const char *name);

/* Checks the options of a Create, and returns in *ret all but name and size, and in *ret_flags the
 * options' flags. Returns 0, after which the caller must free ret->grant.acl, or an error. */
int segment_read_options(const struct shmview_create_options *options, struct wire_create *ret,
                         unsigned *ret_flags);
/* Checks name and size, and enters them; name is borrowed. Returns 0 or an error. */
int segment_name_create(struct wire_create *create, const char *name, uint64_t size);

/* Sends a Create, with memory of this process if *create wants that, and makes a handle. Returns 0
 * or an error. */
int segment_create(struct shmview_connection *connection, const struct wire_create *create,
                   unsigned flags, struct shmview_segment **ret_segment);

/* Counts one more buffer. Returns 0, after which the caller must call segment_drop() once, or an
 * error. Call both within one NOT_FORKED together with the change of what remembers the buffer, so
 * that a forked child inherits both or neither. */
int segment_hold(struct shmview_segment *segment);
/* Counts one buffer less. Returns whether it was the last one of a segment that
 * shmview_detach_later() has given up. Then the caller must call segment_close(), outside
 * NOT_FORKED. Otherwise the segment may be gone already: the caller must not touch it. */
bool segment_drop(struct shmview_segment *segment);
/* Returns 0, or -SHMVIEW_ERR_BUSY if buffers are out or a thread of this process holds the lock. */
int segment_check_idle(struct shmview_segment *segment);
/* Ends the attachment or releases the foreign memory, and frees the handle. Does not wait for the
 * daemon. Outside NOT_FORKED, because it may call a release function of the program. */
void segment_close(struct shmview_segment *segment);

#pragma GCC visibility pop

#endif
