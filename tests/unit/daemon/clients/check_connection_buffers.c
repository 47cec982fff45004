/* SPDX-License-Identifier: Apache-2.0 */
/* Checks connection.c and reply.c of the daemon: the buffers of all connections of one user have a
 * common limit, and descriptors that a reply keeps are charged. */
#include "daemon/clients/connection.h"

#include "unit/answers.h"

#define REPLY_BYTES 20000000

/* The first reply to each connection has 20 MB. */
static void huge(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    static bool served[HOUSE_GUESTS];
    ptrdiff_t guest = house_guest(&house, c) - house.guests;
    size_t n = served[guest] ? 1 : REPLY_BYTES;
    (void)call;
    served[guest] = true;
    char *text = malloc(n);
    memset(text, 'a', n);
    answer->parameters = json_pack("{s:s#}", "text", text, n);
    free(text);
    n_calls++;
}

static struct quota_user *charge_to(struct guest *g, uid_t uid)
{
    return g->connection->payer = quota_restore(&house.state.quota, uid, QUOTA_CONNECTIONS, 1);
}

static void run_until_called(unsigned n)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (n_calls < n && now_ns() < deadline)
        house_run(&house);
    ck_assert_uint_ge(n_calls, n);
}

START_TEST(replies_that_nobody_reads)
{
    struct guest *g[4];
    struct quota_user *u = NULL;
    hush();
    for (unsigned i = 0; i < 4; i++) {
        g[i] = i ? house_admit(&house) : begin(huge);
        u = charge_to(g[i], 1000);
        send_pings(g[i], 3);
        run_until_called(i + 1);
    }
    ck_assert_uint_gt(u->used[QUOTA_BUFFERS], 3 * REPLY_BYTES);
    ck_assert_uint_lt(u->used[QUOTA_BUFFERS], 3 * REPLY_BYTES + 1000);
    const char *reply = house_receive(g[3]); /* the fourth reply was too much */
    unit_assert_holds(reply, "io.shmview.QuotaExceeded");
    unit_assert_holds(reply, "\"limit\":67108864");
    unit_assert_holds(reply, "\"what\":\"buffer_bytes\"");
    unit_assert_holds(reply, " bytes of requests and replies asked for");
    /* another user has a limit of its own */
    struct guest *other = house_admit(&house);
    struct quota_user *he = charge_to(other, 1001);
    house_send_bytes(other, ping, sizeof ping);
    ck_assert_uint_gt(strlen(house_receive(other)), REPLY_BYTES);
    ck_assert_uint_eq(he->used[QUOTA_BUFFERS], 0);
    house_leave(g[0]);
    run_until_closed(g[0]);
    ck_assert_uint_lt(u->used[QUOTA_BUFFERS], 3 * REPLY_BYTES + 1000);
    for (unsigned i = 1; i < 3; i++) /* nothing was lost */
        for (unsigned k = 0; k < 3; k++)
            ck_assert_ptr_nonnull(house_receive(g[i]));
    for (unsigned i = 1; i < 4; i++) {
        house_leave(g[i]);
        run_until_closed(g[i]);
    }
    ck_assert_uint_eq(u->used[QUOTA_BUFFERS], 0);
    house_close(&house);
}
END_TEST

/* A page for each is free, so that clients with small requests are never refused. */
START_TEST(small_ones_are_free)
{
    struct guest *g = begin(count);
    struct quota_user *u = charge_to(g, 1000);
    struct quota_excess excess;
    ck_assert_int_eq(quota_charge(&house.state.quota, 1000, false, QUOTA_BUFFERS,
                                  LIMIT_BUFFERS_BYTES, &u, &excess),
                     0);
    send_pings(g, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_numbered(g, i);
    char text[10000];
    hush();
    memset(text, ' ', sizeof text);
    house_send_bytes(g, text, sizeof text); /* half of a long one is refused */
    unit_assert_holds(house_receive(g), "io.shmview.QuotaExceeded");
    house_expect_end(g);
    ck_assert_uint_eq(u->used[QUOTA_BUFFERS], LIMIT_BUFFERS_BYTES);
    house_close(&house);
}
END_TEST

static unsigned asked;
static struct connection *asking;

/* Lets every second request wait. */
static bool every_other(struct connection *c)
{
    if (asked++ % 2)
        return true;
    c->throttled = true;
    asking = c;
    return false;
}

/* While a request must wait nothing is read and nothing is lost. */
START_TEST(a_request_that_must_wait)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .closed = house_on_closed,
                                                    .again = house_on_again,
                                                    .may_ask = every_other};
    struct guest *g = begin(count);
    g->connection->events = &events;
    for (unsigned i = 0; i < 5; i++)
        ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    for (unsigned i = 0; i < 5; i++) {
        int64_t deadline = now_ns() + HOUSE_WAIT_NS;
        while (!asking && now_ns() < deadline)
            house_run(&house);
        for (int k = 0; k < 5; k++)
            house_run(&house);
        ck_assert_uint_eq(n_calls, i);
        struct connection *c = asking;
        ck_assert_ptr_nonnull(c);
        asking = NULL;
        c->throttled = false;
        connection_take_turn(c);
        assert_numbered(g, i);
    }
    house_close(&house);
}
END_TEST

