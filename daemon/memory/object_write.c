/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/object_write.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "daemon/memory/object.h"

/* Some bytes of an object, in whole pages. */
struct window {
    char *map;
    size_t map_bytes;
    char *at; /* the first of these bytes */
};

/* Maps n bytes of the object from the byte `from` on. Returns false, with errno set, if the system
 * refuses. */
static bool window_open(struct window *window, int fd, uint64_t from, size_t n)
{
    size_t before = (size_t)(from % (uint64_t)sysconf(_SC_PAGESIZE));
    void *p =
        mmap(NULL, before + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(from - before));
    if (p == MAP_FAILED)
        return false;
    *window = (struct window){.map = p, .map_bytes = before + n, .at = (char *)p + before};
    return true;
}

static void window_close(const struct window *window)
{
    munmap(window->map, window->map_bytes);
}

/* pwrite() alone would enlarge an object that is too short. Returns as it. */
static ssize_t write_within(int fd, const void *bytes, size_t n, uint64_t at)
{
    struct stat st;
    if (fstat(fd, &st))
        return -1;
    return at + n > (uint64_t)st.st_size ? 0 : pwrite(fd, bytes, n, (off_t)at);
}

int object_write(int fd, const void *bytes, size_t n, uint64_t at)
{
    struct window window;
    if (!window_open(&window, fd, at, n))
        return -errno;
    const struct iovec from = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
    const struct iovec to = {.iov_base = window.at, .iov_len = n};
    ssize_t done = process_vm_writev(getpid(), &from, 1, &to, 1, 0);
    if (done < 0 && (errno == ENOSYS || errno == EPERM))
        done = write_within(fd, bytes, n, at);
    int r = done < 0 && errno != EFAULT ? -errno : done == (ssize_t)n ? 0 : -EIO;
    window_close(&window);
    return r;
}

int object_populate(int fd, uint64_t from, uint64_t to)
{
    struct window window;
    if (!window_open(&window, fd, from, (size_t)(to - from)))
        return -errno;
    int r = 0;
    do
        r = madvise(window.map, window.map_bytes, MADV_POPULATE_WRITE) ? -errno : 0;
    while (r == -EINTR || r == -EAGAIN);
    window_close(&window);
    return r == -EINVAL ? object_grow(fd, from, to) : r == -EFAULT ? -ENOSPC : r;
}
