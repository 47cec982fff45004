/* SPDX-License-Identifier: Apache-2.0 */
/* Creates segments, for the method Create and for the configuration.
 *
 *   name reserved -> memory allocated -> segment known -> attached -> reply
 *                        \-> failed or canceled: undone
 *
 * Creating a segment takes as long as the kernel takes to zero its memory: 0.3 to 0.4 us for each
 * KiB. Therefore threads allocate large segments, in steps (segment_allocate_some()). The loop
 * allocates a segment of at most 128 KiB if the client attaches it at once, because that takes less
 * time than handing it to a thread.
 *
 * Before the allocation the name is reserved, policy is applied, and the owner is charged. The
 * first step of the allocation then reserves all the memory. So most creations that fail do so
 * before they cost anything, and two of them never share the last of a resource. While a thread
 * works, further requests of the connection wait. */
#ifndef DAEMON_CREATION_H
#define DAEMON_CREATION_H

#include "daemon/requests/request.h"

/* The method Create. Fills in the reply, or sets answer->pending and sends the reply later by
 * connection_answer(). */
void creation_start(struct request *request, const union wanted *want);

/* Creates a segment that the configuration declares, with its layouts, on a thread. Logs errors. If
 * a creation begins, calls declared_done() when it is over, which is after this function returns.
 * want is borrowed until then. */
void creation_declare(struct state *state, const struct config_segment *want);

/* Cancels the creation that the connection waits for, if any, and undoes it: at once, or when the
 * current step of its thread has ended. The connection gets no reply. */
void creation_cancel(struct connection *connection);

#endif
