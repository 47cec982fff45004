/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/rights/turns.h"

#include <time.h>

#include "common/base/util.h"
#include "daemon/base/slice.h"

/* A turn that takes longer than QUICK_NS is long. Its connection then owes 1000 times the time that
 * the turn took. It pays by the time that passes, and by CREDIT_NS for each quick turn. A
 * connection that owes more than SLOW_NS is slow. A few long turns do not make it slow, because
 * interrupts, whose time counts as the daemon's, can make any turn long. No connection owes more
 * than LONG_MOST_NS, so it can become quick again within seconds. */
#define QUICK_NS     100000
#define LONG_COST    1000
#define CREDIT_NS    2000000
#define SLOW_NS      INT64_C(2000000000)
#define LONG_MOST_NS (2 * SLOW_NS)
/* The CPU time of so many turns is measured at first, and after a turn that seemed long. */
#define MEASURED 64
/* Besides, the CPU time of one turn in SAMPLED is measured. Otherwise a client could hide each long
 * turn after 64 quick ones. */
#define SAMPLED 16
/* A connection that has had no quick turn yet ranks as if it owed this much. */
#define UNKNOWN_NS INT64_C(1000000000)
/* How many waiting connections of a user are compared at most, because comparing takes time too. */
#define LOOKED_AT 128
/* How long a connection or user counts as active after a turn. */
#define ACTIVE_NS 50000000
/* The length of a slice. A rest is REST_PARTS times as long as the turns before it. */
#define SLICE_NS    250000
#define REST_PARTS  4
#define REST_MAX_MS 250
/* A user's slow turns get 1/8 of the time that the user gets in slices, even if quick ones wait. */
#define SLOW_PARTS 8
/* Each user may use 1/8 of the time for turns at once, and may be BURST_NS ahead of that. */
#define SHARE_PARTS 8
#define BURST_NS    5000000
/* How long turns are served at once after one look for events. */
#define ROUND_NS 250000
/* libuv closes the descriptors of a connection after the turn in which it ended, which takes about
 * this long. */
#define CLOSING_NS 4000
/* How much of its debt a user pays back each time it is passed over. */
#define QUANTUM_NS 50000

#define MILLISECOND_NS 1000000

static void on_slice(uv_idle_t *idle);
static void on_rested(struct alarm *alarm);

/* CPU time of this thread. Unlike now_ns() it does not count time in which another process ran. */
static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int turns_init(struct turns *turns, uv_loop_t *loop)
{
    *turns = (struct turns){0};
    TAILQ_INIT(&turns->users);
    turns_own_user(&turns->own);
    uv_idle_init(loop, &turns->slices);
    turns->slices.data = turns;
    return alarm_init(&turns->resting, loop, on_rested, turns);
}

void turns_own_user(struct quota_user *ret)
{
    *ret = (struct quota_user){.quota = NULL};
    TAILQ_INIT(&ret->quick);
    TAILQ_INIT(&ret->slow);
}

static bool is_own(const struct quota_user *u)
{
    return !u->quota;
}

void turns_round(struct turns *turns)
{
    turns->round_ns = turns->closing_ns = 0;
}

/* --- Who is active ------------------------------------------------------- */

static void note(struct turns_seen *seen, const void *who, int64_t now)
{
    if (seen->last != who) {
        seen->other_ns = seen->last_ns ? seen->last_ns : seen->other_ns;
        seen->last = who;
    }
    seen->last_ns = now;
}

void turns_gone(struct turns *turns, const void *who)
{
    struct turns_seen *seen = &turns->quick_open;
    if (seen->last == who)
        seen->last = NULL, seen->last_ns = 0;
    turns->closing_ns += CLOSING_NS;
    slice_owe(CLOSING_NS);
}

/* Whether anyone other than `who` was active lately. */
static bool others_active(const struct turns_seen *seen, const void *who, int64_t now)
{
    int64_t last = seen->last == who ? seen->other_ns : seen->last_ns;
    return last && now - last < ACTIVE_NS;
}

/* --- The queue ----------------------------------------------------------- */

static bool is_slow(const struct turn *c, int64_t now)
{
    return c->is_heavy || c->long_until_ns > now + SLOW_NS;
}

/* Whether other connections are active whose turns are quick. For the daemon's own turns a closed
 * connection does not count: otherwise a client that connects again and again would have to wait
 * because of its own previous connection. */
static bool others_are_quick(const struct turns *t, const struct turn *c, int64_t now)
{
    return others_active(c->who ? &t->quick_connections : &t->quick_open, c->who, now);
}

/* Whether the user has used up the share for being served at once, and others are active. */
static bool is_beyond(const struct turns *t, const struct quota_user *u, int64_t now)
{
    return u->share_until_ns > now + BURST_NS &&
           (is_own(u) ? others_active(&t->quick_open, NULL, now)
                      : others_active(&t->quick_users, u, now));
}

/* Whether a waiting turn of this user may be served now. During a rest only quick turns of users
 * within their share may. */
