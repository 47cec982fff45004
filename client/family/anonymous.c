/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous memory: creates it, and maps it from a descriptor.
 *
 * The memory is committed when it is created, so that no later access can fail for lack of it. It
 * has no name, and the kernel frees it with the last process that has it. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/family.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "client/base/wait.h"
#include "common/base/util.h"

/* Sets the text of an error from errno, and keeps errno. Returns the error. */
static int fail_system(const char *what)
{
    int cause = errno;
    int r = cause == ENOSPC ? fail(SHMVIEW_ERR_NO_SPACE, "%s: no space left", what)
                            : fail_errno(what, cause);
    errno = cause;
    return r;
}

/* A step is not shorter: the kernel allocates so much between two signals of any timer. */
#define STEP_LEAST_BYTES ((uint64_t)64 << 10)

/* Opens an unlinked file in /dev/shm, because tmpfs enforces its size limit. If there is no
 * such file system, opens a memfd. That has no limit, and the kernel would kill a process when
 * memory runs out; so a request for more than is free fails here. *ret_what describes the memory.
 * Returns a descriptor, or -1 with errno. */
static int open_unlinked(uint64_t bytes, const char **ret_what)
{
    *ret_what = "memory without a name in /dev/shm";
    int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0 || (errno != ENOENT && errno != EOPNOTSUPP && errno != EISDIR && errno != EACCES))
        return fd;
    *ret_what = "memory without a name, a memfd, because /dev/shm takes no file";
    long page = sysconf(_SC_PAGESIZE), n_free = sysconf(_SC_AVPHYS_PAGES);
    if (bytes / (uint64_t)page > (uint64_t)n_free) {
        errno = ENOSPC;
        return -1;
    }
    return memfd_create("shmview-anonymous", MFD_CLOEXEC);
}

/* Allocates all pages, in one call, which fails at once if the file system has too little space. On
 * some kernels a signal ends it and undoes what it has done. Then the caller's function decides
 * whether to go on, in steps that are half as long, so that a program with a timer comes to the
 * end. Returns 0 or an error. */
static int commit(int fd, uint64_t bytes, const char *what)
{
    for (uint64_t done = 0, longest = bytes; done < bytes;) {
        uint64_t step = bytes - done < longest ? bytes - done : longest;
        int r = wait_ask();
        if (r)
            return r;
        errno = posix_fallocate(fd, (off_t)done, (off_t)step);
        if (errno == 0)
            done += step;
        else if (errno != EINTR)
            return fail_system(what);
        else if (longest > STEP_LEAST_BYTES)
            longest /= 2;
    }
    return 0;
}

/* Maps the memory. Returns 0, and *ret owns the descriptor (*fd is -1), or an error. */
static int map(int *fd, uint64_t bytes, struct shmview_anonymous *ret)
{
    void *data = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (data == MAP_FAILED)
        return fail_system("mapping memory without a name");
    *ret = (struct shmview_anonymous){.data = data, .bytes = bytes, .fd = steal_fd(fd)};
    return 0;
}

int shmview_anonymous_create(uint64_t bytes, struct shmview_anonymous *ret_memory)
{
    NOT_CANCELLED;
    if (bytes == 0 || bytes > PTRDIFF_MAX)
        return fail(SHMVIEW_ERR_INVALID, "memory of %" PRIu64 " bytes", bytes);
    const char *what;
    CLEANUP_FD int fd = open_unlinked(bytes, &what);
    if (fd < 0)
        return fail_system(what);
    int r = process_init();
    if (r == 0)
        r = commit(fd, bytes, what);
    return r ? r : map(&fd, bytes, ret_memory);
}

int shmview_anonymous_open(int fd, struct shmview_anonymous *ret_memory)
{
    struct stat found;
    NOT_CANCELLED;
    if (fstat(fd, &found))
        return fail_system("a descriptor of memory");
    if (!S_ISREG(found.st_mode) || found.st_size <= 0)
        return fail(SHMVIEW_ERR_INVALID, "descriptor %d is not one of anonymous memory", fd);
    return map(&fd, (uint64_t)found.st_size, ret_memory);
}

void shmview_anonymous_close(struct shmview_anonymous *memory)
{
    NOT_CANCELLED;
    if (memory->data)
        munmap(memory->data, (size_t)memory->bytes);
    close_fdp(&memory->fd);
    *memory = (struct shmview_anonymous){.fd = -1};
}
