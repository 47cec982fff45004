/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/descriptor.h"
#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/base/table.h"

/* A daemon that takes nothing for so long is given up. */
#define DAEMON_WAIT_S 20
/* How long the keeper waits before it tries again what lacked memory or descriptors. */
#define LACK_PAUSE_MS 100

/* --- Messages ------------------------------------------------------------- */

int keeper_send(int socket, enum keeper_kind kind, uint64_t number, int fd, int flags)
{
    struct keeper_message message = {.kind = kind, .number = number};
    struct iovec iov = {&message, sizeof message};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    union descriptor_control control;
    if (fd >= 0)
        descriptor_pass(&m, &control, fd);
    ssize_t n;
    do
        n = sendmsg(socket, &m, MSG_NOSIGNAL | flags);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : 0;
}

int keeper_receive(int socket, struct keeper_message *ret, int *ret_fd)
{
    struct keeper_message message;
    struct iovec iov = {&message, sizeof message};
    union descriptor_control control;
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = CMSG_LEN(sizeof(int))}; /* no room for two */
    ssize_t n;
    do
        n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 ? -errno : -EPIPE;
    CLEANUP_FD int fd = -1;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    bool has_fd = message.kind == KEEPER_KEEP || message.kind == KEEPER_HELD;
    if ((size_t)n == sizeof message && has_fd && fd < 0 && m.msg_flags & MSG_CTRUNC)
        return -EMFILE; /* the kernel has closed it */
    if ((size_t)n != sizeof message || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
        has_fd != (fd >= 0))
        return -EPROTO;
    *ret = message;
    *ret_fd = steal_fd(&fd);
    return 0;
}

bool keeper_is_own(int socket)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.uid == geteuid();
}

/* --- The process ---------------------------------------------------------- */

struct held {
    struct table_link link;
    LIST_ENTRY(held) all;
    uint64_t number;
    int fd;
};

struct keeper {
    struct table by_number;
    LIST_HEAD(, held) all;
    int daemon; /* the connection of the daemon, or -1 */
};

static struct held *find(const struct keeper *k, uint64_t number)
{
    struct table_link *l = table_first(&k->by_number, table_hash_number(number));
    for (; l; l = table_next(l)) {
        struct held *h = CONTAINER_OF(l, struct held, link);
        if (h->number == number)
            return h;
    }
    return NULL;
}

/* Takes over fd. Without memory for it the object is not kept. */
static void keep(struct keeper *k, uint64_t number, int fd)
{
    struct held *h = find(k, number) ? NULL : malloc(sizeof *h);
    if (!h) {
        close(fd);
        return;
    }
    *h = (struct held){.number = number, .fd = fd};
    table_add(&k->by_number, &h->link, table_hash_number(number));
    LIST_INSERT_HEAD(&k->all, h, all);
}

static void forget(struct keeper *k, uint64_t number)
{
    struct held *h = find(k, number);
    if (!h)
        return;
    table_remove(&k->by_number, &h->link);
    LIST_REMOVE(h, all);
    close(h->fd);
    free(h);
}

/* Hands all descriptors to a daemon that has connected. It replaces another one, which must be
 * dead, because only one daemon has the lock of the instance. */
static void greet(struct keeper *k, int listener)
{
    CLEANUP_FD int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct timeval wait = {.tv_sec = DAEMON_WAIT_S};
    struct held *h;
    if (fd < 0)
        poll(NULL, 0, LACK_PAUSE_MS); /* the connection stays in the queue of the listener */
    if (fd < 0 || !keeper_is_own(fd))
        return;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    LIST_FOREACH (h, &k->all, all)
        if (keeper_send(fd, KEEPER_HELD, h->number, h->fd, 0))
            return;
    if (keeper_send(fd, KEEPER_READY, k->by_number.n, -1, 0))
        return;
    close_fdp(&k->daemon);
    k->daemon = steal_fd(&fd);
}

static void follow(struct keeper *k, const struct keeper_message *message, int fd)
{
    if (message->kind == KEEPER_KEEP)
        keep(k, message->number, fd);
    else if (message->kind == KEEPER_FORGET)
        forget(k, message->number);
    else
        close_fdp(&fd);
}

/* A lack of memory or descriptors does not end the connection, because the daemon would start
 * another keeper, and this one would hold its objects until it is killed. */
static void listen_to_daemon(struct keeper *k)
{
    struct keeper_message message = {0};
    int fd = -1;
    switch (keeper_receive(k->daemon, &message, &fd)) {
    case 0:
        follow(k, &message, fd);
        break;
    case -EMFILE: /* the object is not kept */
        break;
    case -ENOMEM:
    case -ENOBUFS: /* the message stays in the queue */
        poll(NULL, 0, LACK_PAUSE_MS);
        break;
    default:
        close_fdp(&k->daemon);
    }
}

/* Returns whether there is something to keep or somebody to serve. */
static bool is_needed(const struct keeper *k, int listener)
{
    struct pollfd waits = {.fd = listener, .events = POLLIN};
    return k->by_number.n > 0 || k->daemon >= 0 || poll(&waits, 1, 0) > 0;
}

int keeper_run(void)
{
    struct keeper k = {.daemon = -1};
    const int listener = STDIN_FILENO;
    close_range(3, ~0u, 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
        return 1;
    close(null);
    pid_t pid = fork();
    if (pid)
        return pid < 0;
    setsid();
    prctl(PR_SET_NAME, "shmview-keeper");
    if (chdir("/"))
        return 1;
    LIST_INIT(&k.all);
    while (is_needed(&k, listener)) {
        struct pollfd polls[] = {{.fd = listener, .events = POLLIN},
                                 {.fd = k.daemon, .events = POLLIN}};
        if (poll(polls, 2, -1) < 0)
            continue; /* interrupted */
        if (polls[1].revents)
            listen_to_daemon(&k);
        else if (polls[0].revents)
            greet(&k, listener);
    }
    return 0;
}