/* Replies with as many bytes as the request names. */
static void as_long(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    (void)c;
    static char text[20000];
    size_t n = (size_t)json_integer_value(json_object_get(call->parameters, "bytes"));
    memset(text, 'a', n);
    answer->parameters = json_pack("{s:s#}", "text", text, n);
}

START_TEST(a_long_reply_makes_the_next_turn_slow)
{
    house_open(&house);
    house.call = as_long;
    struct guest *g = house_admit(&house);
    const bool heavy[] = {false, true, false, true};
    for (int i = 0; i < 4; i++) {
        char text[80];
        snprintf(text, sizeof text, "{'method':'x.Y','parameters':{'bytes':%d}}",
                 heavy[i] ? 17000 : 15000);
        house_send(g, text);
        ck_assert_ptr_nonnull(house_receive(g));
        ck_assert_int_eq(g->connection->turn.is_heavy, heavy[i]);
    }
    house_close(&house);
}
END_TEST

/* --- Descriptors of replies that are not read ------------------------------ */

static bool may_keep;
static unsigned n_refused;

static bool keep(struct connection *c)
{
    if (may_keep)
        quota_restore(&house.state.quota, c->payer->uid, QUOTA_CONNECTIONS, 1);
    else
        n_refused++;
    return may_keep;
}

/* Begins with a client that sends many requests and reads no reply, until its socket is full. */
static struct guest *begin_full(unsigned n, struct quota_user **ret_user)
{
    static const struct connection_events events = {
        .call = house_on_call, .closed = house_on_closed, .again = house_on_again, .keep = keep};
    struct guest *g = begin(with_descriptor);
    g->connection->events = &events;
    *ret_user = charge_to(g, 1000);
    char *many = malloc(n * sizeof ping);
    for (unsigned i = 0; i < n; i++)
        memcpy(many + (size_t)i * sizeof ping, ping, sizeof ping);
    ck_assert_int_eq(write(g->fd, many, n * sizeof ping), (ssize_t)(n * sizeof ping));
    free(many);
    for (int i = 0; i < 500; i++)
        house_run(&house);
    ck_assert_ptr_nonnull(g->connection->out);
    return g;
}

START_TEST(kept_descriptors_are_charged)
{
    const unsigned n = 1500;
    struct quota_user *u;
    may_keep = true;
    struct guest *g = begin_full(n, &u);
    ck_assert_uint_eq(g->connection->out_fds.n, 1);
    ck_assert_uint_eq(u->used[QUOTA_CONNECTIONS], 2);
    for (unsigned i = 0; i < n; i++) {
        assert_numbered(g, i);
        frame_descriptors_close(&g->fds);
    }
    ck_assert_uint_eq(u->used[QUOTA_CONNECTIONS], 1);
    house_close(&house);
}
END_TEST

START_TEST(kept_descriptors_are_refunded_at_the_end)
{
    struct quota_user *u;
    may_keep = true;
    struct guest *g = begin_full(1500, &u);
    ck_assert_uint_eq(u->used[QUOTA_CONNECTIONS], 2);
    house_leave(g);
    run_until_closed(g);
    ck_assert_uint_eq(u->used[QUOTA_CONNECTIONS], 1); /* the connection itself, of charge_to() */
    house_close(&house);
}
END_TEST

/* The reply that would keep them is a refusal, and the connection goes on. */
START_TEST(descriptors_that_may_not_be_kept)
{
    const unsigned n = 1500;
    unsigned refused = 0;
    struct quota_user *u;
    may_keep = false;
    n_refused = 0;
    struct guest *g = begin_full(n, &u);
    ck_assert_uint_eq(n_refused, 1);
    ck_assert_uint_eq(g->connection->out_fds.n, 0);
    ck_assert_uint_eq(u->used[QUOTA_CONNECTIONS], 1);
    for (unsigned i = 0; i < n; i++) {
        const char *reply = house_receive(g);
        ck_assert_ptr_nonnull(reply);
        if (strstr(reply, "error")) {
            unit_assert_holds(reply, "too many replies with descriptors are not read");
            refused++;
        }
        frame_descriptors_close(&g->fds);
    }
    ck_assert_uint_eq(refused, n_refused);
    ck_assert_uint_eq(u->used[QUOTA_CONNECTIONS], 1);
    house_close(&house);
}
END_TEST

UNIT_MAIN("connection_buffers", UNIT_TEST(replies_that_nobody_reads),
          UNIT_TEST(small_ones_are_free), UNIT_TEST(a_request_that_must_wait),
          UNIT_TEST(a_long_reply_makes_the_next_turn_slow), UNIT_TEST(kept_descriptors_are_charged),
          UNIT_TEST(kept_descriptors_are_refunded_at_the_end),
          UNIT_TEST(descriptors_that_may_not_be_kept))
