/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; not in older headers */
#endif

static bool hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    return poll(&p, 1, 0) > 0;
}

/* Before Linux 6.5 the pid alone must do: it still names the peer if the socket
 * is open after the pidfd was opened, for only a dead peer's pid is used again. */
static int pidfd_by_pid(int socket_fd, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    if (hung_up(socket_fd)) {
        close(fd);
        return -ESRCH;
    }
    return fd;
}

int peer_of(int socket_fd, struct peer *ret)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &cred, &n))
        return -errno;
    int fd;
    n = sizeof fd;
    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &n)) {
        if (errno != ENOPROTOOPT)
            return errno == EINVAL ? -ESRCH : -errno;
        fd = pidfd_by_pid(socket_fd, cred.pid);
        if (fd < 0)
            return fd;
    }
    *ret = (struct peer){.pid = cred.pid, .uid = cred.uid, .gid = cred.gid, .pidfd = fd};
    return 0;
}
