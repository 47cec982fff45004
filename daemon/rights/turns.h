/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is. The loop does one thing at a time, and some requests take a thousand times as
 * long as others.
 *
 *   event -> served at once
 *   event -> waits in the queue of its user -> served in a slice
 *
 * A connection has turns, and so has its bell, and whatever else of the daemon may take long: those
 * are the daemon's own.
 *
 * An event waits if its connection is slow, because many of its turns took long lately, and is not
 * the only active one; if other users are active, and its user has used up the share of time that
 * each user has for being served at once; or if this look for events has brought too much to do.
 *
 * Between two slices the loop looks for new events, so that a quick request waits for one slice at
 * most. Slow connections, and users beyond their share, get at most a fifth of the time while
 * others are active: a rest follows each of their turns, in which only others are served. Users
 * take turns, and pay for the time that they used; the daemon itself is one of them. Of one user's
 * connections quick ones come first, but slow ones have an eighth of the time in any case; of
 * equals the one comes first that has used least. */
#ifndef DAEMON_TURNS_H
#define DAEMON_TURNS_H

#include "daemon/base/alarm.h"
#include "daemon/rights/quota.h"

/* Something that has turns. */
struct turn {
    void (*serve)(struct turn *turn); /* when its turn comes after it had to wait */
    struct quota_user *payer;
    const void *who;       /* the connection that is active when it is served; NULL: none */
    unsigned brings;       /* of the time that it takes, so many times as much follows elsewhere */
    bool is_heavy;         /* its next turn is for the slow, whatever its last ones took */
    bool waits;            /* for serve() */
    bool waits_slow;       /* ... among those that are slow */
    bool is_known;         /* it has had a quick turn */
    uint8_t n_quick;       /* turns since the last long one */
    int64_t long_until_ns; /* until then it pays for its long turns */
    int64_t slow_ns;       /* used in turns that it waited for */
    TAILQ_ENTRY(turn) link;
};

/* Who was served last, and when; and when somebody else was. */
struct turns_seen {
    const void *last;
    int64_t last_ns, other_ns;
};

struct turns {
    uv_idle_t slices;               /* active while anybody waits who may be served */
    struct alarm resting;           /* set between slices while quick connections are active */
    TAILQ_HEAD(, quota_user) users; /* with turns that have not come yet */
    struct quota_user own;          /* the payer of the daemon's own */
    struct turns_seen connections, quick_connections, quick_users;
    struct turns_seen quick_open;   /* as quick_connections, without those that were closed since */
    int64_t began_ns, began_cpu_ns; /* of this turn */
    unsigned n_turns;
    int64_t round_ns; /* used at once since the last look for events */
};

/* Returns 0 or -errno. */
int turns_init(struct turns *turns, uv_loop_t *loop);

/* A user who is the daemon itself: it has a share of the time as users have. */
void turns_own_user(struct quota_user *ret);

/* The loop is about to look for events. */
void turns_round(struct turns *turns);

/* There is something to do. Returns true if it may be done now, and then the caller owes
 * turns_end(); else it waits, and serve() is called later. */
bool turns_begin(struct turns *turns, struct turn *turn);
void turns_end(struct turns *turns, struct turn *turn);

/* There is something to do that must wait, such as what one turn was too short for. */
void turns_again(struct turns *turns, struct turn *turn);

/* It waits no longer: it is about to be closed. */
void turns_cancel(struct turns *turns, struct turn *turn);

/* This connection, which is the who of turns, was closed. */
void turns_gone(struct turns *turns, const void *who);

/* Counts time that was used for the user beside turns of its own. */
void turns_charge(struct quota_user *user, int64_t used_ns);

#endif
