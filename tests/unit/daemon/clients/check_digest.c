/* SPDX-License-Identifier: Apache-2.0 */
/* Checks digest.c of the daemon: a thread reads long requests. */
#include "daemon/clients/digest.h"

#include "unit/answers.h"
#include "unit/faults.h"

/* A connection with a user, who pays for the buffers. */
static struct guest *begin_paid(void (*call)(struct connection *, const struct wire_call *,
                                             struct answer *),
                                struct quota_user **ret_user)
{
    struct guest *g = begin(call);
    *ret_user = g->connection->payer =
        quota_restore(&house.state.quota, 1000, QUOTA_CONNECTIONS, 1);
    return g;
}

/* Returns a call of the method with n bytes of spaces, new, and its length with the NUL. */
static char *long_call(const char *head, size_t n, size_t *ret_bytes)
{
    const char *json = unit_json(head);
    size_t bytes = strlen(json) + n;
    char *text = malloc(bytes + 1);
    memset(text, ' ', bytes);
    memcpy(text, json, strlen(json));
    text[bytes] = '\0';
    *ret_bytes = bytes + 1;
    return text;
}

static void run_until_read(struct guest *g)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (!g->connection->digest && now_ns() < deadline)
        house_run(&house);
    ck_assert_ptr_nonnull(g->connection->digest);
}

static void run_until_free(struct quota_user *u)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (u->used[QUOTA_BUFFERS] && now_ns() < deadline)
        house_run(&house);
    ck_assert_uint_eq(u->used[QUOTA_BUFFERS], 0);
}

/* Long and short requests that are sent at once are answered in their order. */
START_TEST(order_is_kept)
{
    struct quota_user *u;
    struct guest *g = begin_paid(count, &u);
    size_t n;
    char *text = long_call("{'method':'a.b'}", 20000, &n);
    for (unsigned i = 0; i < 8; i++) {
        house_send_bytes(g, text, n);
        send_pings(g, 2);
    }
    for (unsigned i = 0; i < 24; i++)
        assert_numbered(g, i);
    run_until_free(u);
    free(text);
    house_close(&house);
}
END_TEST

START_TEST(garbage_ends_the_connection)
{
    struct quota_user *u;
    struct guest *g = begin_paid(count, &u);
    size_t n;
    char *text = long_call("{'method':'a.b'", 20000, &n);
    hush();
    house_send_bytes(g, text, n);
    run_until_closed(g);
    ck_assert_uint_eq(n_calls, 0);
    ck_assert_uint_eq(u->used[QUOTA_BUFFERS], 0);
    free(text);
    house_close(&house);
}
END_TEST

/* The client hangs up while the thread reads, or before it does, or after it. All requests that it
 * sent are done; nothing stays. */
START_TEST(client_leaves)
{
    for (unsigned i = 0; i < 20; i++) {
        struct quota_user *u;
        struct guest *g = begin_paid(count, &u);
        size_t n;
        char *text = long_call("{'method':'a.b'}", 250000, &n);
        send_pings(g, 1);
        house_send_bytes(g, text, n);
        send_pings(g, 1);
        run_until_read(g);
        for (unsigned k = 0; k < i; k++)
            house_run(&house);
        house_leave(g);
        run_until_closed(g);
        ck_assert_uint_eq(n_calls, 3);
        run_until_free(u);
        free(text);
        house_close(&house);
    }
}
END_TEST

/* The attachments of a client that has gone wait for the thread, but not for long. */
START_TEST(attachments_end_while_a_thread_reads)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .closed = house_on_closed,
                                                    .again = house_on_again,
                                                    .gone = house_on_gone,
                                                    .lingers = house_on_lingers};
    struct quota_user *u;
    struct guest *g = begin_paid(count, &u);
    size_t n;
    char *text = long_call("{'method':'a.b'}", 250000, &n);
    g->connection->events = &events;
    house_send_bytes(g, text, n);
    run_until_read(g);
    connection_end(g->connection);
    ck_assert_uint_eq(house.n_lingers, 1);
    ck_assert_uint_eq(house.n_gone, 0);
    g->connection->gone_until_ns -= CONNECTION_LINGER_MS * INT64_C(1000000);
    connection_end(g->connection);
    ck_assert_uint_eq(house.n_lingers, 1);
    ck_assert_uint_eq(house.n_gone, 1);
    run_until_closed(g);
    ck_assert_uint_eq(n_calls, 1);
    run_until_free(u);
    free(text);
    house_close(&house);
}
END_TEST

/* Sends a long request and, in the same buffer, n bytes of the next one. */
static void send_with_rest(struct guest *g, size_t n)
{
    size_t bytes;
    char *text = long_call("{'method':'a.b'}", 20000, &bytes);
    text = realloc(text, bytes + n);
    memset(text + bytes, ' ', n);
    ck_assert_int_eq(write(g->fd, text, bytes + n), (ssize_t)(bytes + n));
    free(text);
}

