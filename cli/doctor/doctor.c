/* SPDX-License-Identifier: Apache-2.0 */
/* The real places and probes, and the functions with which the checks read and report. */
#include "cli/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* older headers lack these */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* --- This machine -------------------------------------------------------- */

/* getrlimit() takes an enum in glibc, so its type differs from that of get_limit. */
static int real_limit(int resource, struct rlimit *ret)
{
    return getrlimit((unsigned)resource, ret);
}

/* Returns 0 if a pidfd of a socket's peer can be read, or errno. */
static int probe_peer_pidfd(void)
{
    int ends[2], fd = -1;
    socklen_t n = sizeof fd;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return errno;
    int r = getsockopt(ends[0], SOL_SOCKET, SO_PEERPIDFD, &fd, &n) ? errno : 0;
    if (fd >= 0)
        close(fd);
    close(ends[0]);
    close(ends[1]);
    return r;
}

/* Returns 0 if a process may read memory by process_vm_readv(), or errno. Reads its own, to which a
 * seccomp filter applies as well. */
static int probe_vm_read(void)
{
    char from = 1, to = 0;
    struct iovec local = {&to, 1}, remote = {&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 ? 0 : errno;
}

static int real_probe(enum doctor_probe probe)
{
    int fd;
    switch (probe) {
    case PROBE_FUTEX_WAITV: /* Waits for no word, so a kernel that knows the call refuses it as
                               invalid. */
        return syscall(SYS_futex_waitv, NULL, 0, 0, NULL, 0) && errno != EINVAL ? errno : 0;
    case PROBE_PIDFD_OPEN:
        fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (fd < 0)
            return errno;
        close(fd);
        return 0;
    case PROBE_VM_READ:
        return probe_vm_read();
    default:
        return probe_peer_pidfd();
    }
}

void doctor_init(struct doctor *d, const char *root)
{
    *d = (struct doctor){
        .root = root,
        .systemctl = geteuid() ? "systemctl --user" : "systemctl",
        .uid = geteuid(),
        .user = user_name(geteuid()),
        .get_limit = real_limit,
        .get_space = statvfs,
        .probe = real_probe,
    };
}

void doctor_deinit(struct doctor *d)
{
    free(d->list);
}

/* --- Findings ------------------------------------------------------------ */

void doctor_find(struct doctor *d, enum doctor_level level, const char *check, const char *means,
                 const char *advice, const char *found, ...)
{
    struct doctor_finding *list = realloc(d->list, (d->n + 1) * sizeof *list);
    if (!list) {
        d->is_short = true;
        return;
    }
    d->list = list;
    struct doctor_finding *f = &list[d->n++];
    *f = (struct doctor_finding){.level = level, .check = check, .means = means, .advice = advice};
    va_list ap;
    va_start(ap, found);
    vsnprintf(f->found, sizeof f->found, found, ap);
    va_end(ap);
}

void doctor_measure(struct doctor *d, double used, double limit)
{
    if (d->n == 0)
        return;
    d->list[d->n - 1].used = used;
    d->list[d->n - 1].limit = limit;
}

#define WARN_SHARE 0.8

enum doctor_level doctor_level_of(double used, double limit)
{
    if (limit <= 0 || used < limit * WARN_SHARE)
        return DOCTOR_OK;
    return used < limit ? DOCTOR_WARN : DOCTOR_FAIL;
}

enum doctor_level doctor_worst(const struct doctor *d)
{
    enum doctor_level worst = DOCTOR_OK;
    for (size_t i = 0; i < d->n; i++)
        if (d->list[i].level > worst)
            worst = d->list[i].level;
    return worst;
}

const struct doctor_finding *doctor_closest(const struct doctor *d)
{
    const struct doctor_finding *closest = NULL;
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->list[i];
        if (f->limit > 0 && (!closest || f->used * closest->limit > closest->used * f->limit))
            closest = f;
    }
    return closest;
}

/* --- Files --------------------------------------------------------------- */

const char *doctor_path(const struct doctor *d, const char *path, char *buffer)
{
    snprintf(buffer, DOCTOR_PATH, "%s%s", d->root, path);
    return buffer;
}

bool doctor_read(const struct doctor *d, const char *path, bool one_line, char *buffer,
                 size_t bytes)
{
    char where[DOCTOR_PATH];
    int fd = open(doctor_path(d, path, where), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = 0, more;
    while ((more = read(fd, buffer + n, bytes - 1 - (size_t)n)) > 0)
        n += more;
    close(fd);
    buffer[n] = '\0';
    if (one_line)
        buffer[strcspn(buffer, "\n")] = '\0';
    return more >= 0;
}

long long doctor_read_number(const struct doctor *d, const char *path)
{
    char text[64], *end;
    if (!doctor_read(d, path, true, text, sizeof text))
        return -1;
    long long n = strtoll(text, &end, 10);
    return end == text ? -1 : n;
}
