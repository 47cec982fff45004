/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a long request on a thread, because making its values takes as long as serving many other
 * clients: a layout of 400 KiB took 5 ms of the loop.
 *
 *   digest_start() -> a thread -> connection_digested() -> digest_take() -> digest_end() -> a
 * thread
 *        \-> digest_cancel(), at any of these up to digest_take()
 *
 * Until connection_digested() the connection is `answering`: it takes no other request, so that
 * their order is kept. If the client hangs up, the request is done nevertheless, and nobody gets
 * the reply. All functions run on the loop. */
#ifndef DAEMON_DIGEST_H
#define DAEMON_DIGEST_H

#include "daemon/clients/connection.h"

/* Hands a request to a thread: the n bytes of text that frame_next() has just returned. Returns
 * true if it did; connection_digested() is called later. Charges the user for the bytes after the
 * request, and closes the connection if that is too much. Returns false if the loop must read the
 * request itself, because it is short, nobody pays for the connection, or memory is short. */
bool digest_start(struct connection *connection, const char *text, size_t n);

/* Fills in what wire_call_parse() filled in and returned on the thread, and sets
 * connection->prepared. Only after connection_digested(). The caller owes digest_end() for the
 * result, which owns the call, and does not call wire_call_deinit(). */
struct digest *digest_take(struct connection *connection, struct wire_call *ret,
                           struct wire_fault *ret_fault, int *ret_failed);

/* Frees the request, on a thread: to free its values takes a third as long as to make them. */
void digest_end(struct digest *digest);

/* Drops the request, if there is one. */
void digest_cancel(struct connection *connection);

#endif