/* The bytes that follow a long request are charged, although nothing more comes. */
START_TEST(what_follows_is_charged)
{
    struct quota_user *u;
    struct guest *g = begin_paid(count, &u);
    send_with_rest(g, 12000);
    run_until_read(g);
    ck_assert_uint_ge(u->used[QUOTA_BUFFERS], 32000 + 12000);
    assert_numbered(g, 0);
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (u->used[QUOTA_BUFFERS] != 12000 && now_ns() < deadline)
        house_run(&house);
    ck_assert_uint_eq(u->used[QUOTA_BUFFERS], 12000);
    house_leave(g);
    run_until_closed(g);
    run_until_free(u);
    house_close(&house);
}
END_TEST

START_TEST(too_much_that_follows_ends_the_connection)
{
    struct quota_user *u;
    struct quota_excess excess;
    struct guest *g = begin_paid(count, &u);
    const uint64_t others = LIMIT_BUFFERS_BYTES - 40000;
    ck_assert_int_eq(
        quota_charge(&house.state.quota, 1000, false, QUOTA_BUFFERS, others, &u, &excess), 0);
    hush();
    send_with_rest(g, 12000);
    unit_assert_holds(house_receive(g), "io.shmview.QuotaExceeded");
    house_expect_end(g);
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (u->used[QUOTA_BUFFERS] > others && now_ns() < deadline)
        house_run(&house);
    ck_assert_uint_eq(u->used[QUOTA_BUFFERS], others);
    ck_assert_uint_eq(n_calls, 0);
    house_close(&house);
}
END_TEST

static unsigned n_expected;

static void expect(struct connection *c, size_t n)
{
    (void)c;
    (void)n;
    n_expected++;
}

/* A thread also reads a long request that was received with the one before. */
START_TEST(both_of_two_are_read_by_threads)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .expect = expect,
                                                    .closed = house_on_closed,
                                                    .again = house_on_again};
    struct quota_user *u;
    struct guest *g = begin_paid(count, &u);
    size_t first, second;
    char *text = long_call("{'method':'a.b'}", 20000, &first);
    char *next = long_call("{'method':'a.b'}", 10000, &second);
    g->connection->events = &events;
    text = realloc(text, first + second);
    memcpy(text + first, next, second);
    ck_assert_int_eq(write(g->fd, text, first + second), (ssize_t)(first + second));
    assert_numbered(g, 0);
    assert_numbered(g, 1);
    ck_assert_uint_eq(n_expected, 2);
    run_until_free(u);
    free(next);
    free(text);
    house_close(&house);
}
END_TEST

static unsigned n_stray;

static void *prepare(const struct wire_call *call)
{
    (void)call;
    return strdup("prepared");
}

static void unprepare(void *prepared)
{
    free(prepared);
    n_stray++;
}

static void take_prepared(struct connection *c, const struct wire_call *call, struct answer *answer)
{
    count(c, call, answer);
    if (c->prepared)
        ck_assert_str_eq(c->prepared, "prepared");
    free(STEAL(c->prepared));
}

/* What a thread has prepared reaches the call, or is freed without one. */
START_TEST(prepared_goes_somewhere)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .prepare = prepare,
                                                    .unprepare = unprepare,
                                                    .closed = house_on_closed,
                                                    .again = house_on_again};
    struct quota_user *u;
    struct guest *g = begin_paid(take_prepared, &u);
    size_t n;
    char *text = long_call("{'method':'a.b'}", 20000, &n);
    g->connection->events = &events;
    house_send_bytes(g, text, n);
    assert_numbered(g, 0);
    ck_assert_uint_eq(n_stray, 0);
    house_send_bytes(g, text, n);
    run_until_read(g);
    connection_close(g->connection); /* the thread is at work, or done */
    run_until_free(u);
    ck_assert_uint_eq(n_calls, 1);
    ck_assert_uint_le(n_stray, 1); /* none if the work had not begun */
    free(text);
    house_close(&house);
}
END_TEST

/* Without memory the connection may end, or the loop reads the request itself. */
START_TEST(every_allocation_fails)
{
    bool failed = true;
    hush();
    for (unsigned n = 1; failed; n++) {
        struct quota_user *u;
        struct guest *g = begin_paid(count, &u);
        size_t bytes;
        char *text = long_call("{'method':'a.b'}", 12000, &bytes);
        ck_assert_int_eq(write(g->fd, text, bytes), (ssize_t)bytes);
        ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
        faults_begin(FAULTS_MEMORY, n);
        for (int i = 0; i < 10; i++)
            house_run(&house);
        failed = faults_end();
        free(text);
        house_close(&house);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}
END_TEST

UNIT_MAIN("digest", UNIT_TEST(order_is_kept), UNIT_TEST(garbage_ends_the_connection),
          UNIT_TEST(client_leaves), UNIT_TEST(attachments_end_while_a_thread_reads),
          UNIT_TEST(what_follows_is_charged), UNIT_TEST(too_much_that_follows_ends_the_connection),
          UNIT_TEST(both_of_two_are_read_by_threads), UNIT_TEST(prepared_goes_somewhere),
          UNIT_TEST(every_allocation_fails))
