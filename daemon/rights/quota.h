/* SPDX-License-Identifier: Apache-2.0 */
/* What each user has of the daemon's things, and how much that may be. Whatever a client
 * makes is charged when it is made and refunded when it is freed, by the one who holds it:
 *
 *   segment, its bytes, its layouts -> its owner      attachment, connection -> who has it
 *
 * A user is remembered as long as he has anything, or has asked too fast lately. */
#ifndef DAEMON_QUOTA_H
#define DAEMON_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

/* a table that cannot grow says so instead of ending the daemon */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/base/task.h"

#define QUOTA_UNLIMITED UINT64_MAX

/* What one user, or all together, may have. QUOTA_UNLIMITED: any number. */
struct quota_limit {
    uint64_t bytes;
    uint64_t segments;
    uint64_t attachments;
    uint64_t connections;
    uint64_t layout_bytes;
    uint64_t requests_per_second;
    uint64_t burst; /* requests at once after a pause */
};

struct quota_limits {
    struct quota_limit user;  /* each uid */
    struct quota_limit total; /* all uids together */
};

enum quota_kind {
    QUOTA_BYTES,
    QUOTA_SEGMENTS,
    QUOTA_ATTACHMENTS,
    QUOTA_CONNECTIONS,
    QUOTA_LAYOUT_BYTES, /* of the text of layouts, which the daemon and its registry hold */
    QUOTA_BUFFERS,      /* bytes of requests and replies that the daemon holds for him */
    QUOTA_MONITORS,
    QUOTA_WATCHES,
    N_QUOTA_KINDS
};

struct connection;
struct quota;
struct turn;
TAILQ_HEAD(connections_waiting, connection);
TAILQ_HEAD(turns_waiting, turn);

struct quota_user {
    struct quota *quota;
    uid_t uid;
    uint64_t used[N_QUOTA_KINDS];
    int64_t paid_until_ns;                /* his requests so far, at the rate he may have */
    struct connections_waiting throttled; /* until he may ask again */
    TAILQ_ENTRY(quota_user) link;         /* of those with such connections */
    struct turns_waiting quick, slow;     /* that have not come yet */
    TAILQ_ENTRY(quota_user) turn;         /* of those with such turns */
    int64_t debt_ns;                      /* used in turns, to be paid back */
    int64_t share_until_ns;               /* as paid_until_ns, of the time served at once */
    int64_t slow_ns;                      /* what the slow one that was served last had used */
    int64_t slow_due_ns; /* what its slow ones may use before its quick ones come again */
    bool waits_turn;
    struct task_user tasks;
    bool is_linked;
    UT_hash_handle hh;
};

struct quota {
    const struct quota_limits *limits; /* those in force */
    struct quota_user *users;
    uint64_t used[N_QUOTA_KINDS]; /* by all */
    int64_t paid_until_ns;
    unsigned n_sweep; /* users that are to be there before idle ones are looked for */
    TAILQ_HEAD(, quota_user) throttled;
};

/* What a user has of one kind, and all together, and the limits: QUOTA_UNLIMITED: none. */
struct quota_usage {
    const char *what; /* "bytes" ... */
    uint64_t used, limit, total_used, total_limit;
};

/* Why something is refused. */
struct quota_excess {
    const char *what; /* "bytes" ... */
    uint64_t asked, used, limit;
    uint64_t kept; /* so many are left, for users that have fewer; 0: does not matter */
    bool of_all;   /* it is the limit of all users together */
};

void quota_init(struct quota *quota, const struct quota_limits *limits);
/* Nobody has anything any more. */
void quota_deinit(struct quota *quota);

/* Charges uid for amount more. is_admin: what one user may have does not hold.
 * Returns 0 with *ret_user, whom quota_refund() is owed; -EDQUOT with *ret_excess; -ENOMEM. */
int quota_charge(struct quota *quota, uid_t uid, bool is_admin, enum quota_kind kind,
                 uint64_t amount, struct quota_user **ret_user, struct quota_excess *ret_excess);

/* Whether a user who has his, of all that are taken, may have one more of most. The last eighth
 * goes only to users who have fewer than are left, so that there is one for others. */
bool quota_in_share(uint64_t his, uint64_t all, uint64_t most);

/* Like quota_charge() for one of a kind of which there are most, and of which each user gets his
 * share; administrators too. */
int quota_charge_share(struct quota *quota, uid_t uid, bool is_admin, enum quota_kind kind,
                       uint64_t most, struct quota_user **ret_user,
                       struct quota_excess *ret_excess);

/* Charges him for what is there already, whatever he may have. Returns the user whom a
 * quota_refund() is owed, or NULL: memory is short. */
struct quota_user *quota_restore(struct quota *quota, uid_t uid, enum quota_kind kind,
                                 uint64_t amount);

/* Takes NULL: nobody was charged. */
void quota_refund(struct quota_user *user, enum quota_kind kind, uint64_t amount);

/* Never fails; changes nothing. */
struct quota_usage quota_usage(const struct quota *quota, uid_t uid, bool is_admin,
                               enum quota_kind kind);

/* Counts one request of his at the time now_ns, if he may make it now. Returns 0; else the
 * nanoseconds until he may. */
int64_t quota_request(struct quota_user *user, bool is_admin, int64_t now_ns);

/* Whether anybody's requests have a rate that they may not exceed. */
bool quota_limits_requests(const struct quota *quota);

/* Data of a segment, as it is charged: whole pages. */
uint64_t quota_bytes(uint64_t size);

#endif
