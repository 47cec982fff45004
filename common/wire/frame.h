/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on a stream socket: text up to a NUL byte, with descriptors. No
 * knowledge of what the text says. */
#ifndef COMMON_FRAME_H
#define COMMON_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/limits.h"

/* Bytes received and not yet used. Zeroed is empty; owes frame_deinit(). */
struct frame {
    char *bytes;
    size_t n; /* received */
    size_t capacity;
    size_t scanned; /* known to hold no NUL */
    size_t used;    /* consumed from the front */
};

/* Descriptors that came along, in order, none of them 0, 1 or 2. The holder owns them. */
struct frame_descriptors {
    bool lost; /* some did not fit into this process: its table is full */
    size_t n;
    int fd[LIMIT_DESCRIPTORS];
};

void frame_deinit(struct frame *frame);

/* Finds the next whole message. Returns true with *ret_text, borrowed until the
 * next frame_receive(), and its length without the NUL; false if more bytes are
 * needed. The message is consumed. */
bool frame_next(struct frame *frame, char **ret_text, size_t *ret_bytes);

/* Takes back that the last message, of n bytes, was found: frame_next() will find it again. */
void frame_put_back(struct frame *frame, size_t n);

/* Makes room for at least one byte more, and for no message longer than limit.
 * Returns 0, -EMSGSIZE or -ENOMEM. */
int frame_reserve(struct frame *frame, size_t limit);

/* Receives once. Descriptors are appended to *descriptors; where that is NULL,
 * or more come than fit, none is taken and the peer is at fault. Where this process
 * has no room for them those that came are closed and "lost" is set.
 * Returns bytes received (> 0), 0 at the end of the stream, -EAGAIN, -EINTR, -EPROTO
 * (descriptors), -EMSGSIZE (a message longer than limit), or another -errno. */
ssize_t frame_receive(struct frame *frame, int fd, size_t limit,
                      struct frame_descriptors *descriptors);

/* Sends once: up to n bytes of text, the n_fds descriptors with the first of
 * them. Borrows all. Never raises SIGPIPE. Returns bytes sent or -errno. */
ssize_t frame_send(int fd, const char *text, size_t n, const int *fds, size_t n_fds);

void frame_descriptors_close(struct frame_descriptors *descriptors);

#endif
