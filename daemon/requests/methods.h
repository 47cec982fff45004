/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon does for a request: one table, one function a method. */
#ifndef DAEMON_METHODS_H
#define DAEMON_METHODS_H

#include "daemon/requests/state.h"

/* Answers call. Creation answers later, by connection_answer(). */
void methods_call(struct state *state, struct connection *connection, const struct wire_call *call,
                  struct answer *answer);

/* Undoes what answer, which cannot be sent, has given: its attachment, and its segment. */
void methods_cancel(struct state *state, struct connection *connection,
                    const struct answer *answer);

/* Ends the attachments of the connection, and the segments that go with their creator, if its
 * client is dead. */
void methods_client_died(struct state *state, struct connection *connection);
/* Cancels what the connection waits for. Everything that it holds stays with its client as long
 * as that lives, or is given back. */
void methods_hung_up(struct state *state, struct connection *connection);

/* The same for a client that lives on without this daemon: nothing of what it does in
 * memory is disturbed. */
void methods_abandon(struct connection *connection);

#endif