static bool may_serve(const struct turns *t, const struct quota_user *u, int64_t now)
{
    return !t->resting.is_set || (!TAILQ_EMPTY(&u->quick) && !is_beyond(t, u, now));
}

/* Puts the turn into a queue of its payer. Slow turns are ordered by slow_ns, the time that each
 * has used. A turn that waited rarely has a small value; it is raised to that of the turn served
 * last, because otherwise it would be served alone until it has caught up. */
static void wait_turn(struct turns *t, struct turn *c, int64_t now)
{
    struct quota_user *u = c->payer;
    c->waits = true;
    c->waits_slow = is_slow(c, now);
    if (c->waits_slow && c->slow_ns < u->slow_ns)
        c->slow_ns = u->slow_ns;
    TAILQ_INSERT_TAIL(c->waits_slow ? &u->slow : &u->quick, c, link);
    if (!u->waits_turn)
        TAILQ_INSERT_TAIL(&t->users, u, turn);
    u->waits_turn = true;
    if (may_serve(t, u, now))
        uv_idle_start(&t->slices, on_slice);
}

void turns_cancel(struct turns *turns, struct turn *turn)
{
    struct quota_user *u = turn->payer;
    if (!turn->waits)
        return;
    turn->waits = false;
    TAILQ_REMOVE(turn->waits_slow ? &u->slow : &u->quick, turn, link);
    if (!TAILQ_EMPTY(&u->quick) || !TAILQ_EMPTY(&u->slow))
        return;
    u->waits_turn = false;
    TAILQ_REMOVE(&turns->users, u, turn);
}

/* The turn of a list with the least rank comes first. Slow turns rank by the time that they have
 * used, quick ones by what they owe. A connection without a quick turn so far may turn out slow, so
 * it comes after known ones. */
static int64_t rank(const struct turn *c, int64_t now)
{
    if (c->waits_slow)
        return c->slow_ns;
    return (c->long_until_ns > now ? c->long_until_ns : now) + (c->is_known ? 0 : UNKNOWN_NS);
}

/* The turn of a list that comes next. The list must not be empty. Compares only the first LOOKED_AT
 * entries of a long list. */
static struct turn *first_of(const struct turns_waiting *list, int64_t now)
{
    struct turn *c, *first = TAILQ_FIRST(list);
    int64_t least = rank(first, now);
    unsigned n = 0;
    TAILQ_FOREACH (c, list, link) {
        int64_t r = rank(c, now);
        if (r < least)
            first = c, least = r;
        if (++n == LOOKED_AT)
            break;
    }
    return first;
}

/* The user whose turn it is, or NULL if no waiting turn may be served now. If several users could
 * be served, goes round the list and takes the first one without debt. Each user that is passed
 * over pays back a part, so the loop ends. */
static struct quota_user *next_user(struct turns *t, int64_t now)
{
    struct quota_user *u, *only = NULL;
    unsigned n = 0;
    TAILQ_FOREACH (u, &t->users, turn)
        if (may_serve(t, u, now)) {
            only = u;
            n++;
        }
    if (n <= 1) {
        if (only)
            only->debt_ns = 0; /* no other user wanted the time that it used */
        return only;
    }
    while (u = TAILQ_FIRST(&t->users), !may_serve(t, u, now) || u->debt_ns > 0) {
        u->debt_ns -= u->debt_ns > 0 ? QUANTUM_NS : 0;
        TAILQ_REMOVE(&t->users, u, turn);
        TAILQ_INSERT_TAIL(&t->users, u, turn);
    }
    return u;
}

/* Removes the turn that comes next from its queue. Returns NULL if none may be served now. */
static struct turn *next(struct turns *t, int64_t now)
{
    struct quota_user *u = next_user(t, now);
    if (!u)
        return NULL;
    bool slow = TAILQ_EMPTY(&u->quick) ||
                (!t->resting.is_set && !TAILQ_EMPTY(&u->slow) && u->slow_due_ns >= SLICE_NS);
    struct turn *c = first_of(slow ? &u->slow : &u->quick, now);
    turns_cancel(t, c);
    return c;
}

/* --- Serving ------------------------------------------------------------- */

/* Starts the clocks for a turn. */
static void begin(struct turns *t, const struct turn *c, int64_t now)
{
    t->began_ns = now;
    /* by the wall clock a turn seems long if another process interrupted it; but CPU time costs two
     * system calls, so it is measured only for turns that may be long, and for samples */
    bool is_sample = t->n_turns++ % SAMPLED == 0;
    t->began_cpu_ns = c->n_quick < MEASURED || is_sample ? cpu_ns() : 0;
}

/* Counts a turn whose time is known: raises or lowers what the connection owes. */
static void judge(struct turn *c, int64_t took, int64_t now)
{
    int64_t until = c->long_until_ns > now ? c->long_until_ns : now;
    until += took > QUICK_NS ? took * LONG_COST : -CREDIT_NS;
    c->long_until_ns = until < now + LONG_MOST_NS ? until : now + LONG_MOST_NS;
}

