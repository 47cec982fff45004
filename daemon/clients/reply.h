/* SPDX-License-Identifier: Apache-2.0 */
/* Replies on their way to the client. */
#ifndef DAEMON_REPLY_H
#define DAEMON_REPLY_H

#include "daemon/clients/connection.h"

struct quota_excess;

/* Sends what the socket takes, the descriptors with its first byte; keeps the rest. Takes what
 * *answer owns. */
void reply_send(struct connection *c, struct answer *answer);
/* Like reply_send(), but drops an answer that nobody hears. */
void reply_give(struct connection *c, struct answer *answer);
/* Sends more of what was kept. */
void reply_flush(struct connection *c);

/* Makes *answer the refusal of a buffer; what it gave is taken back. */
void reply_refuse_buffer(struct connection *c, struct answer *answer,
                         const struct quota_excess *excess);

#endif
