/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out requests, and ends what a connection has. A table has the methods; each row has a
 * function that reads the parameters and one that carries out the method. The server calls these
 * functions, as callbacks of connections (connection.h).
 *
 * A method runs on the loop and must be quick, because no other client is served until it returns.
 * Work that takes long is done on a thread (creation.h, methods_prepare()) or in turns
 * (departure.h, monitor.h, stats.h). */
#ifndef DAEMON_METHODS_H
#define DAEMON_METHODS_H

#include "daemon/requests/state.h"

/* Carries out a call. Fills in *answer, which must be zeroed; or sets answer->pending, and the
 * reply comes later by connection_answer(). Each call leads to one reply, success or refusal,
 * except Monitor, which sends many. */
void methods_call(struct state *state, struct connection *connection, const struct wire_call *call,
                  struct answer *answer);

/* Does what takes long of a call and needs no state: it reads and checks the parameters of
 * DefineLayout. Returns what methods_call() steals from connection->prepared, or NULL for other
 * methods and after an error, which methods_call() then finds again. Any thread. */
void *methods_prepare(const struct wire_call *call);
/* Frees what methods_prepare() returned, if the call is not carried out. */
void methods_unprepare(void *prepared);

/* Undoes an answer that cannot be sent: its new attachment and its new segment. Otherwise they
 * would stay, although the client does not know of them. */
void methods_cancel(struct state *state, struct connection *connection,
                    const struct answer *answer);

/* Ends the attachments and the created segments of the connection, unless its client lives. For a
 * connection that stays for a while, because requests of its dead client are still waiting. */
void methods_client_died(struct state *state, struct connection *connection);
/* Called when a connection is closed. Cancels what it waits for. If its client lives, attachments
 * and segments stay with the client (client_survive()); otherwise they are ended. */
void methods_hung_up(struct state *state, struct connection *connection);

/* Like methods_hung_up(), but when the daemon exits and its segments stay: the client keeps
 * everything for the next daemon, and what it does in shared memory is not disturbed. */
void methods_abandon(struct connection *connection);

#endif
