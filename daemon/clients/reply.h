/* SPDX-License-Identifier: Apache-2.0 */
/* Sends replies. A reply is sent at once as far as the socket takes it; the connection keeps the
 * rest, and the descriptors if nothing was sent. While it keeps a rest, it reads no request, so a
 * connection never has more than one reply.
 *
 * The descriptors go with the first byte of the reply. The kernel may refuse them, because a user
 * may have only so many in flight. Descriptors that are kept count as one connection more of the
 * user, who may have too many. Then the client gets another reply: `spare` of the answer, or an
 * error after what the reply gave was taken back.
 *
 * Each function may close the connection. None blocks. */
#ifndef DAEMON_REPLY_H
#define DAEMON_REPLY_H

#include "daemon/clients/connection.h"

struct quota_excess;

/* Sends the answer. A reply for which the user has no buffer quota left is replaced by a refusal.
 * Takes what *answer owns. */
void reply_send(struct connection *c, struct answer *answer);
/* Like reply_send(), but drops the answer if the call is oneway or the client has gone. */
void reply_give(struct connection *c, struct answer *answer);
/* Sends more of the reply that the connection keeps, as much as the socket takes. */
void reply_flush(struct connection *c);
/* Frees the reply that the connection keeps, if there is one, and refunds it. */
void reply_drop(struct connection *c);

/* Makes *answer the refusal of a buffer that would exceed the user's quota, and counts it. What the
 * answer would have given is taken back. */
void reply_refuse_buffer(struct connection *c, struct answer *answer,
                         const struct quota_excess *excess);

#endif
