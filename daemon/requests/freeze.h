/* SPDX-License-Identifier: Apache-2.0 */
/* The method Freeze: lets a client make the bytes of a segment immutable.
 *
 *   begun -> (the client adds the seal) -> ended
 *
 * The daemon decides who may freeze, and the client adds the seal, by a descriptor that it gets
 * here. The kernel looks at each page for that, which takes some 10 ms for each gigabyte, and waits
 * for pages that are pinned: on the loop, one client could stop all others. The client could add
 * the seal by its descriptor of the attachment as well, so that it gets no further right.
 *
 * Between begin and end no client can attach the segment for writing, because the kernel would not
 * notice a second writer where the seal is only against future ones. */
#ifndef DAEMON_FREEZE_H
#define DAEMON_FREEZE_H

#include <stdbool.h>

struct attachment;
struct request;
struct segment;

/* Checks that the client may freeze the segment of its attachment, and replies with descriptors of
 * the data. Or refuses. */
void freeze_begin(const struct request *request, struct attachment *attachment);

/* Like freeze_end(), for a client that reports the end. Refuses if an earlier daemon had begun it,
 * and others have attached the segment for writing before the client could add its seal. */
void freeze_done(const struct request *request, struct attachment *attachment);

/* Ends what freeze_begin() has begun, if it was this attachment's. If nobody can write to the
 * segment any longer, the attachment has access read from now on. */
void freeze_end(struct attachment *attachment);

/* Whether the segment can be attached for writing. Returns false after refusing: it is frozen, or
 * being frozen. */
bool freeze_lets_write(const struct request *request, const struct segment *segment);

#endif
