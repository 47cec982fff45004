/* SPDX-License-Identifier: Apache-2.0 */
/* The method Claim, by which a client identifies itself on a new connection.
 *
 * A client chooses a random number and sends it before its other requests. After a lost connection,
 * or to a later daemon, it sends that number again with the attachments that it knows of, and gets
 * these and its created segments back. The daemon ends the attachments that it does not name: their
 * replies have not arrived, or the client has detached them since. The reply may bring two
 * descriptors: a presence, by which the daemon recognises later that the client is alive, and a
 * bell for changes. Clients that never claim are served, too; they lose everything with their
 * connection. client.h keeps the clients. */
#ifndef DAEMON_CLAIM_H
#define DAEMON_CLAIM_H

#include "daemon/requests/request.h"

/* Makes the connection that of the client, and replies with its attachments and the descriptors.
 * Refuses if the connection is another client already. */
void claim_answer(struct request *request, const union wanted *want);

#endif
