/* SPDX-License-Identifier: Apache-2.0 */
/* Accepts clients, in turns:
 *
 *   connects -> accepted -> admitted, or turned away
 *
 * To accept a client takes longer than most requests. A program that connected and hung up in a
 * loop made a ping of another client take five times as long, when the daemon accepted up to 16
 * clients at each look for events.
 *
 * A client that is not accepted keeps the listening socket readable, and the loop would spin. If
 * the process has no descriptor left, the daemon therefore frees a reserve descriptor, accepts the
 * client with it and hangs up, so that the client gets an end. If that fails too, or memory is
 * short, the door is shut: the daemon does not poll the socket for 100 ms, and clients wait. */
#ifndef DAEMON_DOOR_H
#define DAEMON_DOOR_H

#include "daemon/rights/turns.h"

/* The door of one listening socket. Loop only. */
struct door {
    uv_poll_t poll;
    uv_timer_t retry; /* active while the door is shut */
    struct turns *turns;
    struct turn turn;
    struct quota_user user; /* the payer of the turns: the time to accept has a share of its own */
    int listener;           /* borrowed */
    int reserve;            /* closed for a moment to turn a client away; -1: none */
    /* Takes fd over. Returns the user whose client this is, or NULL. */
    struct quota_user *(*admit)(void *arg, int fd);
    void *arg;
};

/* Prepares the door, which accepts nobody yet. Returns 0 or -errno. Also after an error the caller
 * must close door->reserve. */
int door_init(struct door *door, uv_loop_t *loop, struct turns *turns, int listener,
              struct quota_user *(*admit)(void *arg, int fd), void *arg);

/* Accepts clients from now on. Returns 0 or -errno. */
int door_open(struct door *door);

/* Accepts no further clients, and closes the handles. The listener and the reserve stay open. */
void door_close(struct door *door);

#endif
