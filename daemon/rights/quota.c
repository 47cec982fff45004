/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rights/quota.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/limits.h"
#include "common/base/util.h"

#define PAGE_BYTES  4096
#define SWEEP_FIRST 64 /* number of users at which the first sweep comes */
#define SECOND_NS   1000000000
#define KEPT_PART   8 /* the last 1/8 of a shared kind is kept for users who have few */

void quota_init(struct quota *quota, const struct quota_limits *limits)
{
    *quota = (struct quota){.limits = limits, .n_sweep = SWEEP_FIRST};
    TAILQ_INIT(&quota->throttled);
}

static void forget(struct quota_user *user)
{
    table_remove(&user->quota->users, &user->by_uid);
    LIST_REMOVE(user, sibling);
    free(user);
}

void quota_deinit(struct quota *quota)
{
    struct quota_user *u;
    while ((u = LIST_FIRST(&quota->all)))
        forget(u);
}

/* --- Users --------------------------------------------------------------- */

/* Whether nothing is lost if the user is freed. */
static bool is_idle(const struct quota_user *user, int64_t now)
{
    for (int i = 0; i < N_QUOTA_KINDS; i++)
        if (user->used[i])
            return false;
    return user->paid_until_ns <= now;
}

/* Frees idle users. A user whose requests are not paid for is kept, because a new struct would
 * allow a full burst again. The next sweep comes when the number of users has doubled, so that
 * adding a user is cheap on average. */
static void sweep(struct quota *quota)
{
    int64_t now = now_ns();
    for (struct quota_user *u = LIST_FIRST(&quota->all), *next; u; u = next) {
        next = LIST_NEXT(u, sibling);
        if (is_idle(u, now))
            forget(u);
    }
    quota->n_sweep = (unsigned)quota->users.n * 2 + SWEEP_FIRST;
}

static struct quota_user *find(const struct quota *quota, uid_t uid)
{
    struct table_link *l = table_first(&quota->users, table_hash_number(uid));
    for (; l; l = table_next(l)) {
        struct quota_user *u = CONTAINER_OF(l, struct quota_user, by_uid);
        if (u->uid == uid)
            return u;
    }
    return NULL;
}

/* Finds a user or adds one. May free users without charges. Returns NULL if memory is short. */
static struct quota_user *user_of(struct quota *quota, uid_t uid)
{
    struct quota_user *u = find(quota, uid);
    if (u)
        return u;
    if (quota->users.n >= quota->n_sweep)
        sweep(quota);
    u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->quota = quota;
    u->uid = uid;
    TAILQ_INIT(&u->throttled);
    TAILQ_INIT(&u->quick);
    task_user_init(&u->tasks);
    TAILQ_INIT(&u->slow);
    table_add(&quota->users, &u->by_uid, table_hash_number(uid));
    LIST_INSERT_HEAD(&quota->all, u, sibling);
    return u;
}

/* --- Charging ------------------------------------------------------------ */

static uint64_t limit_of(const struct quota_limit *limits, enum quota_kind kind)
{
    const uint64_t each[N_QUOTA_KINDS] = {
        limits->bytes,        limits->segments, limits->attachments, limits->connections,
        limits->layout_bytes, QUOTA_UNLIMITED,  QUOTA_UNLIMITED,     QUOTA_UNLIMITED};
    return each[kind];
}

static const char *const names[N_QUOTA_KINDS] = {"bytes",       "segments",     "attachments",
                                                 "connections", "layout_bytes", "buffer_bytes",
                                                 "monitors",    "watches"};

/* Whether amount more would exceed the limit. Fills *ret if so. */
static bool exceeds(uint64_t used, uint64_t amount, uint64_t limit, enum quota_kind kind,
                    struct quota_excess *ret)
{
    if (used <= limit && amount <= limit - used)
        return false;
    *ret =
        (struct quota_excess){.what = names[kind], .asked = amount, .used = used, .limit = limit};
    return true;
}

static void add(struct quota_user *user, enum quota_kind kind, uint64_t amount)
{
    user->used[kind] += amount;
    user->quota->used[kind] += amount;
}

int quota_charge(struct quota *quota, uid_t uid, bool is_admin, enum quota_kind kind,
                 uint64_t amount, struct quota_user **ret_user, struct quota_excess *ret_excess)
{
    struct quota_user *u = user_of(quota, uid);
    if (!u)
        return -ENOMEM;
    uint64_t limit =
        kind == QUOTA_BUFFERS ? LIMIT_BUFFERS_BYTES : limit_of(&quota->limits->user, kind);
    if (!is_admin && exceeds(u->used[kind], amount, limit, kind, ret_excess))
        return -EDQUOT;
    if (exceeds(quota->used[kind], amount, limit_of(&quota->limits->total, kind), kind,
                ret_excess)) {
        ret_excess->of_all = true;
        return -EDQUOT;
    }
    add(u, kind, amount);
    *ret_user = u;
    return 0;
}

