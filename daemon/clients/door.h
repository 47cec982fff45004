/* SPDX-License-Identifier: Apache-2.0 */
/* Where clients come in. The daemon accepts them in turns of its own, because to accept a client
 * takes longer than most requests:
 *
 *   knocks -> accepted -> admitted
 *
 * Where there is no descriptor for a client the daemon takes its connection on a reserve and hangs
 * up. Where not even that is possible, or the kernel has no memory, those who knock wait a moment.
 */
#ifndef DAEMON_DOOR_H
#define DAEMON_DOOR_H

#include "daemon/rights/turns.h"

struct door {
    uv_poll_t poll;
    uv_timer_t retry; /* active while the door is shut */
    struct turns *turns;
    struct turn turn;
    struct quota_user user; /* the payer of the turns: the time to accept has a share of its own */
    int listener;           /* borrowed */
    int reserve;            /* given up for a moment to turn a client away */
    /* Takes fd over. Returns the user whose client this is, or NULL. */
    struct quota_user *(*admit)(void *arg, int fd);
    void *arg;
};

/* Prepares the door, which stays shut. Returns 0, or -errno. The reserve is there in any case and
 * is the caller's to close. */
int door_init(struct door *door, uv_loop_t *loop, struct turns *turns, int listener,
              struct quota_user *(*admit)(void *arg, int fd), void *arg);

/* Lets clients in from now on. Returns 0 or -errno. */
int door_open(struct door *door);

/* Lets nobody in any more; closes the handles. */
void door_close(struct door *door);

#endif
