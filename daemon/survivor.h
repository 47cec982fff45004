/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that hold something, though not by a connection: from before this daemon was
 * started, not having said a word to it yet; or because a child has entrusted it to them.
 *
 *   found in the store -> claims what is its own, by a connection -> gone
 *   found in the store -> dies -> gone, and what it held is taken back
 *   entrusted          -> dies -> the same
 *
 * A process may have had several connections; each claims its own. What is entrusted is of
 * no connection: its client is 0. */
#ifndef DAEMON_SURVIVOR_H
#define DAEMON_SURVIVOR_H

#include <sys/queue.h>
#include <uv.h>

#include "daemon/attachment.h"

struct state;

struct survivor {
    struct state *state;
    uint32_t pid;
    uint64_t birth;
    int pidfd;
    uv_poll_t poll;
    struct attachments attachments;
    LIST_HEAD(, segment) created;
    LIST_ENTRY(survivor) link;
};
LIST_HEAD(survivors, survivor);

/* The survivor who is holder, new if need be. Returns NULL with errno: ESRCH if he is dead. */
struct survivor *survivor_find(struct state *state, const struct store_holder *holder);

/* Lets segment, which is on the list of a connection or a survivor, go with the process pid.
 * Returns 0; 1 if that is no process of this uid's, or -errno; then all is as it was. */
int survivor_entrust(struct state *state, struct segment *segment, pid_t pid, uid_t uid);

/* Gives what connection's holder had to it: of its attachments those in held, the rest is
 * ended; and the segments that it created. */
void survivor_claim(struct state *state, struct connection *connection,
                    const struct wire_held *held, size_t n);

/* Frees all; what they hold stays for the next daemon. */
void survivors_leave(struct state *state);

#endif
