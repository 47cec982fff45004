/* SPDX-License-Identifier: Apache-2.0 */
/* Placement: what a creator wants, what a segment got, and how huge pages are mapped. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/segment/segment.h"
#include "common/base/limits.h"
#include "common/base/linux.h"

#define HUGE_BYTES ((size_t)2 << 20)

_Static_assert(SHMVIEW_NODE_MAX == LIMIT_NODE, "the daemon accepts the same nodes");

int placement_read(const struct shmview_placement *placement, struct wire_create *ret)
{
    unsigned processor, node = 0;
    ret->node = WIRE_ABSENT;
    if (!placement)
        return 0;
    if (placement->struct_bytes != sizeof *placement)
        return fail(SHMVIEW_ERR_INVALID, "a placement of %u bytes; this library knows %zu",
                    placement->struct_bytes, sizeof *placement);
    bool has_node = placement->numa == SHMVIEW_NUMA_NODE;
    if (placement->huge > SHMVIEW_HUGE_REQUIRED || placement->numa > SHMVIEW_NUMA_NODE ||
        placement->node > (has_node ? SHMVIEW_NODE_MAX : 0))
        return fail(SHMVIEW_ERR_INVALID, "placement: huge %u, numa %u, node %u", placement->huge,
                    placement->numa, placement->node);
    ret->huge = placement->huge;
    ret->numa = placement->numa;
    if (has_node)
        ret->node = placement->node;
    else if (placement->numa == SHMVIEW_NUMA_LOCAL &&
             syscall(SYS_getcpu, &processor, &node, NULL) == 0 && node <= SHMVIEW_NODE_MAX)
        ret->node = node;
    return 0;
}

void placement_take(struct shmview_segment *segment, const struct shmview_description *told)
{
    segment->placed = (struct shmview_placed){
        .huge = told->huge,
        .huge_by = told->huge_by,
        .huge_missing = told->huge_missing,
        .numa = told->numa,
        .huge_bytes = told->huge_bytes > 0 ? (uint64_t)told->huge_bytes : 0,
        .nodes = told->nodes > 0 ? (uint64_t)told->nodes : 0,
    };
}

void shmview_placement_get(const struct shmview_segment *segment, struct shmview_placed *ret_placed)
{
    *ret_placed = segment->placed;
}

static size_t round_up(uint64_t bytes, size_t step)
{
    return ((size_t)bytes + step - 1) / step * step;
}

/* How much of the object is mapped. A hugetlb mapping consists of whole huge pages, so its guard
 * page cannot be of the object. */
static size_t object_bytes(uint32_t huge_by, uint64_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return huge_by == SHMVIEW_HUGE_BY_HUGETLB ? round_up(bytes, HUGE_BYTES)
                                              : round_up(bytes, page) + page;
}

/* Advice on the whole huge pages makes a mapping of its own of them, so that no transparent huge
 * page can reach the guard page. */
int placement_map_at(uint32_t huge_by, void *at, int fd, uint64_t bytes, int protection, int flags)
{
    bool is_pool = huge_by == SHMVIEW_HUGE_BY_HUGETLB;
    int now = is_pool ? flags : flags & ~MAP_POPULATE; /* else populated before the advice */
    if (mmap(at, object_bytes(huge_by, bytes), protection, MAP_SHARED | MAP_FIXED | now, fd, 0) ==
        MAP_FAILED)
        return -errno;
    if (is_pool)
        return 0;
    madvise(at, (size_t)bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE);
    if (flags & MAP_POPULATE)
        madvise(at, (size_t)bytes,
                protection & PROT_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    return 0;
}

/* After a failure only what no other thread can have is unmapped: the kernel may remove the room at
 * `at` before it refuses the object there, and another thread may have mapped something in its
 * place since. At worst, addresses without memory stay reserved.
 *
 * The guard page of a hugetlb object is what remains of the room, which has no access: the whole
 * last page of the object is accessible. */
void *placement_map(const struct shmview_placed *placed, int fd, uint64_t bytes, int protection,
                    int flags, size_t *ret_bytes)
{
    size_t room_bytes = round_up(bytes, HUGE_BYTES) + 2 * HUGE_BYTES;
    char *room =
        mmap(NULL, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED)
        return MAP_FAILED;
    char *at = room + (HUGE_BYTES - (uintptr_t)room % HUGE_BYTES) % HUGE_BYTES;
    if (at > room)
        munmap(room, (size_t)(at - room));
    room_bytes -= (size_t)(at - room);
    int r = placement_map_at(placed->huge_by, at, fd, bytes, protection, flags);
    if (r) {
        size_t tried = object_bytes(placed->huge_by, bytes);
        munmap(at + tried, room_bytes - tried);
        errno = -r;
        return MAP_FAILED;
    }
    *ret_bytes = room_bytes;
    if (placed->huge_by != SHMVIEW_HUGE_BY_HUGETLB) {
        *ret_bytes = object_bytes(placed->huge_by, bytes);
        munmap(at + *ret_bytes, room_bytes - *ret_bytes);
    }
    return at;
}
