/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/statvfs.h>

/* The file doubles, but grows by STEP_MOST at most: filling that much takes 0.1 to 0.4 ms. */
#define STEP_MOST ((size_t)256 << 10)
/* If not even this much is free, the file system counts as full. */
#define STEP_LEAST ((size_t)64 << 10)

/* Kept for records: 1/8 of what the file could have, and KEPT_BYTES at most. */
#define KEPT_PART  8
#define KEPT_BYTES ((uint64_t)16 << 20)

int store_room_for_layouts(int fd, size_t bytes, size_t taken)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs))
        return -errno;
    if (fs.f_blocks == 0) /* a tmpfs without a limit of its size */
        return 0;
    uint64_t room = bytes + fs.f_bavail * fs.f_frsize, part = room / KEPT_PART;
    return taken <= room - (part < KEPT_BYTES ? part : KEPT_BYTES) ? 0 : -ENOSPC;
}

int store_room_grow(int fd, size_t bytes, size_t *ret_bytes)
{
    size_t step = bytes < STEP_MOST ? bytes : STEP_MOST;
    /* only the new part: a tmpfs would look at every page of the rest */
    int r = -posix_fallocate(fd, (off_t)bytes, (off_t)step);
    while (r == -ENOSPC && step / 2 >= STEP_LEAST) {
        step /= 2;
        r = -posix_fallocate(fd, (off_t)bytes, (off_t)step);
    }
    if (r == 0)
        *ret_bytes = bytes + step;
    return r;
}
