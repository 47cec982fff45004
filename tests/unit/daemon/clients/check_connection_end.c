/* SPDX-License-Identifier: Apache-2.0 */
/* Checks connection.c of the daemon: how a connection ends. */
#include "daemon/clients/connection.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/base/slice.h"
#include "unit/answers.h"
#include "unit/faults.h"

/* --- The end ------------------------------------------------------------- */

START_TEST(client_hangs_up)
{
    struct guest *g = begin(later), *other = house_admit(&house);
    house_leave(g); /* idle */
    run_until_closed(g);
    send_pings(other, 1);
    while (n_calls == 0)
        house_run(&house);
    house_leave(other); /* while its reply is being made */
    run_until_closed(other);
    house_close(&house);
}
END_TEST

START_TEST(client_hangs_up_before_its_requests_are_read)
{
    struct guest *g = begin(count);
    ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    ck_assert_int_eq(write(g->fd, ping, 10), 10);
    house_leave(g);
    run_until_closed(g);
    ck_assert_uint_le(n_calls, 1);
    house_close(&house);
}
END_TEST

/* The kernel reports an error for a socket whose peer has left replies unread. libuv reports it
 * once, and this time the loop has no time for it. */
START_TEST(client_hangs_up_with_unread_replies_while_the_loop_is_late)
{
    struct guest *g = begin(count);
    send_pings(g, 1);
    while (n_calls == 0)
        house_run(&house);
    house_leave(g);
    slice_begin_turn(&house.loop);
    while (!slice_is_late())
        continue;
    uv_run(&house.loop, UV_RUN_NOWAIT);
    ck_assert_ptr_nonnull(g->connection);
    slice_begin_turn(NULL);
    run_until_closed(g);
    house_close(&house);
}
END_TEST

/* A client that has closed its sending side still gets all replies. */
START_TEST(half_closed)
{
    struct guest *g = begin(count);
    for (int i = 0; i < 40; i++)
        ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    ck_assert_int_eq(shutdown(g->fd, SHUT_WR), 0);
    for (unsigned i = 0; i < 40; i++)
        assert_numbered(g, i);
    house_expect_end(g);
    house_close(&house);
}
END_TEST

START_TEST(half_closed_while_an_answer_is_made)
{
    struct guest *g = begin(later);
    send_pings(g, 1);
    while (n_calls == 0)
        house_run(&house);
    ck_assert_int_eq(shutdown(g->fd, SHUT_WR), 0);
    for (int i = 0; i < 10; i++)
        house_run(&house);
    ck_assert_ptr_nonnull(g->connection);
    answer_now(g);
    assert_numbered(g, 0);
    house_expect_end(g);
    house_close(&house);
}
END_TEST

/* Requests that it sent before closing that side, and that are unread, count too. */
START_TEST(half_closed_with_requests_that_are_not_read_yet)
{
    struct guest *g = begin(later);
    send_pings(g, 1);
    while (n_calls == 0)
        house_run(&house);
    ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    ck_assert_int_eq(shutdown(g->fd, SHUT_WR), 0);
    for (int i = 0; i < 10; i++)
        house_run(&house);
    answer_now(g);
    for (unsigned i = 0; i < 3; i++)
        assert_numbered(g, i);
    house_expect_end(g);
    house_close(&house);
}
END_TEST

START_TEST(half_closed_while_an_answer_does_not_fit)
{
    struct guest *g = begin(large);
    send_pings(g, 2);
    for (int i = 0; i < 10; i++)
        house_run(&house);
    ck_assert_int_eq(write(g->fd, ping, sizeof ping), (ssize_t)sizeof ping);
    ck_assert_int_eq(shutdown(g->fd, SHUT_WR), 0);
    for (int i = 0; i < 10; i++)
        house_run(&house);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(house_receive(g), "the daemon hung up before reply %d", i);
    house_expect_end(g);
    house_close(&house);
}
END_TEST

START_TEST(closed_by_its_own_request)
{
    struct guest *g = begin(close_at_once);
    send_pings(g, 3);
    while (house_receive(g))
        continue;
    ck_assert_uint_eq(n_calls, 1);
    ck_assert_ptr_null(g->connection);
    house_close(&house);
}
END_TEST

START_TEST(closed_twice)
{
    struct guest *g = begin(count);
    struct connection *c = g->connection;
    connection_close(c);
    connection_close(c);
    house_expect_end(g);
    house_close(&house);
}
END_TEST

/* --- Last requests that wait for a turn ---------------------------------- */

static bool refuse_turn(struct connection *c)
{
    if (!c->turn.waits)
        TAILQ_INSERT_TAIL(&house.waiting, c, waiting);
    c->turn.waits = true;
    return false;
}

