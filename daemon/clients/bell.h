/* SPDX-License-Identifier: Apache-2.0 */
/* The bell of a connection: a socket pair of its own, by which the client tells the daemon that a
 * segment has changed. The daemon then wakes the event loops that watch this segment. A client
 * rings without waiting; what it has rung while the daemon was stopped is there afterwards. */
#ifndef DAEMON_BELL_H
#define DAEMON_BELL_H

#include <stdbool.h>

struct bell;
struct connection;
struct turns;

/* The client of the connection has claimed what it had, and may have had no bell for its last
 * changes: wakes the event loops that watch what it has attached, a moment later. If a bell is
 * wanted, gives the connection one in place of an older one. Returns the client's end, which the
 * caller owns, or -errno; -ENOENT: none is wanted. */
int bell_open(struct turns *turns, struct connection *connection, bool wanted);

/* Takes NULL. Wakes first those who watch what the client has rung for, because its attachments may
 * outlive the connection. */
void bell_close(struct bell *bell);

#endif
