/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that report changes, as an event loop uses them. */
#ifndef SUPPORT_CHANGE_H
#define SUPPORT_CHANGE_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"

static inline int watch(struct shmview_segment *segment)
{
    int fd = -1;
    OK(shmview_change_fd(segment, &fd));
    return fd;
}

static inline bool is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* Reads everything that has arrived; more may arrive at any time. */
static inline void drain(int fd)
{
    char bytes[64];
    ssize_t r;
    do
        r = read(fd, bytes, sizeof bytes);
    while (r > 0);
    ck_assert(r < 0 && errno == EAGAIN);
}

/* A child: reports 1 when it watches, and 2 at the first change. */
static inline void watch_and_tell(struct child *me, void *arg)
{
    int fd = watch(arg);
    drain(fd);
    child_tell(me, 1);
    await_readable(fd);
    child_tell(me, 2);
    child_pause(me);
}

/* A child: reports 1 when it has notified. */
static inline void notify_and_stay(struct child *me, void *arg)
{
    OK(shmview_notify(arg));
    child_tell(me, 1);
    child_pause(me);
}

#endif
