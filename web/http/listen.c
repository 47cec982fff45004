/* SPDX-License-Identifier: Apache-2.0 */
#include "web/http/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG      64
#define FIRST_PASSED 3 /* SD_LISTEN_FDS_START */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un path;
};

/* Returns a listening socket, or a negative errno. */
static int listen_on(const union address *address, socklen_t n)
{
    int on = 1, family = address->any.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (family != AF_UNIX)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, &address->any, n) || listen(fd, BACKLOG)) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

uint16_t listen_port(int socket)
{
    union address a = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t n = sizeof a;
    if (getsockname(socket, &a.any, &n))
        return 0;
    return a.any.sa_family == AF_INET    ? ntohs(a.v4.sin_port)
           : a.any.sa_family == AF_INET6 ? ntohs(a.v6.sin6_port)
                                         : 0;
}

int listen_loopback(uint16_t port, int ret_sockets[LISTEN_MOST])
{
    union address v4 = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
    union address v6 = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback}};
    v4.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = listen_on(&v4, sizeof v4.v4);
    if (fd < 0)
        return fd;
    ret_sockets[0] = fd;
    v6.v6.sin6_port = htons(listen_port(fd));
    fd = listen_on(&v6, sizeof v6.v6);
    if (fd < 0)
        return 1; /* no IPv6, or another program has that port there: the link names 127.0.0.1 */
    ret_sockets[1] = fd;
    return 2;
}

/* Whether a program serves the Unix socket at address. */
static bool is_served(const union address *address, socklen_t n)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    bool served = connect(fd, &address->any, n) == 0 || errno == EAGAIN;
    close(fd);
    return served;
}

int listen_path(const char *path, int ret_sockets[LISTEN_MOST])
{
    union address a = {.path = {.sun_family = AF_UNIX}};
    struct stat s;
    if (strlen(path) >= sizeof a.path.sun_path)
        return -ENAMETOOLONG;
    memcpy(a.path.sun_path, path, strlen(path) + 1);
    if (lstat(path, &s) == 0 && S_ISSOCK(s.st_mode)) {
        if (is_served(&a, sizeof a.path))
            return -EADDRINUSE;
        unlink(path);
    }
    mode_t mask = umask(0177);
    int fd = listen_on(&a, sizeof a.path);
    umask(mask);
    if (fd < 0)
        return fd;
    ret_sockets[0] = fd;
    return 1;
}

/* Whether fd is a listening socket that only this machine reaches. */
static bool is_local(int fd)
{
    union address a = {.any = {.sa_family = AF_UNSPEC}};
    int listens = 0;
    socklen_t n = sizeof a, m = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &m) || !listens ||
        getsockname(fd, &a.any, &n))
        return false;
    switch (a.any.sa_family) {
    case AF_UNIX:
        return true;
    case AF_INET:
        return ntohl(a.v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    case AF_INET6:
        return IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr);
    default:
        return false;
    }
}

int listen_passed(int ret_sockets[LISTEN_MOST])
{
    const char *pid = getenv("LISTEN_PID"), *number = getenv("LISTEN_FDS");
    long n = number ? strtol(number, NULL, 10) : 0;
    bool is_ours = pid && strtol(pid, NULL, 10) == (long)getpid();
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!is_ours || n <= 0)
        return 0;
    if (n > LISTEN_MOST)
        return -EINVAL;
    for (int i = 0; i < n; i++) {
        int fd = FIRST_PASSED + i, flags = fcntl(fd, F_GETFL);
        if (!is_local(fd) || fcntl(fd, F_SETFD, FD_CLOEXEC) ||
            fcntl(fd, F_SETFL, flags | O_NONBLOCK))
            return -EINVAL;
        ret_sockets[i] = fd;
    }
    return (int)n;
}
