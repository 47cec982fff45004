/* SPDX-License-Identifier: Apache-2.0 */
/* Checks descriptor.c: numbers above those of the standard streams, and peers that hang up. */
#include "unit/unit.h"

#include <sys/socket.h>

#include "common/base/descriptor.h"

START_TEST(standard_numbers_are_left)
{
    ck_assert_int_eq(descriptor_lift(-EMFILE), -EMFILE);
    int high = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(high, STDERR_FILENO);
    ck_assert_int_eq(descriptor_lift(high), high);
    int saved = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    ck_assert_int_eq(dup2(high, STDIN_FILENO), STDIN_FILENO);
    int lifted = descriptor_lift(STDIN_FILENO);
    ck_assert_int_gt(lifted, STDERR_FILENO);
    ck_assert_int_eq(fcntl(lifted, F_GETFD), FD_CLOEXEC);
    ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFD), -1);
    if (saved >= 0) {
        ck_assert_int_eq(dup2(saved, STDIN_FILENO), STDIN_FILENO);
        close(saved);
    }
    close(lifted);
    close(high);
}
END_TEST

static void open_pair(int ends[2])
{
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

START_TEST(a_peer_that_closes_has_hung_up)
{
    int ends[2];
    open_pair(ends);
    ck_assert(!descriptor_hung_up(ends[0]));
    close(ends[1]);
    ck_assert(descriptor_hung_up(ends[0]));
    close(ends[0]);
}
END_TEST

START_TEST(unread_bytes_hide_nothing)
{
    char byte;
    int ends[2];
    open_pair(ends);
    ck_assert_int_eq(send(ends[1], "x", 1, 0), 1);
    ck_assert(!descriptor_hung_up(ends[0]));
    close(ends[1]);
    ck_assert(descriptor_hung_up(ends[0]));
    ck_assert_int_eq(recv(ends[0], &byte, 1, 0), 1); /* the check has consumed nothing */
    ck_assert(descriptor_hung_up(ends[0]));
    close(ends[0]);
}
END_TEST

/* A peer that closes with unread bytes resets the connection, and the reader must still get that
 * error. */
START_TEST(a_reset_is_kept_for_the_reader)
{
    char byte;
    int ends[2];
    open_pair(ends);
    ck_assert_int_eq(send(ends[0], "x", 1, 0), 1);
    close(ends[1]);
    ck_assert(descriptor_hung_up(ends[0]));
    ck_assert_int_eq(recv(ends[0], &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(ends[0]);
}
END_TEST

START_TEST(only_the_direction_towards_us_counts)
{
    int ends[2];
    open_pair(ends);
    ck_assert_int_eq(shutdown(ends[1], SHUT_RD), 0);
    ck_assert(!descriptor_hung_up(ends[0]));
    ck_assert_int_eq(shutdown(ends[1], SHUT_WR), 0);
    ck_assert(descriptor_hung_up(ends[0]));
    close(ends[0]);
    close(ends[1]);
}
END_TEST

UNIT_MAIN("descriptor", UNIT_TEST(standard_numbers_are_left),
          UNIT_TEST(a_peer_that_closes_has_hung_up), UNIT_TEST(unread_bytes_hide_nothing),
          UNIT_TEST(a_reset_is_kept_for_the_reader),
          UNIT_TEST(only_the_direction_towards_us_counts))
