/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/turns.h"

#include <time.h>

#include "common/util.h"

/* A turn that takes longer makes its connection slow for a while. */
#define QUICK_NS 100000
#define SLOW_NS  100000000
/* So long a connection or user counts as active. */
#define ACTIVE_NS 50000000
/* Slices take one part of the time, and rests the others. */
#define SLICE_NS    250000
#define REST_PARTS  4
#define REST_MAX_MS 5
/* Of the time, one part is each user's for turns that are taken at once; BURST_NS ahead. */
#define SHARE_PARTS 8
#define BURST_NS    5000000
/* Served at once after one look for events. */
#define ROUND_NS 2000000
/* What a user who has used more than a slice pays back at a time. */
#define QUANTUM_NS 50000

#define MILLISECOND_NS 1000000

static void on_slice(uv_idle_t *idle);
static void on_rested(uv_timer_t *timer);

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void turns_init(struct turns *turns, uv_loop_t *loop)
{
    *turns = (struct turns){.loop = loop};
    TAILQ_INIT(&turns->users);
    uv_idle_init(loop, &turns->slices);
    uv_timer_init(loop, &turns->resting);
    turns->slices.data = turns->resting.data = turns;
}

void turns_round(struct turns *turns)
{
    turns->round_ns = 0;
}

/* --- Who is active ------------------------------------------------------- */

static void note(struct turns_seen *seen, const void *who, int64_t now)
{
    if (seen->last != who) {
        seen->other_ns = seen->last_ns;
        seen->last = who;
    }
    seen->last_ns = now;
}

/* Whether somebody else than who was active lately. */
static bool others_active(const struct turns_seen *seen, const void *who, int64_t now)
{
    int64_t last = seen->last == who ? seen->other_ns : seen->last_ns;
    return last && now - last < ACTIVE_NS;
}

/* --- The queue ----------------------------------------------------------- */

static bool is_slow(const struct connection *c, int64_t now)
{
    return c->slow_until_ns > now;
}

static void wait_turn(struct turns *t, struct connection *c, int64_t now)
{
    struct quota_user *u = c->payer;
    c->waits_turn = true;
    c->waits_slow = !c->is_quick || is_slow(c, now); /* one that is new may be either */
    if (c->waits_slow && c->slow_ns < u->slow_ns)
        c->slow_ns = u->slow_ns; /* what it did not use before is not saved up */
    TAILQ_INSERT_TAIL(c->waits_slow ? &u->slow : &u->quick, c, turn);
    if (!u->waits_turn)
        TAILQ_INSERT_TAIL(&t->users, u, turn);
    u->waits_turn = true;
    if (!uv_is_active((uv_handle_t *)&t->resting))
        uv_idle_start(&t->slices, on_slice);
}

void turns_forget(struct turns *turns, struct connection *connection)
{
    struct quota_user *u = connection->payer;
    if (!connection->waits_turn)
        return;
    connection->waits_turn = false;
    TAILQ_REMOVE(connection->waits_slow ? &u->slow : &u->quick, connection, turn);
    if (!TAILQ_EMPTY(&u->quick) || !TAILQ_EMPTY(&u->slow))
        return;
    u->waits_turn = false;
    TAILQ_REMOVE(&turns->users, u, turn);
}

/* The one of a list that has used least of the time of slices; there is one. */
static struct connection *least_used(const struct connections_waiting *list)
{
    struct connection *c, *least = TAILQ_FIRST(list);
    TAILQ_FOREACH(c, list, turn)
    if (c->slow_ns < least->slow_ns)
        least = c;
    return least;
}

/* Takes the connection whose turn it is from the queue; there is one. */
static struct connection *next(struct turns *t)
{
    struct quota_user *u;
    while ((u = TAILQ_FIRST(&t->users)), u->debt_ns > 0 && TAILQ_NEXT(u, turn)) {
        u->debt_ns -= QUANTUM_NS;
        TAILQ_REMOVE(&t->users, u, turn);
        TAILQ_INSERT_TAIL(&t->users, u, turn);
    }
    if (!TAILQ_NEXT(u, turn))
        u->debt_ns = 0; /* nobody else wants it */
    struct connection *c = least_used(TAILQ_EMPTY(&u->quick) ? &u->slow : &u->quick);
    turns_forget(t, c);
    return c;
}

