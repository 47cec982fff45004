/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends of a stream for the tests of frame.c. */
#ifndef UNIT_STREAM_H
#define UNIT_STREAM_H

#include "unit/unit.h"

#include <sys/socket.h>

#include "common/wire/frame.h"

/* A stream: the test writes at one end, the frame reads at the other. */
struct stream {
    int in, out;
    struct frame frame;
};

static inline struct stream stream_open(void)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    return (struct stream){.in = ends[0], .out = ends[1]};
}

static inline void stream_close(struct stream *s)
{
    frame_deinit(&s->frame);
    if (s->out >= 0)
        close(s->out);
    close(s->in);
}

static inline void put(struct stream *s, const char *bytes, size_t n)
{
    ck_assert_int_eq(write(s->out, bytes, n), (ssize_t)n);
}

static inline void assert_next(struct stream *s, const char *text)
{
    char *got;
    size_t n;
    ck_assert(frame_next(&s->frame, &got, &n));
    ck_assert_uint_eq(n, strlen(text));
    ck_assert_str_eq(got, text);
}

static inline void assert_none(struct stream *s)
{
    char *got;
    size_t n;
    ck_assert(!frame_next(&s->frame, &got, &n));
}

#endif
