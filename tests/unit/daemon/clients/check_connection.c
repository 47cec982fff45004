/* SPDX-License-Identifier: Apache-2.0 */
/* Checks connection.c of the daemon, with methods that the test provides. */
#include "daemon/clients/connection.h"

#include "unit/answers.h"
#include "unit/faults.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif

/* --- Requests and answers ------------------------------------------------ */

START_TEST(one_by_one)
{
    struct guest *g = begin(count);
    for (unsigned i = 0; i < 50; i++) {
        send_pings(g, 1);
        assert_numbered(g, i);
        ck_assert_str_eq(last_method, "io.shmview.Ping");
    }
    house_close(&house);
}
END_TEST

START_TEST(byte_by_byte)
{
    struct guest *g = begin(count);
    for (size_t i = 0; i < sizeof ping; i++) {
        ck_assert_uint_eq(n_calls, 0);
        ck_assert_int_eq(write(g->fd, ping + i, 1), 1);
        house_run(&house);
        house_run(&house);
    }
    assert_numbered(g, 0);
    house_close(&house);
}
END_TEST

/* No client may delay the others by sending many requests at once. */
START_TEST(turns)
{
    struct guest *g = begin(count), *other = house_admit(&house);
    char many[100 * sizeof ping];
    for (int i = 0; i < 100; i++)
        memcpy(many + (size_t)i * sizeof ping, ping, sizeof ping);
    ck_assert_int_eq(write(g->fd, many, sizeof many), (ssize_t)sizeof many);
    ck_assert_int_eq(write(other->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    uv_run(&house.loop, UV_RUN_NOWAIT);
    ck_assert_uint_lt(n_calls, 40);
    const char *got = house_receive(other);
    ck_assert_int_lt(atoi(strstr(got, "\"n\":") + 4), 60);
    for (unsigned i = 0; i < 101; i++)
        if (!strstr(got, "x") && i != (unsigned)atoi(strstr(got, "\"n\":") + 4))
            assert_numbered(g, i);
    ck_assert_uint_gt(house.n_turns, 3);
    house_close(&house);
}
END_TEST

START_TEST(many_at_once)
{
    struct guest *g = begin(count);
    const unsigned n = 5000;
    char *many = malloc(n * sizeof ping);
    for (unsigned i = 0; i < n; i++)
        memcpy(many + (size_t)i * sizeof ping, ping, sizeof ping);
    /* the replies are read at the same time, otherwise none would fit */
    size_t at = 0;
    unsigned got = 0;
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (got < n && now_ns() < deadline) {
        ssize_t sent = at < n * sizeof ping ? send(g->fd, many + at, n * sizeof ping - at, 0) : 0;
        at += sent > 0 ? (size_t)sent : 0;
        house_run(&house);
        char *text;
        size_t bytes;
        frame_receive(&g->in, g->fd, LIMIT_REPLY_BYTES, NULL);
        while (frame_next(&g->in, &text, &bytes))
            got++;
    }
    ck_assert_uint_eq(got, n);
    free(many);
    house_close(&house);
}
END_TEST

/* Requests without a reply can pile up: many short ones must not count as one long one. */
START_TEST(many_megabytes_of_short_requests)
{
    struct guest *g = begin(count);
    static const char oneway[] = "{\"method\":\"io.shmview.Ping\",\"oneway\":true}";
    const unsigned n = 3 * LIMIT_REQUEST_BYTES / sizeof oneway;
    hush();
    char *many = malloc(n * sizeof oneway);
    for (unsigned i = 0; i < n; i++)
        memcpy(many + (size_t)i * sizeof oneway, oneway, sizeof oneway);
    house_send_bytes(g, many, n * sizeof oneway);
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (n_calls < n && g->connection && now_ns() < deadline)
        house_run(&house);
    ck_assert_msg(g->connection, "closed after %u of %u requests", n_calls, n);
    ck_assert_uint_eq(n_calls, n);
    free(many);
    send_pings(g, 1);
    assert_numbered(g, n);
    house_close(&house);
}
END_TEST

START_TEST(oneway_gets_no_reply)
{
    struct guest *g = begin(with_descriptor);
    for (int i = 0; i < 5; i++)
        house_send(g, "{'method':'a.b','oneway':true}");
    send_pings(g, 1);
    assert_numbered(g, 5);
    ck_assert_uint_eq(g->fds.n, 1);
    house_close(&house);
}
END_TEST

START_TEST(an_answer_that_comes_later)
{
    struct guest *g = begin(later);
    send_pings(g, 4);
    for (int i = 0; i < 10; i++)
        house_run(&house);
    ck_assert_uint_eq(n_calls, 1); /* one at a time */
    answer_now(g);
    for (unsigned i = 0; i < 4; i++)
        assert_numbered(g, i);
    house_close(&house);
}
END_TEST

START_TEST(an_answer_that_nobody_waits_for)
{
    struct guest *g = begin(later);
    house_send(g, "{'method':'a.b','oneway':true}");
    while (n_calls == 0)
        house_run(&house);
    send_pings(g, 1);
    answer_now(g);
    assert_numbered(g, 1);
    house_close(&house);
}
END_TEST

START_TEST(errors_are_answers)
{
    struct guest *g = begin(later);
    send_pings(g, 1);
    while (n_calls == 0)
        house_run(&house);
    struct answer answer = {.error = SHMVIEW_ERR_SYSTEM};
    connection_answer(g->connection, &answer);
    ck_assert_str_eq(house_receive(g), "{\"error\":\"io.shmview.Failed\",\"parameters\":{}}");
    house_close(&house);
}
END_TEST

/* --- A client that does not read ----------------------------------------- */

START_TEST(large_answers)
{
    struct guest *g = begin(large);
    send_pings(g, 3);
    for (int i = 0; i < 50; i++)
        house_run(&house);
    ck_assert_uint_eq(n_calls, 1); /* the next request waits until this reply is sent */
    for (int i = 0; i < 3; i++) {
        const char *got = house_receive(g);
        ck_assert_ptr_nonnull(got);
        ck_assert_uint_eq(strlen(got), strlen("{\"parameters\":{\"text\":\"\"}}") + 1999999);
        ck_assert_int_eq(got[1000], 'a' + i);
    }
    house_close(&house);
}
END_TEST

/* Descriptors wait for their turn like every other reply. */
START_TEST(descriptors_in_a_full_socket)
{
    struct guest *g = begin(with_descriptor);
    const unsigned n = 1500;
    unsigned got = 0, fds = 0;
    char *many = malloc(n * sizeof ping);
    for (unsigned i = 0; i < n; i++)
        memcpy(many + (size_t)i * sizeof ping, ping, sizeof ping);
    ck_assert_int_eq(write(g->fd, many, n * sizeof ping), (ssize_t)(n * sizeof ping));
    free(many);
    for (int i = 0; i < 500; i++)
        house_run(&house);
    ck_assert_uint_lt(n_calls, n);
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (got < n && now_ns() < deadline) {
        char *text;
        size_t bytes;
        if (frame_receive(&g->in, g->fd, LIMIT_REPLY_BYTES, &g->fds) == 0)
            break;
        fds += (unsigned)g->fds.n;
        frame_descriptors_close(&g->fds);
        while (frame_next(&g->in, &text, &bytes))
            got++;
        house_run(&house);
    }
    ck_assert_msg(got == n, "closed after %u of %u answers", got, n);
    ck_assert_uint_eq(fds, n);
    house_close(&house);
}
END_TEST

/* --- Violations ---------------------------------------------------------- */

START_TEST(no_json)
{
    static const char *const texts[] = {"",
                                        "{",
                                        "[]",
                                        "{}",
                                        "hello",
                                        "{'method':1}",
                                        "\xff",
                                        "{'method':'a','method':'a'}",
                                        "GET / HTTP/1.1\r\n\r\n"};
    begin(count);
    hush();
    for (size_t i = 0; i < 7; i++) {
        struct guest *g = house_admit(&house);
        send_pings(g, 1);
        house_receive(g);
        house_send(g, texts[i]);
        house_expect_end(g);
    }
    ck_assert_uint_eq(n_calls, 7);
    house_close(&house);
}
END_TEST

START_TEST(longest_request)
{
    struct guest *g = begin(count), *other = house_admit(&house);
    char *text = malloc(LIMIT_REQUEST_BYTES + 2);
    hush();
    memset(text, ' ', LIMIT_REQUEST_BYTES + 2);
    memcpy(text, ping, sizeof ping - 1);
    text[LIMIT_REQUEST_BYTES] = '\0';
    house_send_bytes(g, text, LIMIT_REQUEST_BYTES + 1);
    assert_numbered(g, 0);
    house_send_bytes(g, text, LIMIT_REQUEST_BYTES + 1);
    assert_numbered(g, 1);
    text[LIMIT_REQUEST_BYTES] = ' ';
    text[LIMIT_REQUEST_BYTES + 1] = '\0';
    house_send_bytes(other, text, LIMIT_REQUEST_BYTES + 2);
    run_until_closed(other);
    ck_assert_uint_eq(n_calls, 2);
    ck_assert_ptr_nonnull(g->connection);
    free(text);
    house_close(&house);
}
END_TEST

START_TEST(descriptors_with_a_request)
{
    struct guest *g = begin(count);
    hush();
    unsigned before = unit_fds();
    int yes = 1; /* as before Linux 6.16 */
    setsockopt(g->connection->fd, SOL_SOCKET, SO_PASSRIGHTS, &yes, sizeof yes);
    ck_assert_int_eq(frame_send(g->fd, ping, sizeof ping, &g->fd, 1), (ssize_t)sizeof ping);
    run_until_closed(g);
    ck_assert_uint_eq(n_calls, 0);
    uv_run(&house.loop, UV_RUN_NOWAIT);
    /* its pidfd, and its socket, which a thread closes */
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (unit_fds() != before - 2 && now_ns() < deadline)
        usleep(1000);
    ck_assert_uint_eq(unit_fds(), before - 2);
    house_close(&house);
}
END_TEST

/* --- Failures ------------------------------------------------------------ */

START_TEST(refused_at_the_door)
{
    static const struct connection_events events = {
        .call = house_on_call, .closed = house_on_closed, .again = house_on_again};
    const char *names[] = {"calloc", "getsockopt"};
    begin(count);
    hush();
    for (int i = 0; i < 2; i++) {
        int ends[2];
        unsigned before = unit_fds();
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
                         0);
        faults_begin_call(names[i], 1, ENOMEM, false);
        ck_assert_ptr_null(
            connection_new(&house.loop, ends[1], &events, &house.state.tally, &house));
        ck_assert(faults_end());
        close(ends[0]);
        ck_assert_uint_eq(unit_fds(), before);
    }
    house_close(&house);
}
END_TEST

/* When memory is short a connection may end, but nothing else. */
START_TEST(every_allocation_of_a_request_fails)
{
    bool failed = true;
    hush();
    for (unsigned n = 1; failed; n++) {
        struct guest *g = begin(with_descriptor);
        ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
        faults_begin(FAULTS_MEMORY, n);
        for (int i = 0; i < 3; i++)
            house_run(&house);
        failed = faults_end();
        house_close(&house);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}
END_TEST

UNIT_MAIN("connection", UNIT_TEST(one_by_one), UNIT_TEST(byte_by_byte), UNIT_TEST(turns),
          UNIT_TEST(many_at_once), UNIT_TEST(many_megabytes_of_short_requests),
          UNIT_TEST(oneway_gets_no_reply), UNIT_TEST(an_answer_that_comes_later),
          UNIT_TEST(an_answer_that_nobody_waits_for), UNIT_TEST(errors_are_answers),
          UNIT_TEST(large_answers), UNIT_TEST(descriptors_in_a_full_socket), UNIT_TEST(no_json),
          UNIT_TEST(longest_request), UNIT_TEST(descriptors_with_a_request),
          UNIT_TEST(refused_at_the_door), UNIT_TEST(every_allocation_of_a_request_fails))
