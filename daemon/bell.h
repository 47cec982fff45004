/* SPDX-License-Identifier: Apache-2.0 */
/* The bell of a connection: a socket pair of its own, by which the client tells the daemon that a
 * segment has changed. The daemon then wakes the event loops that watch this segment. A client
 * rings without waiting; what it has rung while the daemon was stopped is there afterwards. */
#ifndef DAEMON_BELL_H
#define DAEMON_BELL_H

struct bell;
struct connection;

/* Gives the connection a bell, in place of an older one. A client that had attachments before it
 * connected again may have had no bell for its last changes: the event loops that watch what it
 * has attached are woken a moment later. Returns the client's end, the caller's; or -errno. */
int bell_open(struct connection *connection);

/* Takes NULL. Wakes first those who watch what the client has rung for, because its attachments may
 * outlive the connection. */
void bell_close(struct bell *bell);

#endif
