/* SPDX-License-Identifier: Apache-2.0 */
/* Checks connection.c of the daemon: a client whose socket or process cannot be watched is turned
 * away, and leaves nothing. */
#include "daemon/clients/connection.h"

#include "unit/answers.h"
#include "unit/faults.h"

static struct tally tally;
static unsigned n_closed;

static void on_closed(struct connection *c)
{
    (void)c;
    n_closed++;
}

static const struct connection_events events = {.call = count, .closed = on_closed};

static uv_loop_t loop;

static void make_pair(int ends[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
}

static void on_event(uv_poll_t *poll, int status, int what)
{
    (void)poll, (void)status, (void)what;
}

/* Lets the loop watch a descriptor, so that it refuses to watch the same one again. */
static void watch(uv_poll_t *poll, int fd)
{
    ck_assert_int_eq(uv_poll_init(&loop, poll, fd), 0);
    ck_assert_int_eq(uv_poll_start(poll, UV_READABLE, on_event), 0);
}

/* Whether the other end was closed. */
static bool is_turned_away(int fd)
{
    char byte;
    return read(fd, &byte, 1) == 0;
}

static void begin_loop(void)
{
    hush();
    ck_assert_int_eq(uv_loop_init(&loop), 0);
}

static void end_loop(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_uint_eq(tally.n_connections, 0);
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
}

START_TEST(the_socket_cannot_be_watched)
{
    int ends[2];
    uv_poll_t other;
    begin_loop();
    make_pair(ends);
    watch(&other, ends[1]);
    ck_assert_ptr_null(connection_new(&loop, ends[1], &events, &tally, NULL));
    ck_assert(is_turned_away(ends[0]));
    ck_assert_uint_eq(n_closed, 0);
    close(ends[0]);
    uv_close((uv_handle_t *)&other, NULL);
    end_loop();
}
END_TEST

START_TEST(the_process_cannot_be_watched)
{
    int ends[2];
    uv_poll_t other;
    begin_loop();
    make_pair(ends);
    int next = fcntl(ends[0], F_DUPFD_CLOEXEC, 0); /* the number that the pidfd will have */
    watch(&other, next);
    close(next);
    ck_assert_ptr_null(connection_new(&loop, ends[1], &events, &tally, NULL));
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(is_turned_away(ends[0]));
    close(ends[0]);
    end_loop();
}
END_TEST

START_TEST(the_peer_is_unknown)
{
    static const int errors[] = {EIO, EINVAL}; /* EINVAL: it is dead */
    begin_loop();
    for (size_t i = 0; i < 2; i++) {
        int ends[2];
        make_pair(ends);
        faults_begin_call("getsockopt", 2, errors[i], false);
        ck_assert_ptr_null(connection_new(&loop, ends[1], &events, &tally, NULL));
        ck_assert(faults_end());
        ck_assert(is_turned_away(ends[0]));
        close(ends[0]);
    }
    end_loop();
}
END_TEST

START_TEST(memory_is_short)
{
    bool failed = true;
    begin_loop();
    for (unsigned n = 1; failed; n++) {
        int ends[2];
        make_pair(ends);
        faults_begin(FAULTS_MEMORY, n);
        struct connection *c = connection_new(&loop, ends[1], &events, &tally, NULL);
        failed = faults_end();
        ck_assert(!c == failed);
        if (c)
            connection_close(c);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert(is_turned_away(ends[0]));
        close(ends[0]);
        ck_assert_uint_eq(n_closed, !failed);
    }
    end_loop();
}
END_TEST

UNIT_MAIN("connection_watch", UNIT_TEST(the_socket_cannot_be_watched),
          UNIT_TEST(the_process_cannot_be_watched), UNIT_TEST(the_peer_is_unknown),
          UNIT_TEST(memory_is_short))
