/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is. The loop serves one connection at a time, and some requests take a thousand
 * times as long as others.
 *
 *   event -> served at once
 *   event -> waits in the queue of its user -> served in a slice
 *
 * An event waits if its connection is slow, because many of its turns took long lately, and is not
 * the only active one; if other users are active, and its user has used up the share of time that
 * each user has for being served at once; or if this look for events has brought too much to do.
 *
 * Between two slices the loop looks for new events, so that a quick request waits for one slice at
 * most. Slow connections, and users beyond their share, get at most a fifth of the time while
 * others are active: a rest follows each of their turns, in which only others are served. Users
 * take turns, and pay for the time that they used. Of one user's connections quick ones come first,
 * but slow ones have an eighth of the time in any case; of equals the one comes first that has used
 * least. */
#ifndef DAEMON_TURNS_H
#define DAEMON_TURNS_H

#include "daemon/alarm.h"
#include "daemon/connection.h"
#include "daemon/quota.h"

/* Who was served last, and when; and when somebody else was. */
struct turns_seen {
    const void *last;
    int64_t last_ns, other_ns;
};

struct turns {
    uv_idle_t slices;               /* active while anybody waits who may be served */
    struct alarm resting;           /* set between slices while quick connections are active */
    TAILQ_HEAD(, quota_user) users; /* with connections that wait */
    struct turns_seen connections, quick_connections, quick_users;
    int64_t began_ns, began_cpu_ns; /* of this turn */
    unsigned n_turns;
    int64_t round_ns; /* used at once since the last look for events */
};

/* Returns 0 or -errno. */
int turns_init(struct turns *turns, uv_loop_t *loop);

/* The loop is about to look for events. */
void turns_round(struct turns *turns);

/* The connection, which has a payer, has something to do. Returns true if it may do it now, and
 * owes turns_end(); else it waits, and connection_serve() is called later. */
bool turns_begin(struct turns *turns, struct connection *connection);
void turns_end(struct turns *turns, struct connection *connection);

/* The connection has more to do than one turn may take: it waits. */
void turns_again(struct turns *turns, struct connection *connection);

/* The connection waits no longer: it was closed. */
void turns_forget(struct turns *turns, struct connection *connection);

#endif
