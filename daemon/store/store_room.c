/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_room.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/statvfs.h>

/* The file grows by as much as it has, but at most by this: filling it takes some milliseconds. */
#define STEP_MOST ((size_t)2 << 20)
/* Less is not tried: the file system is full. */
#define STEP_LEAST ((size_t)64 << 10)

/* For records: an eighth of what the file may have, but no more than this. */
#define KEPT_PART  8
#define KEPT_BYTES ((uint64_t)16 << 20)

int store_room_for_layouts(int fd, size_t bytes, size_t taken)
{
    struct statvfs fs;
    if (fstatvfs(fd, &fs))
        return -errno;
    if (fs.f_blocks == 0) /* a tmpfs without a limit */
        return 0;
    uint64_t room = bytes + fs.f_bavail * fs.f_frsize, part = room / KEPT_PART;
    return taken <= room - (part < KEPT_BYTES ? part : KEPT_BYTES) ? 0 : -ENOSPC;
}

int store_room_grow(int fd, size_t bytes, size_t *ret_bytes)
{
    size_t step = bytes < STEP_MOST ? bytes : STEP_MOST;
    int r = -posix_fallocate(fd, 0, (off_t)(bytes + step));
    while (r == -ENOSPC && step / 2 >= STEP_LEAST) {
        step /= 2;
        r = -posix_fallocate(fd, 0, (off_t)(bytes + step));
    }
    if (r == 0)
        *ret_bytes = bytes + step;
    return r;
}
