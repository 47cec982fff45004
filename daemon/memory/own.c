/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/memory/sealed.h"

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* Sets the reason. Returns -EINVAL. A macro, so that compilers check its format. */
#define because(...) (snprintf(why, why_bytes, __VA_ARGS__), -EINVAL)

/* Whether the device is that of memfds of ordinary pages. All others have other devices: those of
 * huge pages, and every file of a mounted file system, /dev/shm among them. Returns 1, 0, or -errno
 * if this process can make no memfd to compare with. */
static int is_of_memfds(dev_t device)
{
    static dev_t ours;
    static bool is_known;
    struct stat st;
    if (!is_known) {
        CLEANUP_FD int fd = memfd_create("shmview:probe", MFD_CLOEXEC);
        if (fd < 0 || fstat(fd, &st))
            return -errno;
        ours = st.st_dev;
        is_known = true;
    }
    return device == ours;
}

/* Checks what the file is. Returns what own_check() returns. The seals come first: only memory of
 * the kernel's has any, and for that fstat() waits for nobody. */
static int check_kind(int fd, struct stat *ret_st, char *why, size_t why_bytes)
{
    int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);
    if (seals < 0 || fstat(fd, ret_st) || !S_ISREG(ret_st->st_mode))
        return because("is not a memfd");
    int r = is_of_memfds(ret_st->st_dev);
    if (r < 0)
        return r;
    if (r == 0)
        return because("is not a memfd of ordinary pages");
    if ((flags & O_ACCMODE) != O_RDWR)
        return because("is not open for reading and writing");
    if ((seals & SIZE_SEALS) != SIZE_SEALS)
        return because("has not the seals F_SEAL_SHRINK and F_SEAL_GROW");
    if (seals & ~(SIZE_SEALS | F_SEAL_EXEC))
        return because("has seals (0x%x) besides F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_EXEC",
                       (unsigned)seals);
    return 0;
}

int own_check(int fd, uint64_t size, uid_t uid, struct stat *ret_st, char *why, size_t why_bytes)
{
    struct stat st, other;
    int r = check_kind(fd, &st, why, why_bytes);
    if (r)
        return r;
    uint64_t step = (uint64_t)st.st_blksize, has = (uint64_t)st.st_blocks * 512;
    if (st.st_uid != uid)
        return because("belongs to uid %u, not to %u", st.st_uid, uid);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return because("has the mode 0%03o, with which others can write it", st.st_mode & 0777u);
    if ((uint64_t)st.st_size != size)
        return because("has %jd bytes, not %" PRIu64, (intmax_t)st.st_size, size);
    if (has < size)
        return because("has %" PRIu64 " of %" PRIu64 " bytes committed", has, size);
    if (has > (size + step - 1) / step * step)
        return because("has memory beyond its end");
    if (sealed_stat(st.st_ino, &other) == 0)
        return because("is the memory of a segment already");
    *ret_st = st;
    return 0;
}
