/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives messages on a stream socket: text up to a NUL byte, with descriptors. This
 * module does not read the text.
 *
 * A stream socket keeps no borders between messages. One recvmsg() may return a part of a message,
 * several messages, or the end of one and the beginning of the next with its descriptors. So bytes
 * and descriptors are received into two queues: frame_next() takes whole messages from the first,
 * and each message states how many descriptors of the second belong to it.
 *
 * Both sides use this module. It sends and receives without libuv, because libuv cannot pass a
 * descriptor of a file. */
#ifndef COMMON_FRAME_H
#define COMMON_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/base/limits.h"

/* The bytes that were received and are not used yet. A zeroed struct is empty and valid; its owner
 * owes frame_deinit(). The members are bytes from the front: used <= scanned <= n <= capacity. */
struct frame {
    char *bytes; /* owned; NULL: no buffer yet */
    size_t n;    /* received */
    size_t capacity;
    size_t scanned; /* known to have no NUL after `used` */
    size_t used;    /* of messages that frame_next() has returned */
};

/* Descriptors that were received, in their order. None is 0, 1 or 2, so that none takes the place
 * of a closed standard stream. The holder owns them. */
struct frame_descriptors {
    bool lost; /* some could not be received, and the others were closed. Never reset here */
    size_t n;
    int fd[LIMIT_DESCRIPTORS];
};

/* Frees the buffer, and empties the struct. */
void frame_deinit(struct frame *frame);

/* Takes the next whole message. Returns true with *ret_text, which is borrowed until the next
 * frame_receive() or frame_reserve(), and its length without the NUL. Returns false if more bytes
 * are needed. */
bool frame_next(struct frame *frame, char **ret_text, size_t *ret_bytes);

/* Undoes the last frame_next(), which returned a message of n bytes: it will return that again. */
void frame_put_back(struct frame *frame, size_t n);

/* Splits the buffer after the last message that frame_next() returned: *ret gets the bytes up to
 * there, so that the message stays valid as long as *ret, and the frame keeps the others. Returns
 * false without memory, and then nothing has changed. */
bool frame_split(struct frame *frame, struct frame *ret);

/* Makes room for at least one byte more. Moves the unused bytes to the front. Returns 0; -EMSGSIZE
 * if there are more than `limit` unused bytes; or -ENOMEM. Call it when frame_next() finds no
 * further message: more bytes than that are one message that is too long. */
int frame_reserve(struct frame *frame, size_t limit);

/* Receives once, with one system call, which blocks if the socket does. Appends descriptors to
 * *descriptors. If the table of this process is full, or one receive brings more than
 * LIMIT_DESCRIPTORS, closes all of *descriptors, also earlier ones, and sets `lost`. The text is
 * received all the same.
 *
 * Returns the number of bytes received (> 0), or 0 at the end of the stream. Returns -EAGAIN;
 * -EINTR, because a caller may want to stop; -EMSGSIZE if a message is longer than `limit`; or
 * another -errno. Returns -EPROTO if descriptors came although descriptors is NULL, or if it cannot
 * hold them beside earlier ones. The bytes that came with them are lost then, so the connection
 * must end; the caller still owns *descriptors. */
ssize_t frame_receive(struct frame *frame, int fd, size_t limit,
                      struct frame_descriptors *descriptors);

/* Like frame_receive(), but returns -EAGAIN instead of blocking. */
ssize_t frame_receive_now(struct frame *frame, int fd, size_t limit,
                          struct frame_descriptors *descriptors);

/* Sends up to n bytes of text, and n_fds descriptors with the first byte. Borrows all of them.
 * Repeats the call after EINTR; blocks if the socket does; never raises SIGPIPE. Returns the number
 * of bytes sent, with which all descriptors were sent, or -errno. */
ssize_t frame_send(int fd, const char *text, size_t n, const int *fds, size_t n_fds);

/* Closes all descriptors, and empties the list. `lost` stays. */
void frame_descriptors_close(struct frame_descriptors *descriptors);

#endif
