/* SPDX-License-Identifier: Apache-2.0 */
/* Checks frame.c: messages in pieces of any size, the limit of their length, sending, and calls
 * that fail. */
#include "unit/faults.h"
#include "unit/stream.h"

/* --- Text ---------------------------------------------------------------- */

START_TEST(byte_by_byte)
{
    struct stream s = stream_open();
    const char text[] = "{\"method\":\"io.shmview.Ping\"}";
    assert_none(&s);
    for (size_t i = 0; i < sizeof text; i++) {
        assert_none(&s);
        put(&s, text + i, 1);
        ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 1);
    }
    assert_next(&s, text);
    assert_none(&s);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), -EAGAIN);
    stream_close(&s);
}
END_TEST

START_TEST(two_in_one)
{
    struct stream s = stream_open();
    put(&s, "one\0two", 8);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 8);
    assert_next(&s, "one");
    assert_next(&s, "two");
    assert_none(&s);
    stream_close(&s);
}
END_TEST

START_TEST(one_and_a_half)
{
    struct stream s = stream_open();
    put(&s, "one\0tw", 6);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 6);
    assert_next(&s, "one");
    assert_none(&s);
    put(&s, "o\0\0three\0fo", 11);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 11);
    assert_next(&s, "two");
    assert_next(&s, ""); /* an empty message is one */
    assert_next(&s, "three");
    assert_none(&s);
    assert_none(&s);
    put(&s, "ur", 3);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 3);
    assert_next(&s, "four");
    stream_close(&s);
}
END_TEST

/* Random messages, cut at random places, must arrive unchanged. */
START_TEST(random_cuts)
{
    struct stream s = stream_open();
    uint64_t seed = 0xfeedface12345678;
    char sent[64][3000], all[3001];
    for (int round = 0; round < 200; round++) {
        unsigned n = 0, got = 0;
        size_t have = 0;
        while (n < 64 && have + 1 < 40000) {
            size_t bytes = unit_random(&seed) % (n % 8 ? 60 : 2999);
            memset(sent[n], 'a' + (int)(n % 26), bytes);
            sent[n][bytes] = '\0';
            memcpy(all, sent[n], bytes + 1);
            for (size_t at = 0; at < bytes + 1;) {
                size_t cut = 1 + unit_random(&seed) % 700;
                cut = cut < bytes + 1 - at ? cut : bytes + 1 - at;
                put(&s, all + at, cut);
                at += cut;
                if (unit_random(&seed) % 2)
                    ck_assert_int_gt(frame_receive(&s.frame, s.in, 1 << 20, NULL), 0);
                char *text;
                size_t length;
                if (unit_random(&seed) % 3 == 0 && frame_next(&s.frame, &text, &length))
                    ck_assert_str_eq(text, sent[got++]);
            }
            have += bytes + 1;
            n++;
        }
        while (frame_receive(&s.frame, s.in, 1 << 20, NULL) > 0)
            continue;
        while (got < n)
            assert_next(&s, sent[got++]);
        assert_none(&s);
    }
    stream_close(&s);
}
END_TEST

START_TEST(end_of_stream)
{
    struct stream s = stream_open();
    put(&s, "half", 4);
    close(s.out);
    s.out = -1;
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 4);
    assert_none(&s);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 0);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 1000, NULL), 0);
    assert_none(&s);
    stream_close(&s);
}
END_TEST

START_TEST(not_a_socket)
{
    struct stream s = stream_open();
    ck_assert_int_eq(frame_receive(&s.frame, -1, 1000, NULL), -EBADF);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(frame_receive(&s.frame, null, 1000, NULL), -ENOTSOCK);
    close(null);
    stream_close(&s);
}
END_TEST

/* --- Limit --------------------------------------------------------------- */

/* Sends a message of n bytes and its NUL while receiving, as a connection does. Returns 0 when the
 * message arrived, or the result of frame_receive(). */
static ssize_t pass(size_t n, size_t limit)
{
    struct stream s = stream_open();
    char *text = calloc(1, n + 1), *got = NULL;
    size_t at = 0, bytes = 0;
    ssize_t r = 1;
    memset(text, 'x', n);
    while (r > 0 || r == -EAGAIN) {
        ssize_t sent = at < n + 1 ? send(s.out, text + at, n + 1 - at, MSG_DONTWAIT) : 0;
        at += sent > 0 ? (size_t)sent : 0;
        r = frame_receive(&s.frame, s.in, limit, NULL);
        if (r > 0 && frame_next(&s.frame, &got, &bytes)) {
            ck_assert_uint_eq(bytes, n);
            r = 0;
        }
    }
    free(text);
    stream_close(&s);
    return r;
}

static const size_t limits[] = {
    10, 4094, 4095, 4096, 4097, 8191, 8192, 100000, LIMIT_REQUEST_BYTES};

START_TEST(exactly_the_limit)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        ck_assert_int_eq(pass(limits[i] - 1, limits[i]), 0);
        ck_assert_int_eq(pass(limits[i], limits[i]), 0);
    }
}
END_TEST

START_TEST(far_more_than_the_limit)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        ck_assert_int_eq(pass(limits[i] + 2 * 1024 * 1024, limits[i]), -EMSGSIZE);
}
END_TEST

START_TEST(one_byte_more_than_the_limit)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        ck_assert_msg(pass(limits[i] + 1, limits[i]) == -EMSGSIZE,
                      "limit %zu: a message of one byte more came through", limits[i]);
}
END_TEST

