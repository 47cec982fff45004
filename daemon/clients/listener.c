/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/way.h"

static bool is_system(const char *path)
{
    return strcmp(path, ADDRESS_SYSTEM) == 0;
}

/* Whether a process listens there. A full backlog (EAGAIN) counts as well. So does a failure to
 * make a socket for the test, because the path of a living daemon must not be removed. */
static bool is_served(const struct sockaddr_un *address)
{
    CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    return connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 || errno == EAGAIN;
}

/* Removes a socket that a dead daemon has left, because bind() would fail. Returns 0 or -errno. */
static int remove_stale(const struct sockaddr_un *address)
{
    struct stat st;
    if (lstat(address->sun_path, &st)) {
        int r = errno == ENOENT ? 0 : -errno;
        if (r)
            log_error("%s: %s", address->sun_path, strerror(-r));
        return r;
    }
    if (!S_ISSOCK(st.st_mode)) {
        log_error("%s is in the way: it is not a socket", address->sun_path);
        return -EEXIST;
    }
    if (is_served(address)) {
        log_error("%s is served by another process", address->sun_path);
        return -EADDRINUSE;
    }
    if (unlink(address->sun_path) == 0 || errno == ENOENT)
        return 0;
    int r = -errno;
    log_error("cannot replace %s: %s", address->sun_path, strerror(-r));
    return r;
}

/* The mode is set by umask, because a chmod() afterwards would leave a moment with another mode. */
static int bind_and_listen(struct listener *listener, const struct sockaddr_un *address)
{
    struct stat st;
    mode_t mask = umask(is_system(listener->path) ? 0111 : 0177);
    int r = bind(listener->fd, (const struct sockaddr *)address, sizeof *address) ? -errno : 0;
    umask(mask);
    if (r)
        return r;
    if (listen(listener->fd, SOMAXCONN) || lstat(listener->path, &st)) {
        r = -errno;
        unlink(listener->path);
        return r;
    }
    listener->device = st.st_dev;
    listener->inode = st.st_ino;
    return 0;
}

int listener_open(struct listener *listener, const char *path)
{
    struct sockaddr_un address;
    *listener = (struct listener){.fd = -1};
    int r = address_fill(&address, path);
    CLEANUP_FD int dir = r ? r : way_open(path);
    if (dir < 0)
        return dir;
    r = remove_stale(&address);
    if (r)
        return r;
    memcpy(listener->path, address.sun_path, sizeof listener->path);
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    r = listener->fd < 0 ? -errno : bind_and_listen(listener, &address);
    if (r) {
        log_error("cannot listen on %s: %s", path, strerror(-r));
        close_fdp(&listener->fd);
    }
    return r;
}

static bool has_option(int fd, int option, int value)
{
    int got;
    socklen_t n = sizeof got;
    return getsockopt(fd, SOL_SOCKET, option, &got, &n) == 0 && got == value;
}

/* Returns NULL if the daemon can serve fd; otherwise what is wrong. */
static const char *fault_of(int fd, struct sockaddr_un *ret)
{
    socklen_t n = sizeof *ret;
    *ret = (struct sockaddr_un){0};
    if (!has_option(fd, SO_DOMAIN, AF_UNIX) || !has_option(fd, SO_TYPE, SOCK_STREAM))
        return "it is not a Unix stream socket";
    if (!has_option(fd, SO_ACCEPTCONN, 1))
        return "it does not listen";
    if (getsockname(fd, (struct sockaddr *)ret, &n) || ret->sun_path[0] != '/')
        return "it has no path";
    if (n > sizeof *ret || !memchr(ret->sun_path, '\0', sizeof ret->sun_path))
        return "its path has more than 107 bytes";
    return NULL;
}

int listener_adopt(struct listener *listener, int fd)
{
    struct sockaddr_un address;
    const char *fault = fault_of(fd, &address);
    *listener = (struct listener){.fd = -1};
    if (!fault && (fcntl(fd, F_SETFL, O_NONBLOCK) || fcntl(fd, F_SETFD, FD_CLOEXEC)))
        fault = strerror(errno);
    if (fault) {
        log_error("the socket that was passed cannot be served: %s", fault);
        close(fd);
        return -EINVAL;
    }
    memcpy(listener->path, address.sun_path, sizeof listener->path);
    listener->fd = fd;
    listener->passed = true;
    return 0;
}

void listener_close(struct listener *listener)
{
    struct stat st;
    if (listener->fd < 0)
        return;
    if (!listener->passed && lstat(listener->path, &st) == 0 && st.st_dev == listener->device &&
        st.st_ino == listener->inode)
        unlink(listener->path);
    close_fdp(&listener->fd);
}

void listener_instance_of(const char *path, listener_instance ret)
{
    if (is_system(path)) {
        snprintf(ret, sizeof(listener_instance), "system");
        return;
    }
    /* FNV-1a, 64 bit: http://www.isthe.com/chongo/tech/comp/fnv/ */
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *p = path; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    snprintf(ret, sizeof(listener_instance), "%u-%016" PRIx64, geteuid(), h);
}
