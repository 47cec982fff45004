/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/huge_setting.h"
#include "daemon/memory/node.h"

#define THREADS_MAX 4

static atomic_uint n_populating; /* calls of populate() now */

bool placement_has_node(uint32_t node)
{
    return node_is_there(node);
}

const char *placement_missing_text(unsigned missing)
{
    switch (missing) {
    case SHMVIEW_HUGE_SMALL:
        return "it is smaller than a huge page";
    case SHMVIEW_HUGE_DISABLED:
        return "the system allows none for this backing";
    case SHMVIEW_HUGE_SHORT:
        return "the kernel has found no free ones";
    default:
        return "this kernel cannot populate memory";
    }
}

bool placement_choose_pool(struct placement *placement, bool sealed, uint64_t bytes)
{
    if (!placement || !placement->huge || !sealed || bytes < PLACEMENT_HUGE_BYTES)
        return false;
    uint64_t needed = placement_whole(bytes + PLACEMENT_HUGE_BYTES - 1);
    if (huge_pool_free() < needed && !(discard_settle() && huge_pool_free() >= needed))
        return false;
    placement->by = SHMVIEW_HUGE_BY_HUGETLB;
    return true;
}

void placement_leave_pool(struct placement *placement)
{
    placement->by = 0;
    placement->huge_bytes = 0;
}

/* --- Populating ---------------------------------------------------------- */

struct range {
    char *at;
    size_t bytes;
    pthread_t thread;
    bool runs;
    int r;
};

static void *populate_range(void *arg)
{
    struct range *range = arg;
    int r;
    do
        r = madvise(range->at, range->bytes, MADV_POPULATE_WRITE);
    while (r && (errno == EINTR || errno == EAGAIN));
    range->r = r ? -errno : 0;
    return NULL;
}

/* How many threads populate `bytes`. Only one does while another creation populates, because the
 * processors are for other work, too. */
static unsigned threads_for(size_t bytes)
{
    unsigned most = THREADS_MAX;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors > 0 && most > (unsigned long)processors)
        most = (unsigned)processors;
    if (most > bytes / PLACEMENT_HUGE_BYTES)
        most = (unsigned)(bytes / PLACEMENT_HUGE_BYTES);
    return most > 1 && atomic_load(&n_populating) == 1 ? most : 1;
}

/* Populates the mapping with several threads, one of which is this one. A part whose thread cannot
 * start is populated here. Returns 0 or the -errno of a part. */
static int populate(char *at, size_t bytes)
{
    struct range ranges[THREADS_MAX];
    sigset_t all, before;
    int r = 0;
    atomic_fetch_add(&n_populating, 1);
    unsigned n = threads_for(bytes);
    size_t step = (size_t)placement_whole(bytes / n);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are for the loop */
    for (unsigned i = 0; i < n; i++) {
        ranges[i] = (struct range){
            .at = at + i * step,
            .bytes = i + 1 < n ? step : bytes - i * step,
        };
        ranges[i].runs =
            i > 0 && pthread_create(&ranges[i].thread, NULL, populate_range, &ranges[i]) == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    for (unsigned i = 0; i < n; i++) {
        if (ranges[i].runs)
            pthread_join(ranges[i].thread, NULL);
        else
            populate_range(&ranges[i]);
        r = r ? r : ranges[i].r;
    }
    atomic_fetch_sub(&n_populating, 1);
    return r;
}

/* --- Mapping ------------------------------------------------------------- */

/* A part of the object, mapped at an address where huge pages fit. */
struct map {
    char *room; /* with what alignment needs */
    size_t room_bytes;
    char *at;
    size_t bytes;
};

static int map_part(int fd, uint64_t from, uint64_t bytes, struct map *ret)
{
    size_t room_bytes = (size_t)(bytes + PLACEMENT_HUGE_BYTES);
    char *room =
        mmap(NULL, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return -errno;
    char *at = room + (PLACEMENT_HUGE_BYTES - (uintptr_t)room % PLACEMENT_HUGE_BYTES);
    void *p =
        mmap(at, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)from);
    if (p == MAP_FAILED) {
        int r = -errno;
        munmap(room, room_bytes);
        return r;
    }
    *ret = (struct map){room, room_bytes, p, (size_t)bytes};
    return 0;
}

/* --- Committing ---------------------------------------------------------- */

/* Commits without a mapping, where a kernel before 5.14 cannot populate, and to learn why
 * populating has failed. */
static int commit_plain(int fd, uint64_t from, uint64_t bytes)
{
    int r;
    do
        r = posix_fallocate(fd, (off_t)from, (off_t)bytes);
    while (r == EINTR);
    return -r;
}

/* Advises, populates and measures one part. Returns 0 or -errno. */
static int commit_part(struct placement *p, const struct map *map, int fd, uint64_t from,
                       uint64_t *ret_huge)
{
    uint64_t whole = placement_whole(map->bytes);
    *ret_huge = 0;
    if (p->huge && p->by != SHMVIEW_HUGE_BY_HUGETLB && whole)
        madvise(map->at, whole, MADV_HUGEPAGE);
    if (p->numa)
        node_bind(map->at, map->bytes, p->numa, p->node);
    int r = populate(map->at, map->bytes);
    if (r == -EINVAL && p->huge && p->by != SHMVIEW_HUGE_BY_HUGETLB)
        p->missing = SHMVIEW_HUGE_UNSUPPORTED;
    if (r)
        r = commit_plain(fd, from, map->bytes);
    if (r)
        return r;
    if (p->numa)
        p->nodes |= node_measure(map->at, map->bytes);
    if (p->by == SHMVIEW_HUGE_BY_HUGETLB)
        *ret_huge = map->bytes;
    else if (p->huge)
        *ret_huge = huge_mapped(map->at, map->bytes);
    return 0;
}

int placement_commit(struct placement *p, int fd, bool sealed, uint64_t from, uint64_t bytes)
{
    struct map map = {0};
    uint64_t huge = 0, whole = placement_whole(bytes);
    uint64_t object = placement_is_pool(p) ? placement_object_bytes(p, bytes) : bytes;
    int r = map_part(fd, from, object, &map);
    if (r == 0) {
        r = commit_part(p, &map, fd, from, &huge);
        munmap(map.room, map.room_bytes);
    }
    if (r == -ENOMEM && placement_is_pool(p))
        r = -ENOSPC;
    if (r || !p->huge)
        return r;
    huge = huge < bytes ? huge : bytes;
    p->huge_bytes += huge;
    if (huge && !p->by)
        p->by = SHMVIEW_HUGE_BY_THP;
    if (from == 0 && whole == 0 && !placement_is_pool(p))
        p->missing = SHMVIEW_HUGE_SMALL;
    else if (huge < whole && p->missing == 0)
        p->missing = huge_is_allowed(fd, sealed) ? SHMVIEW_HUGE_SHORT : SHMVIEW_HUGE_DISABLED;
    return p->huge == SHMVIEW_HUGE_REQUIRED && p->missing ? -EOPNOTSUPP : 0;
}
