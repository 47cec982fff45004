/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the bytes as a stream of messages, in pieces whose length is the first byte. The receiver
 * must return exactly the texts between the NULs, wherever the stream is cut. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/wire/frame.h"
#include "fuzz.h"

#define LIMIT 200
#define MOST  4096

static void die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

struct stream {
    const uint8_t *bytes;
    size_t n, taken; /* taken: bytes of the messages received so far, with their NULs */
};

/* Aborts unless the received text is the next message of the stream. */
static void check_message(struct stream *s, const char *text, size_t n)
{
    const uint8_t *next = s->bytes + s->taken;
    if (s->taken + n >= s->n || memcmp(next, text, n) != 0 || next[n] != 0 ||
        (n && memchr(next, 0, n)))
        die("a message that was not sent");
    if (text[n])
        die("a message does not end");
    s->taken += n + 1;
}

/* Receives every message that has arrived. Returns false if the next one is over the limit. */
static bool take(struct frame *in, int fd, struct stream *s)
{
    char *text;
    size_t n;
    ssize_t r;
    while ((r = frame_receive(in, fd, LIMIT, NULL)) > 0)
        while (frame_next(in, &text, &n))
            check_message(s, text, n);
    if (r == -EAGAIN)
        return true;
    const uint8_t *next = s->bytes + s->taken, *end = memchr(next, 0, s->n - s->taken);
    size_t length = end ? (size_t)(end - next) : s->n - s->taken;
    if (r != -EMSGSIZE || length < LIMIT)
        die("a message is refused that is not too long");
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct frame in = {0};
    if (size < 2 || size > MOST)
        return 0;
    struct stream s = {data + 1, size - 1, 0};
    size_t step = data[0] ? data[0] : 1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends))
        die("no sockets");
    bool more = true;
    for (size_t at = 0; more && at < s.n; at += step) {
        size_t n = s.n - at < step ? s.n - at : step;
        if (frame_send(ends[0], (const char *)s.bytes + at, n, NULL, 0) != (ssize_t)n)
            die("not sent");
        more = take(&in, ends[1], &s);
    }
    if (more && memchr(s.bytes + s.taken, 0, s.n - s.taken))
        die("a message is lost");
    frame_deinit(&in);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
