/* SPDX-License-Identifier: Apache-2.0 */
/* Opens sockets to a daemon, and checks which user serves them. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/link/connection.h"
#include "common/base/descriptor.h"
#include "common/base/util.h"

/* Makes the socket block for at most WAIT_NS at a time, after which a call fails with EAGAIN. The
 * library then runs the caller's function. Returns 0 or -errno. */
static int prepare_socket(int fd)
{
    const struct timeval slice = {.tv_usec = WAIT_NS / 1000};
    int blocking = 0;
    return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &slice, sizeof slice) ||
                   setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &slice, sizeof slice) ||
                   ioctl(fd, FIONBIO, &blocking)
               ? -errno
               : 0;
}

/* Returns a connected socket or -errno. If the daemon's queue is full, it waits, or returns -EAGAIN
 * if waits is false. */
static int socket_connect(const char *path, bool waits)
{
    struct sockaddr_un address;
    int r = address_fill(&address, path);
    if (r)
        return r;
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    fd = descriptor_lift(fd);
    if (fd < 0)
        return fd;
    r = waits ? prepare_socket(fd) : 0;
    if (r)
        return r;
    while (connect(fd, (const struct sockaddr *)&address, sizeof address))
        if (!waits || (errno != EINTR && errno != EAGAIN))
            return -errno;
        else if (wait_go_on())
            return -ECANCELED;
    r = waits ? 0 : prepare_socket(fd);
    return r ? r : steal_fd(&fd);
}

/* Refuses a socket that another user serves. If other users may write its directory, one of them
 * can have made the socket. Returns 0 or an error. */
static int check_server(int fd, const char *path)
{
    struct ucred cred;
    socklen_t n = sizeof cred;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n))
        return fail_errno("SO_PEERCRED", errno);
    if (cred.uid == 0 || cred.uid == geteuid())
        return 0;
    return fail(SHMVIEW_ERR_DENIED, "%s is served by uid %u, neither root nor this user", path,
                cred.uid);
}

/* Whether the error means that no daemon can be reached there, so that the caller may try another
 * place, or again later. */
static bool nobody_there(int error)
{
    return error == ENOENT || error == ECONNREFUSED || error == ENOTDIR || error == EACCES;
}

const struct endpoint *connection_endpoint(const struct shmview_connection *connection)
{
    return &connection->where;
}

int connection_dial(const struct endpoint *where, bool waits, int *ret_fd)
{
    CLEANUP_FD int fd = socket_connect(where->path, waits);
    if (fd < 0 && (nobody_there(-fd) || fd == -EAGAIN)) {
        errno = -fd;
        return NOT_REACHED;
    }
    if (fd == -EINVAL)
        return fail(SHMVIEW_ERR_INVALID, "the socket path is empty");
    if (fd == -ECANCELED)
        return -SHMVIEW_ERR_INTERRUPTED;
    if (fd < 0)
        return fail_errno(where->path, -fd);
    int r = where->is_checked ? check_server(fd, where->path) : REACHED;
    if (r == REACHED)
        *ret_fd = steal_fd(&fd);
    return r;
}
