/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a long request on a thread, because making its values takes as long as serving many other
 * clients: a layout of 400 KiB took 5 ms of the loop.
 *
 *   digest_start() -> a thread -> connection_digested() -> digest_take()
 *        \-> digest_cancel(), at any of these
 *
 * Meanwhile the connection is `answering`: it takes no other request, so that their order is kept.
 * All functions run on the loop. */
#ifndef DAEMON_DIGEST_H
#define DAEMON_DIGEST_H

#include "daemon/clients/connection.h"

/* Hands a request to a thread: the n bytes of text that frame_next() has just returned. Returns
 * true if it did; connection_digested() is called later. Returns false if the loop must read the
 * request itself, because it is short, nobody pays for the connection, or memory is short. */
bool digest_start(struct connection *connection, const char *text, size_t n);

/* Returns what wire_call_parse() returned on the thread, with the same ownership, and sets
 * connection->prepared. Only after connection_digested(). */
int digest_take(struct connection *connection, struct wire_call *ret, struct wire_fault *ret_fault);

/* Drops the request, if there is one. */
void digest_cancel(struct connection *connection);

#endif