bool quota_in_share(uint64_t his, uint64_t all, uint64_t most)
{
    uint64_t left = most > all ? most - all : 0;
    return left > most / KEPT_PART || his < left;
}

int quota_charge_share(struct quota *quota, uid_t uid, bool is_admin, enum quota_kind kind,
                       uint64_t most, struct quota_user **ret_user, struct quota_excess *ret_excess)
{
    struct quota_user *u;
    int r = quota_charge(quota, uid, is_admin, kind, 1, &u, ret_excess);
    if (r)
        return r;
    uint64_t his = u->used[kind] - 1, all = quota->used[kind] - 1;
    if (quota_in_share(his, all, most)) {
        *ret_user = u;
        return 0;
    }
    quota_refund(u, kind, 1);
    *ret_excess = (struct quota_excess){.what = names[kind], .asked = 1};
    /* report the limit of all only if none is left at all; otherwise the user's own count */
    ret_excess->of_all = all >= most;
    ret_excess->used = ret_excess->of_all ? all : his;
    ret_excess->limit = ret_excess->of_all ? most : his;
    ret_excess->kept = ret_excess->of_all ? 0 : most - all;
    return -EDQUOT;
}

struct quota_user *quota_restore(struct quota *quota, uid_t uid, enum quota_kind kind,
                                 uint64_t amount)
{
    struct quota_user *u = user_of(quota, uid);
    if (u)
        add(u, kind, amount);
    return u;
}

void quota_refund(struct quota_user *user, enum quota_kind kind, uint64_t amount)
{
    if (!user)
        return;
    user->used[kind] -= amount;
    user->quota->used[kind] -= amount;
}

struct quota_usage quota_usage(const struct quota *quota, uid_t uid, bool is_admin,
                               enum quota_kind kind)
{
    const struct quota_user *u = find(quota, uid);
    return (struct quota_usage){
        .what = names[kind],
        .used = u ? u->used[kind] : 0,
        .limit = is_admin ? QUOTA_UNLIMITED : limit_of(&quota->limits->user, kind),
        .total_used = quota->used[kind],
        .total_limit = limit_of(&quota->limits->total, kind),
    };
}

uint64_t quota_bytes(uint64_t size)
{
    return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* --- Requests ------------------------------------------------------------ */

/* Each request costs 1/rate seconds of the user's time, and paid_until is the end of that time. A
 * user may go on while it lies at most burst - 1 requests ahead of now. Needs one number for each
 * user, no list of requests and no timer. Returns how long the request must wait, and paid_until
 * after it in *ret_paid_until. Also lowers *paid_until to the most that these limits allow, because
 * the limits may have been stricter before. */
static int64_t must_wait(const struct quota_limit *limits, int64_t *paid_until, int64_t now,
                         int64_t *ret_paid_until)
{
    uint64_t rate = limits->requests_per_second;
    *ret_paid_until = *paid_until;
    if (rate == QUOTA_UNLIMITED || rate == 0)
        return 0;
    uint64_t burst = limits->burst == QUOTA_UNLIMITED ? rate : limits->burst;
    int64_t cost = rate < SECOND_NS ? (int64_t)(SECOND_NS / rate) : 1;
    int64_t ahead = INT64_MAX / 4;
    if (burst <= 1)
        ahead = 0;
    else if (burst - 1 < (uint64_t)(ahead / cost))
        ahead = (int64_t)(burst - 1) * cost;
    if (*paid_until > now + ahead + cost)
        *paid_until = now + ahead + cost;
    int64_t from = *paid_until > now ? *paid_until : now;
    *ret_paid_until = from + cost;
    return from - now > ahead ? from - now - ahead : 0;
}

static bool has_rate(const struct quota_limit *limits)
{
    return limits->requests_per_second != QUOTA_UNLIMITED && limits->requests_per_second != 0;
}

bool quota_limits_requests(const struct quota *quota)
{
    return has_rate(&quota->limits->user) || has_rate(&quota->limits->total);
}

/* The request must respect both rates, and is charged to both only if it may run now. */
int64_t quota_request(struct quota_user *user, bool is_admin, int64_t now_ns)
{
    struct quota *q = user->quota;
    int64_t his = user->paid_until_ns, of_all;
    int64_t wait = is_admin ? 0 : must_wait(&q->limits->user, &user->paid_until_ns, now_ns, &his);
    int64_t longer = must_wait(&q->limits->total, &q->paid_until_ns, now_ns, &of_all);
    if (longer > wait)
        wait = longer;
    if (wait == 0) {
        user->paid_until_ns = his;
        q->paid_until_ns = of_all;
    }
    return wait;
}