/* Its attachments end after CONNECTION_LINGER_MS, whether or not it gets a turn. */
START_TEST(gone_while_a_turn_does_not_come)
{
    static const struct connection_events events = {.call = house_on_call,
                                                    .closed = house_on_closed,
                                                    .begin = refuse_turn,
                                                    .again = house_on_again,
                                                    .gone = house_on_gone,
                                                    .lingers = house_on_lingers};
    int ends[2];
    begin(count);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    struct guest *g = &house.guests[house.n_guests++];
    *g = (struct guest){.house = &house, .fd = ends[0]};
    g->connection = connection_new(&house.loop, ends[1], &events, &house.state.tally, &house);
    ck_assert_ptr_nonnull(g->connection);
    send_pings(g, 1);
    house_run(&house);
    ck_assert(g->connection->turn.waits);
    connection_end(g->connection);
    connection_end(g->connection);
    ck_assert_uint_eq(house.n_lingers, 2);
    ck_assert_uint_eq(house.n_gone, 0);
    g->connection->gone_until_ns -= CONNECTION_LINGER_MS * INT64_C(1000000);
    connection_end(g->connection);
    ck_assert_uint_eq(house.n_lingers, 2);
    ck_assert_uint_eq(house.n_gone, 1);
    connection_close(g->connection);
    house_close(&house);
}
END_TEST

/* --- Processes ----------------------------------------------------------- */

/* A client's process dies while another process still holds its socket. */
START_TEST(death_of_a_process_whose_socket_is_held)
{
    int ends[2], ready[2];
    static const struct connection_events events = {
        .call = house_on_call, .closed = house_on_closed, .again = house_on_again};
    begin(count);
    ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
    /* the caller of socketpair() is the peer of both ends, so the child calls it */
    int carry[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, carry), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int mine[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, mine) ||
            frame_send(carry[1], "x", 2, mine, 2) != 2)
            _exit(1);
        pause();
    }
    struct frame in = {0};
    struct frame_descriptors fds = {0};
    ck_assert_int_eq(frame_receive(&in, carry[0], 10, &fds), 2);
    ends[0] = fds.fd[0];
    ends[1] = fds.fd[1];
    struct guest *g = &house.guests[house.n_guests++];
    *g = (struct guest){.house = &house, .fd = ends[0]};
    g->connection = connection_new(&house.loop, ends[1], &events, &house.state.tally, &house);
    ck_assert_ptr_nonnull(g->connection);
    ck_assert_int_eq(g->connection->peer.pid, pid);
    send_pings(g, 1);
    assert_numbered(g, 0);
    kill(pid, SIGKILL);
    run_until_closed(g); /* although its socket is open here */
    waitpid(pid, NULL, 0);
    house_expect_end(g);
    frame_deinit(&in);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(carry[i]);
    }
    house_close(&house);
}
END_TEST

/* Runs in a pid namespace in which the test has no pid, as on a kernel before Linux 6.5. */
static int serve_the_unknown(int fd, int other)
{
    static const struct connection_events events = {
        .call = house_on_call, .closed = house_on_closed, .again = house_on_again};
    struct guest *g = begin(count);
    faults_begin_call("getsockopt", 2, ENOPROTOOPT, false);
    house.guests[1] = (struct guest){.house = &house, .fd = other};
    house.guests[1].connection =
        connection_new(&house.loop, fd, &events, &house.state.tally, &house);
    house.n_guests++;
    if (!faults_end() || !house.guests[1].connection)
        return 1;
    if (house.guests[1].connection->peer.pid || house.guests[1].connection->peer.pidfd >= 0)
        return 2;
    send_pings(&house.guests[1], 1);
    while (n_calls == 0)
        house_run(&house);
    house_leave(&house.guests[1]);
    run_until_closed(&house.guests[1]);
    house_leave(g);
    house_close(&house);
    return 0;
}

START_TEST(of_a_process_that_cannot_be_seen)
{
    int ends[2], status;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(serve_the_unknown(ends[0], ends[1]));
    close(ends[0]);
    close(ends[1]);
    if (pid < 0)
        return; /* only root may create namespaces */
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

UNIT_MAIN("connection_end", UNIT_TEST(of_a_process_that_cannot_be_seen), UNIT_TEST(client_hangs_up),
          UNIT_TEST(client_hangs_up_with_unread_replies_while_the_loop_is_late),
          UNIT_TEST(client_hangs_up_before_its_requests_are_read), UNIT_TEST(half_closed),
          UNIT_TEST(half_closed_while_an_answer_is_made),
          UNIT_TEST(half_closed_with_requests_that_are_not_read_yet),
          UNIT_TEST(half_closed_while_an_answer_does_not_fit), UNIT_TEST(closed_by_its_own_request),
          UNIT_TEST(closed_twice), UNIT_TEST(gone_while_a_turn_does_not_come),
          UNIT_TEST(death_of_a_process_whose_socket_is_held))
