/* SPDX-License-Identifier: Apache-2.0 */
/* Divides the time of the loop among connections and users. The loop does one thing at a time, and
 * some requests take a thousand times as long as others. Without this module a client with slow
 * requests would delay every other client by the time that they take.
 *
 *   event -> served at once
 *   event -> waits in the queue of its user -> served in a slice
 *
 * To serve one event is a turn. A connection has turns, and so has its bell. Work of the daemon
 * that may take long, such as ringing watchers, has turns too; the daemon itself pays for those.
 *
 * Most events are served at once. An event waits in these cases:
 *   - Its connection is slow, because many of its turns took long lately or its last reply was
 *     long, and it is not the only active connection.
 *   - Its user has used up the share of time for being served at once, and others are active.
 *   - The loop has served events at once for 0.25 ms since it last looked for new ones.
 *
 * Waiting turns are served in slices of 0.25 ms, or shorter ones if the loop has had much to do
 * (slice.h). Between two slices the loop looks for new events, so a quick request waits for one
 * slice at most. Among waiting turns:
 *   - Users take turns, and a user pays with later turns for the time that the last ones used. The
 *     daemon counts as one of the users.
 *   - Of one user's connections quick ones come first, but slow ones get at least an eighth of the
 *     time.
 *   - Among equal connections the one comes first that has used least.
 *   - After a slice with turns of slow connections, or of users beyond their share, the loop rests:
 *     for four times as long as these turns took it serves only others. Such turns thus get a fifth
 *     of the time at most while others are active.
 *
 * Time is measured, and requests are not counted: with turns of one request each, 64 connections
 * with slow requests delayed everybody else by 64 slow requests. */
#ifndef DAEMON_TURNS_H
#define DAEMON_TURNS_H

#include "daemon/base/alarm.h"
#include "daemon/rights/quota.h"

/* Something that has turns; embedded in a connection, a bell, the door and others. The owner sets
 * the members up to is_heavy; turns.c writes the rest. */
struct turn {
    void (*serve)(struct turn *turn); /* called when a turn comes that had to wait */
    struct quota_user *payer;
    const void *who;       /* the connection that counts as active when this is served, or NULL */
    unsigned brings;       /* a turn of t ns causes brings * t ns of work later, which is counted */
    bool is_heavy;         /* the next turn counts as slow, whatever the last ones took */
    bool waits;            /* in a queue of its payer; serve() will be called */
    bool waits_slow;       /* in the slow one */
    bool is_known;         /* has had a quick turn */
    uint8_t n_quick;       /* quick turns since the last long one, MEASURED at most */
    int64_t long_until_ns; /* the time at which its long turns are paid for */
    int64_t slow_ns;       /* time used in slow turns; see wait_turn() */
    TAILQ_ENTRY(turn) link;
};

/* Remembers just enough to answer whether anyone but X was active lately: who was served last and
 * when, and when anyone else was served. Pointers are compared only, so they may dangle. */
struct turns_seen {
    const void *last;
    int64_t last_ns, other_ns;
};

/* One for each loop. */
struct turns {
    uv_idle_t slices;               /* active while a turn waits that may be served */
    struct alarm resting;           /* set while the loop rests, see above */
    TAILQ_HEAD(, quota_user) users; /* users with waiting turns, in the order of their turns */
    struct quota_user own;          /* pays for work of the daemon itself */
    /* all turns of connections; quick ones by connection; quick ones by user */
    struct turns_seen connections, quick_connections, quick_users;
    struct turns_seen quick_open;   /* quick_connections without connections that were closed */
    int64_t began_ns, began_cpu_ns; /* of the current turn; CPU time 0: not measured */
    unsigned n_turns;
    /* since the last look for events: the time used by turns at once, and the time that closing the
     * connections takes that ended */
    int64_t round_ns, closing_ns;
};

/* Returns 0 or -errno. Closing all handles of the loop closes those of turns, too. */
int turns_init(struct turns *turns, uv_loop_t *loop);

/* Makes a user that stands for the daemon, with the same share of the time as other users. */
void turns_own_user(struct quota_user *ret);

/* Call before the loop looks for events. */
void turns_round(struct turns *turns);

/* Call when there is something to do. Returns true if the caller may do it now; then it owes
 * turns_end() afterwards. Otherwise the turn waits, and serve() is called later; the caller should
 * ignore further events until then. */
bool turns_begin(struct turns *turns, struct turn *turn);
void turns_end(struct turns *turns, struct turn *turn);

/* Call when there is something to do that must wait, such as the rest of work for which one turn
 * was too short. serve() is called later. */
void turns_again(struct turns *turns, struct turn *turn);

/* Removes a turn from its queue, if it waits. Call before its memory is freed. */
void turns_cancel(struct turns *turns, struct turn *turn);

/* Call when a connection ends that is the `who` of turns. */
void turns_gone(struct turns *turns, const void *who);

/* Counts time that was used for the user in the turn of another payer, such as accepting the user's
 * connection. */
void turns_charge(struct quota_user *user, int64_t used_ns);

#endif
