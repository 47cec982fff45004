/* SPDX-License-Identifier: Apache-2.0 */
/* Makes memory as the daemon would: a memfd of the right size, sealed and committed. */
#include "client/segment/own.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/base/wait.h"
#include "common/base/descriptor.h"
#include "common/base/linux.h"
#include "common/base/util.h"
#include "common/memory/cgroup.h"
#include "common/memory/measure.h"
#include "common/memory/zero.h"

/* How much is committed between two questions whether to go on, in about 20 ms. A signal undoes a
 * step; after each one the steps are half as long, so that a program with a timer comes to the end.
 */
#define STEP_BYTES       ((uint64_t)64 << 20)
#define STEP_LEAST_BYTES ((uint64_t)64 << 10)

#define MEMFD_NAME "shmview:own"

/* Others who get a read-only descriptor cannot open the memory again for writing. */
#define MODE (S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH)

static void init_measure(void)
{
    cgroup_init("");
}

static int fail_space(const struct wire_create *create, const struct measure_memory *m)
{
    bool of_group = m->group_limit < m->limit;
    return fail(SHMVIEW_ERR_NO_SPACE,
                "segment '%s' asks for %" PRId64 " bytes; %" PRIu64 " are free, %s %" PRIu64,
                create->name, create->size, m->free,
                of_group ? "the control group of this process may have" : "memory and swap hold",
                of_group ? m->group_limit : m->limit);
}

/* Commits all of it, step by step. Looks for free memory before each step, because the kernel would
 * not refuse a page at the limit of a control group, but kill this process. Returns 0 or an error.
 */
static int commit_all(int fd, const struct wire_create *create)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t size = (uint64_t)create->size, done = 0, longest = STEP_BYTES;
    int r = 0;
    pthread_once(&once, init_measure);
    while (done < size && r == 0) {
        const struct measure_memory m = measure_memory();
        uint64_t step = size - done < longest ? size - done : longest;
        int error = m.free < size - done ? ENOSPC
                    : create->populate   ? -zero_file(fd, done, step)
                                         : posix_fallocate(fd, (off_t)done, (off_t)step);
        if (error == 0)
            done += step;
        else if (error == EINTR)
            longest = longest > STEP_LEAST_BYTES ? longest / 2 : longest;
        else if (error == ENOSPC || error == ENOMEM)
            return fail_space(create, &m);
        else
            return fail_errno("memory of a segment", error);
        if (done < size)
            r = wait_ask();
    }
    return r;
}

/* Returns an empty memfd, or -errno. It does not have the name of the segment, because a service
 * manager that stores the descriptor shows it to all users. Linux before 6.3 does not know
 * MFD_NOEXEC_SEAL. */
static int new_memfd(void)
{
    int fd = memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return fd < 0 ? -errno : descriptor_lift(fd);
}

/* Returns a descriptor of the memory, which the caller owns, or an error. */
static int make_memory(const struct wire_create *create)
{
    CLEANUP_FD int fd = new_memfd();
    if (fd < 0)
        return fail_errno("memory of a segment", -fd);
    if (ftruncate(fd, (off_t)create->size) || fchmod(fd, MODE) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW))
        return fail_errno("memory of a segment", errno);
    int r = commit_all(fd, create);
    return r ? r : steal_fd(&fd);
}

int own_create(struct shmview_connection *connection, const struct wire_create *create,
               struct reply *reply)
{
    int r = wait_refuse();
    if (r)
        return r;
    CLEANUP_FD int fd = make_memory(create);
    return fd < 0 ? fd : connection_hand_over(connection, fd, wire_create_text(create), reply);
}