/* --- Serving ------------------------------------------------------------- */

static void begin(struct turns *t, const struct connection *c, int64_t now)
{
    t->began_ns = now;
    /* a turn that seemed long may only have been interrupted: from then on it is looked at more
     * closely, which costs two system calls */
    t->began_cpu_ns = c->suspect_until_ns > now ? cpu_ns() : 0;
}

/* Returns how long the turn took. */
static int64_t end(struct turns *t, struct connection *c, int64_t *ret_now)
{
    int64_t now = now_ns(), took = now - t->began_ns;
    if (t->began_cpu_ns)
        took = cpu_ns() - t->began_cpu_ns;
    c->is_quick = took <= QUICK_NS;
    if (took > QUICK_NS) {
        if (t->began_cpu_ns)
            c->slow_until_ns = now + SLOW_NS;
        c->suspect_until_ns = now + SLOW_NS;
    }
    *ret_now = now;
    return took;
}

bool turns_begin(struct turns *turns, struct connection *connection)
{
    struct quota_user *u = connection->payer;
    int64_t now = now_ns();
    bool waits = turns->round_ns > ROUND_NS;
    if (is_slow(connection, now))
        waits |= !TAILQ_EMPTY(&turns->users) || others_active(&turns->connections, connection, now);
    if (u->share_until_ns > now + BURST_NS)
        waits |= others_active(&turns->quick_users, u, now);
    if (waits)
        wait_turn(turns, connection, now);
    else
        begin(turns, connection, now);
    return !waits;
}

void turns_end(struct turns *turns, struct connection *connection)
{
    struct quota_user *u = connection->payer;
    int64_t now, took = end(turns, connection, &now);
    if (u->share_until_ns < now)
        u->share_until_ns = now;
    u->share_until_ns += took * SHARE_PARTS;
    turns->round_ns += took;
    note(&turns->connections, connection, now);
    if (took > QUICK_NS)
        return;
    note(&turns->quick_connections, connection, now);
    note(&turns->quick_users, u, now);
}

void turns_again(struct turns *turns, struct connection *connection)
{
    if (!connection->waits_turn)
        wait_turn(turns, connection, now_ns());
}

/* Whether the time that c is served, which waited, is to be made good to others. */
static bool owes_rest(const struct turns *t, const struct connection *c, int64_t now)
{
    return (c->waits_slow && others_active(&t->quick_connections, c, now)) ||
           others_active(&t->quick_users, c->payer, now);
}

static void rest(struct turns *t, int64_t took)
{
    uint64_t ms = (uint64_t)(took * REST_PARTS + MILLISECOND_NS - 1) / MILLISECOND_NS;
    if (ms > REST_MAX_MS)
        ms = REST_MAX_MS;
    uv_update_time(t->loop);
    uv_idle_stop(&t->slices);
    uv_timer_start(&t->resting, on_rested, ms + 1, 0); /* libuv counts the running millisecond */
}

static void on_slice(uv_idle_t *idle)
{
    struct turns *t = idle->data;
    int64_t start = now_ns(), now = start, owed = 0;
    while (!TAILQ_EMPTY(&t->users) && now - start < SLICE_NS) {
        struct connection *c = next(t);
        struct quota_user *u = c->payer;
        bool owes = owes_rest(t, c, now);
        begin(t, c, now);
        connection_serve(c);
        int64_t took = end(t, c, &now);
        u->debt_ns += took;
        if (c->waits_slow)
            u->slow_ns = c->slow_ns;
        c->slow_ns += took;
        owed += owes ? took : 0;
        note(&t->connections, c, now);
    }
    if (TAILQ_EMPTY(&t->users))
        uv_idle_stop(idle);
    else if (owed)
        rest(t, owed);
}

static void on_rested(uv_timer_t *timer)
{
    struct turns *t = timer->data;
    if (!TAILQ_EMPTY(&t->users))
        uv_idle_start(&t->slices, on_slice);
}