/* Stops the clocks. Returns how long the turn took. A turn that seems long by the wall clock only
 * is not counted, but the next turns are measured by CPU time. */
static int64_t end(struct turns *t, struct turn *c, int64_t *ret_now)
{
    int64_t now = now_ns(), took = now - t->began_ns;
    if (t->began_cpu_ns)
        took = cpu_ns() - t->began_cpu_ns;
    if (t->began_cpu_ns || took <= QUICK_NS)
        judge(c, took, now);
    c->is_known |= took <= QUICK_NS;
    c->n_quick = took > QUICK_NS ? 0 : c->n_quick < MEASURED ? c->n_quick + 1 : MEASURED;
    *ret_now = now;
    return took;
}

bool turns_begin(struct turns *turns, struct turn *turn)
{
    int64_t now = now_ns();
    bool waits = turns->round_ns + turns->closing_ns > ROUND_NS;
    if (is_slow(turn, now))
        waits |= !TAILQ_EMPTY(&turns->users) ||
                 (turn->who ? others_active(&turns->connections, turn->who, now)
                            : others_are_quick(turns, turn, now));
    waits |= is_beyond(turns, turn->payer, now);
    if (waits)
        wait_turn(turns, turn, now);
    else
        begin(turns, turn, now);
    return !waits;
}

/* Counts time against the user's share: each ns takes SHARE_PARTS ns to pay back. */
static void charge_share(struct quota_user *u, int64_t used, int64_t now)
{
    if (u->share_until_ns < now)
        u->share_until_ns = now;
    u->share_until_ns += used * SHARE_PARTS;
}

void turns_charge(struct quota_user *user, int64_t used_ns)
{
    charge_share(user, used_ns, now_ns());
}

void turns_end(struct turns *turns, struct turn *turn)
{
    struct quota_user *u = turn->payer;
    int64_t now, took = end(turns, turn, &now);
    charge_share(u, took * (1 + turn->brings), now);
    turns->round_ns += took;
    if (!turn->who)
        return;
    note(&turns->connections, turn->who, now);
    if (took > QUICK_NS)
        return;
    note(&turns->quick_connections, turn->who, now);
    note(&turns->quick_open, turn->who, now);
    note(&turns->quick_users, u, now);
}

void turns_again(struct turns *turns, struct turn *turn)
{
    if (!turn->waits)
        wait_turn(turns, turn, now_ns());
}

/* Whether a rest must follow the turn c, which has waited. */
static bool owes_rest(const struct turns *t, const struct turn *c, int64_t now)
{
    return (c->waits_slow && others_are_quick(t, c, now)) || is_beyond(t, c->payer, now);
}

/* Begins a rest after turns that took so long. */
static void rest(struct turns *t, int64_t took)
{
    uint64_t ms = (uint64_t)(took * REST_PARTS + MILLISECOND_NS - 1) / MILLISECOND_NS;
    if (ms > REST_MAX_MS)
        ms = REST_MAX_MS;
    alarm_set(&t->resting, ms, 0);
}

/* Counts the time of a turn in a slice. Quick turns earn time for the slow ones of the same user,
 * up to one slice. */
static void charge(struct turn *c, int64_t took)
{
    struct quota_user *u = c->payer;
    u->debt_ns += took;
    if (!c->waits_slow) {
        u->slow_due_ns += took / SLOW_PARTS;
        if (u->slow_due_ns > SLICE_NS || TAILQ_EMPTY(&u->slow))
            u->slow_due_ns = TAILQ_EMPTY(&u->slow) ? 0 : SLICE_NS;
        return;
    }
    u->slow_due_ns = 0;
    u->slow_ns = c->slow_ns;
    c->slow_ns += took;
}

/* Serves waiting turns for one slice, one turn at least. While an idle handle is active, the loop
 * does not block, so it looks for new events between two slices. */
static void on_slice(uv_idle_t *idle)
{
    struct turns *t = idle->data;
    int64_t now = now_ns(), owed = 0, until = slice_end(SLICE_NS) + t->closing_ns;
    struct turn *c;
    do {
        if (!(c = next(t, now)))
            break;
        bool owes = owes_rest(t, c, now);
        begin(t, c, now); /* the turn pays for the time of choosing it, too */
        c->serve(c);
        int64_t took = end(t, c, &now);
        charge(c, took);
        owed += owes ? took * (1 + c->brings) : 0;
        if (c->who)
            note(&t->connections, c->who, now);
    } while (now + t->closing_ns < until);
    if (!c || TAILQ_EMPTY(&t->users))
        uv_idle_stop(idle);
    if (owed)
        rest(t, owed);
}

static void on_rested(struct alarm *alarm)
{
    struct turns *t = alarm->data;
    if (!TAILQ_EMPTY(&t->users))
        uv_idle_start(&t->slices, on_slice);
}
