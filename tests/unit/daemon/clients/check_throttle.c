/* SPDX-License-Identifier: Apache-2.0 */
/* Checks throttle.c: clients that ask too fast are resumed in turns. */
#include "daemon/clients/throttle.h"

#include "unit/answers.h"

static struct throttle throttle;
static struct quota_user *payer;
static bool has_time; /* for turns */

static bool may_begin(struct connection *c)
{
    if (!has_time)
        house_on_again(c);
    return has_time;
}

static void on_end(struct connection *c)
{
    (void)c;
}

static bool may_ask(struct connection *c)
{
    return throttle_may_ask(&throttle, c, false);
}

static void on_closed(struct connection *c)
{
    throttle_cancel(&throttle, c);
    house_on_closed(c);
}

/* Admits a client of the user, who may ask once a millisecond. */
static struct guest *enter(void)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .closed = on_closed,
                                                    .begin = may_begin,
                                                    .end = on_end,
                                                    .again = house_on_again,
                                                    .may_ask = may_ask};
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    struct guest *g = &house.guests[house.n_guests++];
    *g = (struct guest){.house = &house, .fd = ends[0]};
    g->connection = connection_new(&house.loop, ends[1], &events, &house.state.tally, &house);
    ck_assert_ptr_nonnull(g->connection);
    g->connection->payer = payer;
    return g;
}

static struct guest *open_house(void)
{
    struct guest *g = begin(count);
    struct quota_excess excess;
    has_time = true;
    house.state.config->limits.user.requests_per_second = 1000;
    house.state.config->limits.user.burst = 1;
    ck_assert_int_eq(throttle_init(&throttle, &house.loop, &house.state.quota), 0);
    ck_assert_int_eq(
        quota_charge(&house.state.quota, 1, false, QUOTA_CONNECTIONS, 1, &payer, &excess), 0);
    return g;
}

static void close_house(void)
{
    for (unsigned i = 0; i < house.n_guests; i++)
        if (house.guests[i].connection)
            connection_close(house.guests[i].connection);
    alarm_close(&throttle.alarm, NULL);
    quota_refund(payer, QUOTA_CONNECTIONS, 1);
    house_close(&house);
}

/* Sends a request, and a second one too early. */
static void ask_too_fast(struct guest *g)
{
    LIST_FIRST(&throttle.quota->all)->paid_until_ns = now_ns() + 10000000;
    send_pings(g, 2);
    while (!g->connection->throttled)
        house_run(&house);
}

/* Waits until the client may ask again and is waiting for its turn. */
static void await_turn(const struct guest *g)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (!g->connection->turn.waits && now_ns() < deadline)
        uv_run(&house.loop, UV_RUN_NOWAIT);
    ck_assert(g->connection->turn.waits);
    ck_assert(!g->connection->throttled);
}

START_TEST(who_may_ask_again_waits_for_a_turn)
{
    open_house();
    struct guest *first = enter(), *second = enter();
    ask_too_fast(first);
    ask_too_fast(second);
    unsigned n = n_calls;
    has_time = false;
    await_turn(first);
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        uv_run(&house.loop, UV_RUN_NOWAIT);
    }
    ck_assert_uint_eq(n_calls, n);
    ck_assert(second->connection->throttled); /* the next client of the user */
    has_time = true;
    for (int i = 0; i < 2; i++) { /* house_run() gives all turns */
        ck_assert_ptr_nonnull(house_receive(first));
        ck_assert_ptr_nonnull(house_receive(second));
    }
    close_house();
}
END_TEST

START_TEST(the_next_one_goes_on_where_it_is_closed)
{
    open_house();
    struct guest *first = enter(), *second = enter();
    ask_too_fast(first);
    ask_too_fast(second);
    has_time = false;
    await_turn(first);
    connection_close(first->connection);
    has_time = true;
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(house_receive(second));
    close_house();
}
END_TEST

UNIT_MAIN("throttle", UNIT_TEST(who_may_ask_again_waits_for_a_turn),
          UNIT_TEST(the_next_one_goes_on_where_it_is_closed))
