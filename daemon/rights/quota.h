/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon keeps for each user, and how much a user may have.
 *
 * Everything that a client makes is charged to a user when it is made, and refunded when it is
 * freed. The object that causes the charge stores the struct quota_user and owes the refund:
 *
 *   segment, its bytes, its layouts     its owner
 *   attachment, watch                   the user of the client that attached
 *   connection, monitor, buffers        the user at the other end of the socket
 *
 * Two limits hold for most kinds: one for each user and one for all users together. Without the
 * second one many users together could still use up the machine. Administrators are exempt from the
 * first one only.
 *
 * A struct quota_user exists while the user has a charge, or has requests to pay for by waiting. It
 * also holds the state of other modules for that user (turns, throttle, tasks), so that each of
 * them needs no table of its own. Adding a user may free users without charges: a pointer to a user
 * is valid only while its holder has a charge.
 *
 * All of this is used on the loop only. */
#ifndef DAEMON_QUOTA_H
#define DAEMON_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "daemon/base/table.h"
#include "daemon/base/task.h"

#define QUOTA_UNLIMITED UINT64_MAX

/* What one user, or all users together, may have. QUOTA_UNLIMITED: any number. */
struct quota_limit {
    uint64_t bytes;
    uint64_t segments;
    uint64_t attachments;
    uint64_t connections;
    uint64_t layout_bytes;
    uint64_t requests_per_second;
    uint64_t burst; /* requests that may come at once after a pause */
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
    QUOTA_LAYOUT_BYTES, /* text of layouts, which the daemon and the registry keep */
    QUOTA_BUFFERS,      /* "buffer_bytes": bytes of requests and replies that the daemon holds */
    QUOTA_MONITORS,
    QUOTA_WATCHES,
    N_QUOTA_KINDS
};

struct connection;
struct quota;
struct turn;
TAILQ_HEAD(connections_waiting, connection);
TAILQ_HEAD(turns_waiting, turn);

/* One user. The first four members belong to quota.c, the others to the module that is named. */
struct quota_user {
    struct quota *quota; /* NULL for a user that stands for the daemon itself (turns.h) */
    uid_t uid;
    uint64_t used[N_QUOTA_KINDS];
    /* the time at which the requests so far are paid for, at the rate that the user may have */
    int64_t paid_until_ns;
    /* daemon/clients/throttle.c */
    struct connections_waiting throttled; /* wait until the user may send a request again */
    TAILQ_ENTRY(quota_user) link;         /* in the list of users with throttled connections */
    /* turns.c */
    struct turns_waiting quick, slow; /* turns that wait */
    TAILQ_ENTRY(quota_user) turn;     /* in the list of users with waiting turns */
    int64_t debt_ns;                  /* time used in slices, still to be paid back */
    int64_t share_until_ns;           /* like paid_until_ns, for time served at once */
    int64_t slow_ns;                  /* slow_ns of the slow turn that was served last */
    int64_t slow_due_ns;              /* time that the slow turns have earned */
    bool waits_turn;                  /* in that list */
    /* daemon/base/task.c */
    struct task_user tasks;
    bool is_linked; /* in the list of throttle.c */
    /* quota.c */
    struct table_link by_uid;
    LIST_ENTRY(quota_user) sibling; /* in the list of all users */
};

struct quota {
    const struct quota_limits *limits; /* in force; borrowed, replaced by reload.c */
    struct table users;                /* by uid */
    LIST_HEAD(, quota_user) all;       /* of users */
    uint64_t used[N_QUOTA_KINDS];      /* by all users together */
    int64_t paid_until_ns;             /* as of a user, for the requests of all */
    unsigned n_sweep;                  /* from so many users on, idle users are freed */
    TAILQ_HEAD(, quota_user) throttled;
};

/* How much of one kind a user has, how much all have together, and the limits of both. */
struct quota_usage {
    const char *what; /* "bytes" ... */
    uint64_t used, limit, total_used, total_limit;
};

/* The facts of a refusal, for the error reply. */
struct quota_excess {
    const char *what; /* "bytes" ... */
    uint64_t asked, used, limit;
    uint64_t kept; /* if not 0: so many are left, but only for users who have fewer than that */
    bool of_all;   /* used and limit are those of all users together */
};

void quota_init(struct quota *quota, const struct quota_limits *limits);
/* Frees all users. Nothing may hold a charge. */
void quota_deinit(struct quota *quota);

/* Charges a user for amount more. If is_admin, the limit of one user does not apply. Returns 0, and
 * the caller owes quota_refund() for *ret_user; -EDQUOT with *ret_excess; or -ENOMEM. */
int quota_charge(struct quota *quota, uid_t uid, bool is_admin, enum quota_kind kind,
                 uint64_t amount, struct quota_user **ret_user, struct quota_excess *ret_excess);

/* Whether a user may have one more of a kind. The user has the first number of them, `all` are
 * taken by anyone, and there can be `most`. A user gets one of the last eighth only while that user
 * has fewer than are left. Thus one user cannot take all, and a user who has none yet gets one. */
bool quota_in_share(uint64_t his, uint64_t all, uint64_t most);

/* Like quota_charge(), for one object of a kind of which there can be at most `most`, and which is
 * shared by quota_in_share(). The share also applies to administrators. */
int quota_charge_share(struct quota *quota, uid_t uid, bool is_admin, enum quota_kind kind,
                       uint64_t most, struct quota_user **ret_user,
                       struct quota_excess *ret_excess);

/* Charges a user without comparing with the limits, for objects that exist already. Returns the
 * user, to whom the caller owes quota_refund(), or NULL if memory is short. With amount 0 it only
 * finds or adds the user. */
struct quota_user *quota_restore(struct quota *quota, uid_t uid, enum quota_kind kind,
                                 uint64_t amount);

/* Returns a charge. user may be NULL if nobody was charged. */
void quota_refund(struct quota_user *user, enum quota_kind kind, uint64_t amount);

/* Returns the usage of a user, for a reply. Never fails. */
struct quota_usage quota_usage(const struct quota *quota, uid_t uid, bool is_admin,
                               enum quota_kind kind);

/* Counts a request at time now_ns if the user may make it now. Returns 0 if so; otherwise how many
 * nanoseconds the request must wait, and counts nothing. */
int64_t quota_request(struct quota_user *user, bool is_admin, int64_t now_ns);

/* Whether a limit on the rate of requests is configured. */
bool quota_limits_requests(const struct quota *quota);

/* The charge for the data of a segment: its size in whole pages, as the kernel allocates it. */
uint64_t quota_bytes(uint64_t size);

#endif
