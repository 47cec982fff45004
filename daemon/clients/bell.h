/* SPDX-License-Identifier: Apache-2.0 */
/* The bell of a connection: a socket pair by which its client reports that a segment has changed.
 * The daemon then wakes the event loops that watch this segment.
 *
 *   client sends the id of an attachment -> on_ring() -> attachment_ring() wakes the watchers
 *   the client has rung often            -> all its segments wait in ringing.h for their turn
 *   client sends that and the id of a holder for which it waits
 *                                        -> if the holder's process is exiting, its client ends
 *
 * Clients do not ring each other directly, because a client must not get a socket of another one.
 * A client never waits for the daemon here: it drops a ring if the queue is full, and the daemon
 * makes up for that (see MANY_RINGS in bell.c). Rings stay in the queue while the daemon is
 * stopped.
 *
 * The kernel refuses descriptors that the client sends here (stray.h). On older kernels a
 * message with descriptors is the last one that the bell takes, and its client gets no other bell:
 * thus there is at most one bell with descriptors for each connection that its user is charged for.
 */
#ifndef DAEMON_BELL_H
#define DAEMON_BELL_H

#include <stdbool.h>

struct bell;
struct connection;
struct turns;

/* Call when the client of the connection has sent Claim. If a bell is wanted, gives the connection
 * a new one and closes its old one. In any case lets the watchers of all segments that the client
 * has attached be woken soon, because the client may have had no bell for its last changes.
 *
 * Returns the client's end, which the caller owns. Returns -ENOENT if no bell is wanted, -EPROTO if
 * the client has sent descriptors to the old one, or another -errno. Does not block. */
int bell_open(struct turns *turns, struct connection *connection, bool wanted);

/* Closes the bell, which may be NULL; its memory is freed by the loop. First takes the last rings
 * and wakes the watchers, because the attachments may outlive the connection. A bell with
 * descriptors is charged as a connection until a thread has closed it. */
void bell_close(struct bell *bell);

#endif
