/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/faults.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <jansson.h>

static unsigned armed_classes;
static const char *armed_name;
static int armed_errno = EIO;
static bool armed_forever;
static atomic_int left; /* calls until the one that fails */
static atomic_bool failed;
static const char *failed_name = "";
static const char *hook_name;
static void (*hook_run)(void);
static _Thread_local bool spared;
static struct {
    const char *path, *text;
} files[8];

void faults_begin(unsigned classes, unsigned n)
{
    armed_name = NULL;
    armed_forever = false;
    failed = false;
    left = (int)n;
    armed_classes = classes;
}

void faults_begin_call(const char *name, unsigned n, int error_number, bool forever)
{
    faults_begin(FAULTS_MEMORY | FAULTS_SYSTEM | FAULTS_STORE | FAULTS_THREAD, n);
    armed_name = name;
    armed_errno = error_number;
    armed_forever = forever;
}

void faults_errno(int error_number)
{
    armed_errno = error_number;
}

void faults_hook(const char *name, void (*hook)(void))
{
    hook_name = name;
    hook_run = hook;
}

void faults_spare_thread(void)
{
    spared = true;
}

bool faults_end(void)
{
    armed_classes = 0;
    return failed;
}

const char *faults_name(void)
{
    return failed_name;
}

bool faults_fail(unsigned classes, const char *name)
{
    if (spared)
        return false;
    if (hook_name && strcmp(hook_name, name) == 0) {
        hook_name = NULL;
        hook_run();
    }
    if (!(armed_classes & classes) || (armed_name && strcmp(armed_name, name) != 0))
        return false;
    int n = atomic_fetch_sub(&left, 1);
    if (n > 1 || (n < 1 && !armed_forever))
        return false;
    failed = true;
    failed_name = name;
    errno = classes == FAULTS_MEMORY ? ENOMEM : armed_errno;
    return true;
}

/* FAULT(class, result, name, (parameters), (arguments)) defines __wrap_name(). */
#define FAULT(class, type, failure, name, parameters, arguments)                                   \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return faults_fail(class, #name) ? (failure) : __real_##name arguments;                    \
    }
#define MEMORY(name, parameters, arguments)                                                        \
    FAULT(FAULTS_MEMORY, void *, NULL, name, parameters, arguments)
#define SYSTEM(name, parameters, arguments)                                                        \
    FAULT(FAULTS_SYSTEM, int, -1, name, parameters, arguments)

MEMORY(malloc, (size_t n), (n))
MEMORY(calloc, (size_t n, size_t bytes), (n, bytes))
MEMORY(realloc, (void *p, size_t n), (p, n))
MEMORY(aligned_alloc, (size_t align, size_t n), (align, n))
FAULT(FAULTS_MEMORY, char *, NULL, strdup, (const char *s), (s))

SYSTEM(fstat, (int fd, struct stat *st), (fd, st))
SYSTEM(lstat, (const char *path, struct stat *st), (path, st))
SYSTEM(fstatat, (int dir, const char *path, struct stat *st, int flags), (dir, path, st, flags))
SYSTEM(statvfs, (const char *path, struct statvfs *st), (path, st))
SYSTEM(fstatvfs, (int fd, struct statvfs *st), (fd, st))
SYSTEM(flock, (int fd, int operation), (fd, operation))
SYSTEM(renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
       (from, old, to, new, flags))
SYSTEM(mkdir, (const char *path, mode_t mode), (path, mode))
SYSTEM(madvise, (void *p, size_t n, int advice), (p, n, advice))
SYSTEM(socket, (int domain, int type, int protocol), (domain, type, protocol))
SYSTEM(accept4, (int fd, struct sockaddr *address, socklen_t *n, int flags),
       (fd, address, n, flags))
SYSTEM(socketpair, (int domain, int type, int protocol, int ends[2]),
       (domain, type, protocol, ends))
SYSTEM(renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
SYSTEM(bind, (int fd, const struct sockaddr *address, socklen_t n), (fd, address, n))
SYSTEM(listen, (int fd, int n), (fd, n))
SYSTEM(connect, (int fd, const struct sockaddr *address, socklen_t n), (fd, address, n))
SYSTEM(getsockopt, (int fd, int level, int option, void *value, socklen_t *n),
       (fd, level, option, value, n))
FAULT(FAULTS_SYSTEM, ssize_t, -1, recvmsg, (int fd, struct msghdr *msg, int flags),
      (fd, msg, flags))
FAULT(FAULTS_SYSTEM, ssize_t, -1, sendmsg, (int fd, const struct msghdr *msg, int flags),
      (fd, msg, flags))
FAULT(FAULTS_SYSTEM, ssize_t, -1, pwrite, (int fd, const void *p, size_t n, off_t at),
      (fd, p, n, at))
FAULT(FAULTS_SYSTEM, ssize_t, -1, process_vm_writev,
      (pid_t pid, const struct iovec *from, unsigned long n_from, const struct iovec *to,
       unsigned long n_to, unsigned long flags),
      (pid, from, n_from, to, n_to, flags))
FAULT(FAULTS_SYSTEM, ssize_t, -1, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
FAULT(FAULTS_SYSTEM, pid_t, -1, fork, (void), ())
FAULT(FAULTS_SYSTEM, void *, MAP_FAILED, mmap,
      (void *p, size_t n, int protection, int flags, int fd, off_t at),
      (p, n, protection, flags, fd, at))
FAULT(FAULTS_SYSTEM, DIR *, NULL, opendir, (const char *path), (path))
/* these return the error instead of setting errno */
FAULT(FAULTS_SYSTEM, int, armed_errno, posix_fallocate, (int fd, off_t at, off_t n), (fd, at, n))
FAULT(FAULTS_THREAD, int, armed_errno, pthread_create,
      (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *arg),
      (thread, attributes, run, arg))

void faults_file(const char *path, const char *text)
{
    size_t i = 0;
    while (files[i].path && strcmp(files[i].path, path) != 0)
        if (++i == sizeof files / sizeof files[0])
            abort();
    files[i].path = path;
    files[i].text = text;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    if (faults_fail(FAULTS_SYSTEM, "fopen"))
        return NULL;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && files[i].path; i++) {
        const char *text = files[i].text;
        if (strcmp(files[i].path, path) != 0)
            continue;
        if (text && text[0])
            return fmemopen((char *)(uintptr_t)text, strlen(text), "r");
        return __real_fopen(text ? "/dev/null" : "/nowhere", mode);
    }
    return __real_fopen(path, mode);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return faults_fail(FAULTS_SYSTEM, "open") ? -1 : __real_open(path, flags, mode);
}

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return faults_fail(FAULTS_SYSTEM, "openat") ? -1 : __real_openat(dir, path, flags, mode);
}

long __real_syscall(long number, ...);
/* Like syscall() itself, this reads six arguments whether the caller has passed them or not, and
 * the last of them is on the stack of the caller. */
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...);
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list ap;
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    return faults_fail(FAULTS_SYSTEM, "syscall")
               ? -1
               : __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

__attribute__((constructor)) static void faults_of_jansson(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
}
