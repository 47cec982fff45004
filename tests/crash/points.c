/* SPDX-License-Identifier: Apache-2.0 */
/* Linked into shmviewd_points, a daemon for tests that exits abruptly at its n-th point; n comes
 * from $SHMVIEWD_ENDS_AT. A point lies right before each system call that other processes could
 * notice, and before each step of a transaction. Writes to shared memory lie between two points.
 *
 * The functions here replace those of libc and LMDB, also for libuv and LMDB themselves. The
 * event loop's own waiting is not counted, so that point n is the same in each run. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <lmdb.h>

#define POINT_STATUS 97 /* as in keeper.h */

static atomic_ulong left;

/* Disarms forked children: the one that checks the registry is not the daemon. */
static void points_end(void)
{
    atomic_store(&left, 0);
}

__attribute__((constructor)) static void points_begin(void)
{
    pthread_atfork(NULL, NULL, points_end);
    const char *text = getenv("SHMVIEWD_ENDS_AT");
    atomic_store(&left, text ? strtoul(text, NULL, 10) : 0);
}

static void point(void)
{
    if (atomic_load_explicit(&left, memory_order_relaxed) && atomic_fetch_sub(&left, 1) == 1)
        syscall(SYS_exit_group, POINT_STATUS);
}

/* POINT(type, name, (parameters), (arguments)) defines name(), which calls point() and then the
 * function that it replaces. */
#define POINT(type, name, parameters, arguments)                                                   \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        point();                                                                                   \
        if (!real)                                                                                 \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        return real arguments;                                                                     \
    }

#pragma GCC diagnostic ignored "-Wnonnull"

POINT(int, unlink, (const char *path), (path))
POINT(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
POINT(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
POINT(int, renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
      (from, old, to, new, flags))
POINT(int, mkdir, (const char *path, mode_t mode), (path, mode))
POINT(int, flock, (int fd, int operation), (fd, operation))
POINT(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
POINT(int, socketpair, (int domain, int type, int protocol, int ends[2]),
      (domain, type, protocol, ends))
POINT(int, bind, (int fd, const struct sockaddr *address, socklen_t n), (fd, address, n))
POINT(int, listen, (int fd, int n), (fd, n))
POINT(int, accept4, (int fd, struct sockaddr *address, socklen_t *n, int flags),
      (fd, address, n, flags))
POINT(int, shutdown, (int fd, int how), (fd, how))
POINT(ssize_t, recvmsg, (int fd, struct msghdr *msg, int flags), (fd, msg, flags))
POINT(ssize_t, sendmsg, (int fd, const struct msghdr *msg, int flags), (fd, msg, flags))
POINT(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
POINT(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
POINT(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
POINT(int, ftruncate, (int fd, off_t n), (fd, n))
POINT(int, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n))
POINT(void *, mmap, (void *p, size_t n, int protection, int flags, int fd, off_t at),
      (p, n, protection, flags, fd, at))
POINT(int, munmap, (void *p, size_t n), (p, n))
POINT(DIR *, opendir, (const char *path), (path))

POINT(int, mdb_txn_begin, (MDB_env * env, MDB_txn *parent, unsigned flags, MDB_txn **txn),
      (env, parent, flags, txn))
POINT(int, mdb_put, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *data, unsigned flags),
      (txn, dbi, key, data, flags))
POINT(int, mdb_del, (MDB_txn * txn, MDB_dbi dbi, MDB_val *key, MDB_val *data),
      (txn, dbi, key, data))
POINT(int, mdb_txn_commit, (MDB_txn * txn), (txn))

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    point();
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    return real(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...)
{
    static int (*real)(int, const char *, int, ...);
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    point();
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "openat");
    return real(dir, path, flags, mode);
}

long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    if (number != SYS_exit_group)
        point();
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
