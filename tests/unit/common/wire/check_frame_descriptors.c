/* SPDX-License-Identifier: Apache-2.0 */
/* Checks frame.c: descriptors that are sent with a message. */
#include <sys/resource.h>

#include "unit/stream.h"

/* Sends text with n copies of a descriptor, which may be more than frame_send() allows. */
static void put_fds(struct stream *s, const char *text, size_t bytes, size_t n)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * 64)];
    } control = {0};
    struct iovec iov = {(char *)text, bytes};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room};
    msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * n);
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(c) + i * sizeof null, &null, sizeof null);
    ck_assert_int_eq(sendmsg(s->out, &msg, 0), (ssize_t)bytes);
    close(null);
}

START_TEST(descriptors_pass)
{
    for (size_t n = 0; n <= LIMIT_DESCRIPTORS; n++) {
        struct stream s = stream_open();
        struct frame_descriptors got = {0};
        int pipes[LIMIT_DESCRIPTORS][2], fds[LIMIT_DESCRIPTORS];
        for (size_t i = 0; i < n; i++) {
            ck_assert_int_eq(pipe2(pipes[i], O_CLOEXEC), 0);
            fds[i] = pipes[i][1];
        }
        ck_assert_int_eq(frame_send(s.out, "hello", 6, fds, n), 6);
        ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, &got), 6);
        assert_next(&s, "hello");
        ck_assert_uint_eq(got.n, n);
        for (size_t i = 0; i < n; i++) {
            char byte = 0;
            ck_assert_int_eq(fcntl(got.fd[i], F_GETFD), FD_CLOEXEC);
            ck_assert_int_eq(write(got.fd[i], &(char){(char)('0' + i)}, 1), 1); /* in order */
            ck_assert_int_eq(read(pipes[i][0], &byte, 1), 1);
            ck_assert_int_eq(byte, (char)('0' + i));
            close(pipes[i][0]);
            close(pipes[i][1]);
        }
        frame_descriptors_close(&got);
        ck_assert_uint_eq(got.n, 0);
        stream_close(&s);
    }
}
END_TEST

START_TEST(descriptors_of_two_messages_queue_up)
{
    struct stream s = stream_open();
    struct frame_descriptors got = {0};
    put_fds(&s, "a", 2, 1);
    put_fds(&s, "b", 2, 2);
    while (frame_receive(&s.frame, s.in, 100, &got) > 0)
        continue;
    assert_next(&s, "a");
    assert_next(&s, "b");
    ck_assert_uint_eq(got.n, 3);
    frame_descriptors_close(&got);
    stream_close(&s);
}
END_TEST

START_TEST(more_descriptors_than_fit)
{
    for (size_t n = LIMIT_DESCRIPTORS + 1; n <= 64; n++) {
        unsigned before = unit_fds();
        struct stream s = stream_open();
        struct frame_descriptors got = {0};
        put_fds(&s, "x", 2, n);
        ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, &got), -EPROTO);
        assert_none(&s);
        frame_descriptors_close(&got);
        stream_close(&s);
        ck_assert_uint_eq(unit_fds(), before);
    }
}
END_TEST

START_TEST(more_descriptors_than_are_left)
{
    for (size_t first = 1; first <= LIMIT_DESCRIPTORS; first++)
        for (size_t second = 1; second <= LIMIT_DESCRIPTORS; second++) {
            unsigned before = unit_fds();
            struct stream s = stream_open();
            struct frame_descriptors got = {0};
            put_fds(&s, "x", 2, first);
            put_fds(&s, "y", 2, second);
            ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, &got), 2);
            ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, &got),
                             first + second <= LIMIT_DESCRIPTORS ? 2 : -EPROTO);
            ck_assert_uint_le(got.n, LIMIT_DESCRIPTORS);
            frame_descriptors_close(&got);
            stream_close(&s);
            ck_assert_uint_eq(unit_fds(), before);
        }
}
END_TEST

START_TEST(descriptors_where_none_are_expected)
{
    for (size_t n = 1; n <= 8; n++) {
        unsigned before = unit_fds();
        struct stream s = stream_open();
        put_fds(&s, "x", 2, n);
        ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), -EPROTO);
        assert_none(&s);
        stream_close(&s);
        ck_assert_uint_eq(unit_fds(), before);
    }
}
END_TEST

/* The kernel cannot install the descriptors: the list is cut short, and this is reported. */
START_TEST(no_descriptor_left_in_this_process)
{
    struct rlimit old, low;
    struct stream s = stream_open();
    struct frame_descriptors got = {0};
    put_fds(&s, "x", 2, 3);
    unsigned before = unit_fds();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    int next = dup(s.in); /* the number that the first one would get */
    low.rlim_cur = (rlim_t)next + 2;
    close(next);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ssize_t r = frame_receive(&s.frame, s.in, 100, &got);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    ck_assert_int_eq(r, 2); /* the text has arrived: the peer is not at fault */
    ck_assert(got.lost);
    ck_assert_uint_eq(got.n, 0);
    ck_assert_uint_eq(unit_fds(), before);
    stream_close(&s);
}
END_TEST

/* Closes each of the descriptors, and none between them. */
START_TEST(close_descriptors)
{
    static const bool kept[][8] = {{0}, {1}, {0, 1}, {0, 0, 1}, {1, 0, 0, 0, 1}, {0, 1, 0, 1, 0}};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        for (int reverse = 0; reverse < 2; reverse++) {
            struct frame_descriptors d = {0};
            int fds[8];
            for (int k = 0; k < 8; k++)
                fds[k] = dup(0);
            for (int k = 0; k < 8 && d.n < LIMIT_DESCRIPTORS; k++)
                if (!kept[i][reverse ? 7 - k : k])
                    d.fd[d.n++] = fds[reverse ? 7 - k : k];
            struct frame_descriptors copy = d;
            frame_descriptors_close(&d);
            ck_assert_uint_eq(d.n, 0);
            for (int k = 0; k < 8; k++) {
                bool given = false;
                for (size_t m = 0; m < copy.n; m++)
                    given = given || copy.fd[m] == fds[k];
                ck_assert_int_eq(fcntl(fds[k], F_GETFD) >= 0, !given);
                if (!given)
                    close(fds[k]);
            }
        }
}
END_TEST

UNIT_MAIN("frame_descriptors", UNIT_TEST(descriptors_pass),
          UNIT_TEST(descriptors_of_two_messages_queue_up), UNIT_TEST(more_descriptors_than_fit),
          UNIT_TEST(more_descriptors_than_are_left), UNIT_TEST(descriptors_where_none_are_expected),
          UNIT_TEST(no_descriptor_left_in_this_process), UNIT_TEST(close_descriptors))
