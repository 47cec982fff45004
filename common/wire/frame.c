/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/base/descriptor.h"
#include "common/base/linux.h"
#include "common/base/util.h"

/* Most messages fit, and malloc has a fast list for it. */
#define FRAME_BYTES_FIRST 1024

void frame_deinit(struct frame *frame)
{
    free(frame->bytes);
    *frame = (struct frame){0};
}

/* Bytes without a NUL are not searched again, because a message of 1 MiB can come in many small
 * parts. */
bool frame_next(struct frame *frame, char **ret_text, size_t *ret_bytes)
{
    if (frame->scanned == frame->n)
        return false;
    char *end = memchr(frame->bytes + frame->scanned, 0, frame->n - frame->scanned);
    if (!end) {
        frame->scanned = frame->n;
        return false;
    }
    *ret_text = frame->bytes + frame->used;
    *ret_bytes = (size_t)(end - *ret_text);
    frame->used = frame->scanned = (size_t)(end - frame->bytes) + 1;
    return true;
}

void frame_put_back(struct frame *frame, size_t n)
{
    frame->used -= n + 1;
    frame->scanned = frame->used;
}

bool frame_split(struct frame *frame, struct frame *ret)
{
    struct frame rest = {.n = frame->n - frame->used};
    rest.capacity = rest.n;
    if (rest.n && !(rest.bytes = malloc(rest.n)))
        return false;
    if (rest.n)
        memcpy(rest.bytes, frame->bytes + frame->used, rest.n);
    *ret = *frame;
    *frame = rest;
    return true;
}

/* Called before each receive, so that an idle peer costs no buffer. The buffer doubles, and is
 * moved to the front only here: texts that frame_next() returned stay valid until then. */
int frame_reserve(struct frame *frame, size_t limit)
{
    if (frame->used) {
        frame->n -= frame->used;
        frame->scanned -= frame->used;
        memmove(frame->bytes, frame->bytes + frame->used, frame->n);
        frame->used = 0;
    }
    if (frame->n > limit)
        return -EMSGSIZE;
    if (frame->n < frame->capacity)
        return 0;
    size_t capacity = frame->capacity ? frame->capacity * 2 : FRAME_BYTES_FIRST;
    char *bytes = realloc(frame->bytes, capacity);
    if (!bytes)
        return -ENOMEM;
    frame->bytes = bytes;
    frame->capacity = capacity;
    return 0;
}

/* Takes the descriptors of one recvmsg(). Every one must be taken or closed, because the kernel has
 * put it into the table of this process already. Returns 0, or -EPROTO if there are more than fit
 * into the list: no valid message has so many. */
static int take_descriptors(struct msghdr *msg, struct frame_descriptors *descriptors)
{
    bool fits = true, lost = false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (descriptors->n == LIMIT_DESCRIPTORS) {
                fits = false;
                close(fd);
                continue;
            }
            fd = descriptor_lift(fd);
            if (fd < 0)
                lost = true;
            else
                descriptors->fd[descriptors->n++] = fd;
        }
    }
    /* MSG_CTRUNC: the kernel found no room in the table of this process or in the control buffer. A
     * later message would be given descriptors that are not its own, so none is kept. */
    if (fits && (lost || msg->msg_flags & MSG_CTRUNC)) {
        frame_descriptors_close(descriptors);
        descriptors->lost = true;
    }
    return fits ? 0 : -EPROTO;
}

static ssize_t receive(struct frame *frame, int fd, size_t limit,
                       struct frame_descriptors *descriptors, int flags)
{
    int r = frame_reserve(frame, limit);
    if (r)
        return r;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * LIMIT_DESCRIPTORS)];
    } control;
    /* never more than one message of `limit` bytes and its NUL */
    size_t room = limit + 1 - frame->n;
    if (room > frame->capacity - frame->n)
        room = frame->capacity - frame->n;
    struct iovec iov = {frame->bytes + frame->n, room};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (descriptors) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = sizeof control.bytes;
    }
    ssize_t n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);
    if (n < 0)
        return -errno;
    if (descriptors)
        r = take_descriptors(&msg, descriptors);
    else if (msg.msg_flags & MSG_CTRUNC)
        r = -EPROTO;
    if (r)
        return r;
    frame->n += (size_t)n;
    return n;
}

ssize_t frame_receive(struct frame *frame, int fd, size_t limit,
                      struct frame_descriptors *descriptors)
{
    return receive(frame, fd, limit, descriptors, 0);
}

ssize_t frame_receive_now(struct frame *frame, int fd, size_t limit,
                          struct frame_descriptors *descriptors)
{
    return receive(frame, fd, limit, descriptors, MSG_DONTWAIT);
}

ssize_t frame_send(int fd, const char *text, size_t n, const int *fds, size_t n_fds)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * LIMIT_DESCRIPTORS)];
    } control = {0};
    struct iovec iov = {(char *)text, n};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    if (n_fds) {
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        struct cmsghdr *c = &control.align;
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * n_fds);
    }
    ssize_t sent;
    do
        sent = sendmsg(fd, &msg, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

/* Whether the numbers follow each other, as they do if the process opened nothing else since. */
static bool is_range(const struct frame_descriptors *descriptors)
{
    for (size_t i = 1; i < descriptors->n; i++)
        if (descriptors->fd[i] != descriptors->fd[i - 1] + 1)
            return false;
    return descriptors->n > 1;
}

void frame_descriptors_close(struct frame_descriptors *descriptors)
{
    const int *fd = descriptors->fd;
    size_t n = descriptors->n;
    /* one system call in place of several, if the kernel has it (Linux 5.9) */
    if (!is_range(descriptors) || close_range((unsigned)fd[0], (unsigned)fd[n - 1], 0))
        for (size_t i = 0; i < n; i++)
            close(fd[i]);
    descriptors->n = 0;
}