/* Many short messages together must not count as one that is too long. */
START_TEST(many_short_messages_before_they_are_read)
{
    struct stream s = stream_open();
    char text[1000];
    memset(text, 'x', 99);
    for (int i = 0; i < 10; i++) {
        memset(text + i * 100, 'a' + i, 99);
        text[i * 100 + 99] = '\0';
    }
    put(&s, text, sizeof text);
    for (int i = 0; i < 10;) {
        char *got;
        size_t n;
        if (!frame_next(&s.frame, &got, &n))
            ck_assert_int_gt(frame_receive(&s.frame, s.in, 100, NULL), 0);
        else
            ck_assert_str_eq(got, text + i++ * 100);
    }
    assert_none(&s);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), -EAGAIN);
    stream_close(&s);
}
END_TEST

/* --- Sending ------------------------------------------------------------- */

START_TEST(send_to_nobody)
{
    struct stream s = stream_open();
    close(s.in);
    s.in = -1;
    ck_assert_int_eq(frame_send(s.out, "x", 2, NULL, 0), -EPIPE); /* and no SIGPIPE */
    ck_assert_int_eq(frame_send(-1, "x", 2, NULL, 0), -EBADF);
    ck_assert_int_eq(frame_send(s.out, "x", 2, (int[]){-1}, 1), -EBADF);
    stream_close(&s);
}
END_TEST

START_TEST(send_in_parts)
{
    struct stream s = stream_open();
    const size_t n = 3 * 1024 * 1024;
    char *text = malloc(n), *got;
    size_t sent = 0, bytes, parts = 0;
    struct frame_descriptors fds = {0};
    memset(text, 'y', n - 1);
    text[n - 1] = '\0';
    while (sent < n) {
        ssize_t r = frame_send(s.out, text + sent, n - sent, (int[]){s.in}, sent ? 0 : 1);
        if (r == -EAGAIN) {
            ck_assert_int_gt(frame_receive(&s.frame, s.in, n, &fds), 0);
            continue;
        }
        ck_assert_int_gt(r, 0);
        sent += (size_t)r;
        parts++;
    }
    while (frame_receive(&s.frame, s.in, n, &fds) > 0)
        continue;
    ck_assert_uint_gt(parts, 1);
    ck_assert_uint_eq(fds.n, 1);
    ck_assert(frame_next(&s.frame, &got, &bytes));
    ck_assert_uint_eq(bytes, n - 1);
    ck_assert_mem_eq(got, text, n);
    frame_descriptors_close(&fds);
    free(text);
    stream_close(&s);
}
END_TEST

/* the caller decides */

START_TEST(interrupted_calls)
{
    struct stream s = stream_open();
    faults_begin_call("sendmsg", 1, EINTR, false);
    ck_assert_int_eq(frame_send(s.out, "hi", 3, NULL, 0), 3);
    ck_assert(faults_end());
    faults_begin_call("recvmsg", 1, EINTR, false);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), -EINTR);
    ck_assert(faults_end());
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), 3);
    assert_next(&s, "hi");
    stream_close(&s);
}
END_TEST

START_TEST(failures_are_told)
{
    struct stream s = stream_open();
    put(&s, "hi", 3);
    faults_begin(FAULTS_MEMORY, 1);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), -ENOMEM);
    ck_assert(faults_end());
    faults_begin_call("recvmsg", 1, ECONNRESET, false);
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), -ECONNRESET);
    ck_assert(faults_end());
    ck_assert_int_eq(frame_receive(&s.frame, s.in, 100, NULL), 3);
    assert_next(&s, "hi");
    faults_begin_call("sendmsg", 1, ENOBUFS, false);
    ck_assert_int_eq(frame_send(s.out, "hi", 3, NULL, 0), -ENOBUFS);
    ck_assert(faults_end());
    stream_close(&s);
}
END_TEST

/* If a buffer cannot grow, it keeps its bytes. */
START_TEST(no_memory_to_grow)
{
    struct stream s = stream_open();
    char text[100000], *got;
    size_t n, failures = 0;
    ssize_t r = 1;
    memset(text, 'z', sizeof text);
    text[sizeof text - 1] = '\0';
    put(&s, text, sizeof text);
    while (r > 0 || r == -ENOMEM) {
        faults_begin(FAULTS_MEMORY, failures % 2 ? 9 : 1); /* lets every other call fail */
        r = frame_receive(&s.frame, s.in, sizeof text, NULL);
        faults_end();
        failures += r == -ENOMEM || failures % 2;
    }
    ck_assert_int_eq(r, -EAGAIN);
    ck_assert_uint_gt(failures, 5);
    ck_assert(frame_next(&s.frame, &got, &n));
    ck_assert_str_eq(got, text);
    stream_close(&s);
}
END_TEST

UNIT_MAIN("frame", UNIT_TEST(byte_by_byte), UNIT_TEST(two_in_one), UNIT_TEST(one_and_a_half),
          UNIT_TEST(random_cuts), UNIT_TEST(end_of_stream), UNIT_TEST(not_a_socket),
          UNIT_TEST(exactly_the_limit), UNIT_TEST(far_more_than_the_limit),
          UNIT_TEST(one_byte_more_than_the_limit),
          UNIT_TEST(many_short_messages_before_they_are_read), UNIT_TEST(send_to_nobody),
          UNIT_TEST(send_in_parts), UNIT_TEST(interrupted_calls), UNIT_TEST(failures_are_told),
          UNIT_TEST(no_memory_to_grow))
