/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the calls that make and look at memfds fail, too (faults.h, FAULTS_SYSTEM). A test that
 * includes this is linked so. */
#ifndef UNIT_FAULTS_MEMFD_H
#define UNIT_FAULTS_MEMFD_H

#include <stdarg.h>
#include <stdlib.h>
#include <sys/vfs.h>

#include "common/base/linux.h"
#include "unit/faults.h"

#define MEMFD_FAULT(name, parameters, arguments)                                                   \
    int __real_##name parameters;                                                                  \
    int __wrap_##name parameters;                                                                  \
    int __wrap_##name parameters                                                                   \
    {                                                                                              \
        return faults_fail(FAULTS_SYSTEM, #name) ? -1 : __real_##name arguments;                   \
    }

MEMFD_FAULT(memfd_create, (const char *name, unsigned flags), (name, flags))
MEMFD_FAULT(fchmod, (int fd, mode_t mode), (fd, mode))
MEMFD_FAULT(ftruncate, (int fd, off_t n), (fd, n))
MEMFD_FAULT(fstatfs, (int fd, struct statfs *fs), (fd, fs))
MEMFD_FAULT(statx, (int dir, const char *path, int flags, unsigned mask, struct statx *st),
            (dir, path, flags, mask, st))

/* open() with flags that the compiler does not know, in a fortified build */
#ifdef __GLIBC__
int __real___open_2(const char *path, int flags);
int __wrap___open_2(const char *path, int flags);
int __wrap___open_2(const char *path, int flags)
{
    return faults_fail(FAULTS_SYSTEM, "open") ? -1 : __real___open_2(path, flags);
}
#endif

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
/* Only for commands with an int, which is in the register of a pointer too. */
int __wrap_fcntl(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    void *argument = command == F_GET_SEALS || command == F_GETFD || command == F_GETFL
                         ? NULL
                         : va_arg(ap, void *);
    va_end(ap);
    return faults_fail(FAULTS_SYSTEM, "fcntl") ? -1 : __real_fcntl(fd, command, argument);
}

#endif
