/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/throttle.h"

#include "common/base/util.h"

#define MILLISECOND_NS 1000000
/* The rate may be raised while a connection waits, so each one is tried again after this time at
 * the latest. */
#define WAIT_MAX_MS 1000

/* Sets the alarm, unless it rings earlier anyway. */
static void arm(struct throttle *t, int64_t wait_ns)
{
    uint64_t ms = ((uint64_t)wait_ns + MILLISECOND_NS - 1) / MILLISECOND_NS;
    if (ms > WAIT_MAX_MS)
        ms = WAIT_MAX_MS;
    int64_t due_ns = now_ns() + (int64_t)ms * MILLISECOND_NS;
    if (t->alarm.is_set && t->due_ns <= due_ns)
        return;
    t->due_ns = due_ns;
    alarm_set(&t->alarm, ms, 0);
}

static void link_user(struct throttle *t, struct quota_user *u)
{
    if (!u->is_linked)
        TAILQ_INSERT_TAIL(&t->quota->throttled, u, link);
    u->is_linked = true;
}

static void unlink_user(struct throttle *t, struct quota_user *u)
{
    if (u->is_linked)
        TAILQ_REMOVE(&t->quota->throttled, u, link);
    u->is_linked = false;
}

/* Called when the connection of the user that was resumed last has got its request through, or was
 * closed. Lets the next one of that user try, after other users had their turn. */
static void go_on(struct throttle *t, struct quota_user *u)
{
    if (TAILQ_EMPTY(&u->throttled))
        return;
    link_user(t, u);
    arm(t, 0);
}

static void on_alarm(struct alarm *alarm);

int throttle_init(struct throttle *throttle, uv_loop_t *loop, struct quota *quota)
{
    *throttle = (struct throttle){.quota = quota};
    return alarm_init(&throttle->alarm, loop, on_alarm, throttle);
}

bool throttle_may_ask(struct throttle *throttle, struct connection *connection, bool is_admin)
{
    struct quota_user *u = connection->payer;
    bool is_resumed = connection->resumed;
    int64_t wait_ns = 0;
    connection->resumed = false;
    /* a new request must not overtake connections of the same user that wait */
    bool waits = !is_resumed && !TAILQ_EMPTY(&u->throttled);
    if (!waits)
        wait_ns = quota_request(u, is_admin, now_ns());
    if (!waits && wait_ns == 0) {
        if (is_resumed)
            go_on(throttle, u);
        return true;
    }
    if (is_resumed)
        TAILQ_INSERT_HEAD(&u->throttled, connection, waiting);
    else
        TAILQ_INSERT_TAIL(&u->throttled, connection, waiting);
    connection->throttled = true;
    link_user(throttle, u);
    if (!waits)
        arm(throttle, wait_ns);
    return false;
}

void throttle_cancel(struct throttle *throttle, struct connection *connection)
{
    struct quota_user *u = connection->payer;
    if (connection->resumed)
        go_on(throttle, u);
    connection->resumed = false;
    if (!connection->throttled)
        return;
    connection->throttled = false;
    TAILQ_REMOVE(&u->throttled, connection, waiting);
    if (TAILQ_EMPTY(&u->throttled))
        unlink_user(throttle, u);
}

/* Resumes the first connection of the first user. The user leaves the list until that connection
 * has tried its request, which may be after a turn; go_on() or throttle_may_ask() adds it again. */
static void resume(struct throttle *t)
{
    struct quota_user *u = TAILQ_FIRST(&t->quota->throttled);
    struct connection *c = TAILQ_FIRST(&u->throttled);
    unlink_user(t, u);
    TAILQ_REMOVE(&u->throttled, c, waiting);
    c->throttled = false;
    c->resumed = true;
    connection_resume(c);
}

/* Resumes one connection of each user. Users that are added while this runs wait for the next
 * alarm. */
static void on_alarm(struct alarm *alarm)
{
    struct throttle *t = alarm->data;
    struct quota_user *u;
    unsigned n = 0;
    TAILQ_FOREACH (u, &t->quota->throttled, link)
        n++;
    while (n-- && !TAILQ_EMPTY(&t->quota->throttled))
        resume(t);
}
