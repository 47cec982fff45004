/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of the sealed segments that this process has mapped.
 *
 * The memory of a sealed segment has no name. If both the daemon and its keeper are killed, only
 * the mappings of clients are left of it, and a mapping cannot be made a descriptor again without
 * privileges. So the library holds the descriptors, and does nothing with them: the next daemon
 * opens them by /proc (daemon/memory/salvage.h). A mapping that no handle uses has none.
 *
 * They take at most an eighth of the descriptors that the process may have. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/process.h"
#include "client/segment/mappings.h"
#include "common/base/linux.h"
#include "common/base/util.h"

#define HELD_PART 8

static atomic_uint n_held; /* by all mappings of this process */

/* Whether n more fit, which are counted then. */
static bool count(unsigned n)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return false;
    if (atomic_fetch_add(&n_held, n) + n <= limit.rlim_cur / HELD_PART)
        return true;
    atomic_fetch_sub(&n_held, n);
    return false;
}

/* Holds one more. Returns whether there was a descriptor for that. */
static bool hold(struct mapping *m, int fd)
{
    struct stat st;
    int copy = fstat(fd, &st) ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return false;
    m->held[m->n_held].fd = copy;
    m->held[m->n_held].device = st.st_dev;
    m->held[m->n_held++].inode = st.st_ino;
    return true;
}

/* Under the lock, because several threads may attach the same segment at once. */
void mapping_hold(struct mapping *m, const int *fds, size_t n)
{
    DETAILS;
    NOT_FORKED;
    if (m->n_held || n == 0 || n > ARRAY_LEN(m->held) || !count((unsigned)n))
        return;
    while (m->n_held < n && hold(m, fds[m->n_held]))
        continue;
    if (m->n_held == n)
        return;
    atomic_fetch_sub(&n_held, (unsigned)n - m->n_held);
    mapping_let_go(m); /* a part of the objects is of no use */
}

/* A program may have closed all its descriptors, and opened others with these numbers. */
void mapping_let_go(struct mapping *m)
{
    struct stat st;
    atomic_fetch_sub(&n_held, m->n_held);
    while (m->n_held) {
        m->n_held--;
        int fd = m->held[m->n_held].fd;
        if (fstat(fd, &st) == 0 && st.st_ino == m->held[m->n_held].inode &&
            st.st_dev == m->held[m->n_held].device)
            close(fd);
    }
}
