/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/handover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/descriptor.h"
#include "common/base/util.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/stray.h"
#include "daemon/rights/quota.h"

struct handover {
    int fd; /* the daemon's end, owned */
    struct quota_user *payer;
};

int handover_open(struct connection *connection, struct quota_user *payer)
{
    int ends[2];
    struct handover *h = malloc(sizeof *h);
    if (!h)
        return -ENOMEM;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends)) {
        free(h);
        return -errno;
    }
    stray_keep_order(ends[0]);
    *h = (struct handover){.fd = ends[0], .payer = payer};
    connection->handover = h;
    return ends[1];
}

/* Returns the only descriptor of the message, or -errno. */
static int take_one(struct msghdr *msg)
{
    int fd = -1;
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
        c->cmsg_len == CMSG_LEN(sizeof fd))
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    if (!(msg->msg_flags & MSG_CTRUNC))
        return fd >= 0 ? descriptor_lift(fd) : -ENOMSG;
    /* there was no room in the control message, or none in the table of this process */
    if (fd < 0)
        return -EMFILE;
    close(fd);
    return -E2BIG;
}

int handover_receive(struct connection *connection)
{
    const struct handover *h = connection->handover;
    union descriptor_control control;
    char byte;
    struct iovec iov = {&byte, sizeof byte};
    /* exactly one descriptor: CMSG_SPACE would have room for two */
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = CMSG_LEN(sizeof(int))};
    if (!h)
        return -ENOTCONN;
    shutdown(h->fd, SHUT_RD);
    ssize_t n = recvmsg(h->fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return errno == EAGAIN ? -ENODATA : -errno;
    return n == 0 ? -ENODATA : take_one(&msg);
}

static void refund(void *payer)
{
    quota_refund(payer, QUOTA_CONNECTIONS, 1);
}

void handover_close(struct connection *connection)
{
    struct handover *h = STEAL(connection->handover);
    if (!h)
        return;
    shutdown(h->fd, SHUT_RDWR);
    if (stray_left(h->fd)) {
        stray_close(h->fd, refund, h->payer);
    } else {
        close(h->fd);
        refund(h->payer);
    }
    free(h);
}

/* The caller has the descriptor, so that the one in the socket is not the last. */
void handover_accept(struct connection *connection)
{
    char byte;
    ssize_t n = recv(connection->handover->fd, &byte, sizeof byte, MSG_DONTWAIT);
    (void)n;
    handover_close(connection);
}
