/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of the data of a segment: in huge pages, and on nodes of a machine with several (NUMA).
 *
 * Ordinary data is committed by fallocate(), which takes base pages from any node and leaves
 * zeroing them to the first access. Data with a placement is committed through a mapping instead,
 * because only a mapping can have advice and a policy: the daemon maps a part of the new object
 * before any client has it, has the kernel populate the part, measures what it got, and unmaps it.
 * Populating zeroes the pages, so several threads do it. It raises no SIGBUS, as touching the pages
 * would.
 *
 * Huge pages come from the first of these that has them:
 *
 *   hugetlb  for sealed data: the pool that the administrator has reserved (vm.nr_hugepages). The
 *            object is then a hugetlb memfd, of whole huge pages
 *   thp      transparent huge pages, where the kernel allows them: for memfds by
 *            /sys/kernel/mm/transparent_hugepage/shmem_enabled, for files by the mount option huge=
 *            of the tmpfs on which the instance's directory is
 *
 * Only whole huge pages of the data become transparent ones; the rest after them is in base pages.
 * Otherwise a huge page would have bytes beyond the end of the data, for which nobody is charged. A
 * hugetlb memfd can have no base pages, so there the bytes after the end are the administrator's.
 */
#ifndef DAEMON_PLACEMENT_H
#define DAEMON_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/placement.h>

#define PLACEMENT_HUGE_BYTES ((uint64_t)2 << 20)

/* What the creator of a segment wants, and what it got. One thread writes it at a time: the one
 * that commits the data. */
struct placement {
    uint8_t huge;    /* enum shmview_huge */
    uint8_t numa;    /* enum shmview_numa */
    uint8_t by;      /* enum shmview_huge_by: how it got huge pages */
    uint8_t missing; /* enum shmview_huge_missing: why it got fewer than it wanted */
    uint32_t node;   /* of SHMVIEW_NUMA_NODE and _LOCAL */
    uint64_t huge_bytes;
    uint64_t nodes; /* bit i: it has pages of node i, at most LIMIT_NODE; 0: not measured */
};

/* Whether this machine has memory on the node, and the daemon may use it. */
bool placement_has_node(uint32_t node);

/* How many bytes of data are in whole huge pages. */
static inline uint64_t placement_whole(uint64_t bytes)
{
    return bytes / PLACEMENT_HUGE_BYTES * PLACEMENT_HUGE_BYTES;
}

/* Whether the data is in a hugetlb memfd. placement may be NULL, here and below. */
static inline bool placement_is_pool(const struct placement *placement)
{
    return placement && placement->by == SHMVIEW_HUGE_BY_HUGETLB;
}

/* The size of the object that has these bytes of data. */
static inline uint64_t placement_object_bytes(const struct placement *placement, uint64_t bytes)
{
    return placement_is_pool(placement) ? placement_whole(bytes + PLACEMENT_HUGE_BYTES - 1) : bytes;
}

/* How much of the machine's free memory these bytes of data take: none if they are of the pool,
 * which the kernel has reserved. */
static inline uint64_t placement_memory(const struct placement *placement, uint64_t bytes)
{
    return placement_is_pool(placement) ? 0 : bytes;
}

/* Chooses the pool if the data should be huge and sealed, and the pool has room for it. Without the
 * pool the data can still get transparent huge pages. Waits for memory that discard.c is freeing if
 * the pool is short. Returns whether it is the pool. */
bool placement_choose_pool(struct placement *placement, bool sealed, uint64_t bytes);
/* Drops that choice, because another process was faster. */
void placement_leave_pool(struct placement *placement);

/* Commits `bytes` of the data from byte `from`, which is at a whole huge page. The object has
 * these bytes already. Blocks. Any thread.
 *
 * Returns 0; -EOPNOTSUPP if huge pages are required and these bytes got fewer than have room in
 * them, with the reason in `missing`; -ENOSPC; or another -errno. */
int placement_commit(struct placement *placement, int fd, bool sealed, uint64_t from,
                     uint64_t bytes);

/* Returns the reason as a clause, "it is smaller than a huge page"; never NULL. */
const char *placement_missing_text(unsigned missing);

#endif
