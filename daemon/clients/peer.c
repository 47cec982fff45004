/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/peer.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/descriptor.h"
#include "common/base/util.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; not in older headers */
#endif

#define PIDFS_MAGIC    0x50494446u         /* not in older headers either */
#define BIRTH_IS_INODE ((uint64_t)1 << 63) /* otherwise clock ticks since the machine booted */

/* Opens a pidfd by the pid, because Linux before 6.5 has no SO_PEERPIDFD. The pid still names the
 * peer if the socket has not hung up after the pidfd was opened: the kernel gives the pid to
 * another process only after the death of the peer. */
static int pidfd_by_pid(int socket_fd, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    if (descriptor_hung_up(socket_fd)) {
        close(fd);
        return -ESRCH;
    }
    return fd;
}

#define GENERATIONS_MAX 64 /* ancestors that peer_descends() looks at */
#define STAT_PARENT     4  /* fields of /proc/PID/stat, see proc(5) */
#define STAT_START      22

/* Returns a field of /proc/PID/stat after the second one, or 0 with errno: ESRCH if the field is 0
 * or the file has none. The search begins at the last ')', because the second field, the command,
 * may have spaces and parentheses. */
static uint64_t stat_field(pid_t pid, int number)
{
    char path[32], text[1024];
    unsigned long long value;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *p = strrchr(text, ')');
    for (int field = 2; p && field < number; field++)
        p = strchr(p + 1, ' ');
    if (p && sscanf(p, "%llu", &value) == 1 && value)
        return value;
    errno = ESRCH;
    return 0;
}

/* Polls twice. When a thread other than the first one calls exec, it takes the pid over from the
 * first thread. poll() looks at the thread of a pid without a lock. If it loses that race, it takes
 * the process for dead. By then the pid has its new thread, so the second poll sees the new one. */
bool peer_has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return pidfd >= 0 && poll(&p, 1, 0) > 0 && poll(&p, 1, 0) > 0;
}

uint64_t peer_birth(int pidfd, pid_t pid)
{
    struct statfs fs;
    struct stat st;
    /* since Linux 6.9 each process has an inode of its own */
    if (fstatfs(pidfd, &fs) == 0 && (uint64_t)fs.f_type == PIDFS_MAGIC)
        return fstat(pidfd, &st) ? 0 : st.st_ino | BIRTH_IS_INODE;
    uint64_t birth = stat_field(pid, STAT_START);
    if (birth == 0) {
        if (errno == ENOENT || errno == EACCES || errno == EPERM)
            errno = ESRCH;
        return 0;
    }
    /* the process was alive after its file was read, so the file was not that of another one */
    if (!peer_has_ended(pidfd))
        return birth;
    errno = ESRCH;
    return 0;
}

bool peer_descends(pid_t pid, pid_t ancestor)
{
    for (int i = 0; i < GENERATIONS_MAX && pid > 1; i++) {
        if (pid == ancestor)
            return true;
        pid = (pid_t)stat_field(pid, STAT_PARENT);
    }
    return false;
}

/* Returns the number of supplementary groups, which are new in *ret, or -errno. */
static int groups_of(int socket_fd, gid_t **ret)
{
    gid_t few[16], *groups = few;
    socklen_t n = sizeof few;
    *ret = NULL;
    int r = getsockopt(socket_fd, SOL_SOCKET, SO_PEERGROUPS, groups, &n) ? errno : 0;
    if (r == ENODATA || r == ENOPROTOOPT || (r == 0 && n == 0))
        return 0;
    if (r && r != ERANGE)
        return -r;
    /* the kernel keeps the groups of that moment, so their number does not change between calls */
    *ret = malloc(n);
    if (!*ret)
        return -ENOMEM;
    if (r == 0)
        memcpy(*ret, few, n);
    else if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERGROUPS, *ret, &n)) {
        r = errno;
        free(*ret);
        *ret = NULL;
        return -r;
    }
    return (int)(n / sizeof(gid_t));
}

void peer_deinit(struct peer *peer)
{
    close_fdp(&peer->pidfd);
    free(peer->groups);
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
        /* a process in a pid namespace that the daemon cannot see has no pid here */
        fd = cred.pid ? pidfd_by_pid(socket_fd, cred.pid) : -1;
        if (fd < 0 && cred.pid)
            return fd;
    }
    /* ESRCH leaves the birth unknown. After any other error the connection is refused, because the
     * next daemon would take a client with a wrong birth for another process */
    errno = ESRCH;
    uint64_t birth = fd < 0 ? 0 : peer_birth(fd, cred.pid);
    gid_t *groups = NULL;
    int n_groups = birth == 0 && errno != ESRCH ? -errno : groups_of(socket_fd, &groups);
    if (n_groups < 0) {
        close_fdp(&fd);
        return n_groups;
    }
    *ret = (struct peer){
        .pid = cred.pid,
        .uid = cred.uid,
        .gid = cred.gid,
        .groups = groups,
        .n_groups = (size_t)n_groups,
        .pidfd = fd,
        .birth = birth,
    };
    return 0;
}
