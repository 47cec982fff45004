/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/placement.h - huge pages, nodes, and pages that are mapped before their use.
 *
 * A segment whose creator wants huge pages takes 512 times fewer page faults, and a
 * processor finds its addresses faster. On a machine with several nodes (NUMA), the
 * creator chooses which of them the memory comes from:
 *
 *     const struct shmview_placement place = {
 *         .struct_bytes = sizeof place, .huge = SHMVIEW_HUGE_WANTED,
 *         .numa = SHMVIEW_NUMA_INTERLEAVED};
 *     const struct shmview_create_options options = {
 *         .struct_bytes = sizeof options, .placement = &place};
 *     shmview_create(conn, "big", 1 << 30, &options, &seg);
 *     shmview_placement_get(seg, &placed);        what it has got
 *
 * A request that cannot be met falls back: to base pages of 4 KiB, and to another
 * node. Only SHMVIEW_HUGE_REQUIRED fails instead.
 *
 * The daemon commits all memory of a segment when it is created. The kernel zeroes a
 * page and enters it into the page table of a process at the first access, which costs
 * 0.5 us for each page of 4 KiB. A program that must not pay this later populates what
 * it is going to use:
 *
 *     shmview_populate(seg, 0, shmview_size(seg));
 *
 * Several threads may populate parts of one segment at once. docs/PLACEMENT.md has
 * figures and reasons. */
#ifndef SHMVIEW_PLACEMENT_H
#define SHMVIEW_PLACEMENT_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the data of a segment should be in huge pages of 2 MiB; 0: as the system has
 * it. This holds for the whole huge pages in the data: up to 2 MiB at its end are in
 * base pages, unless the huge pages are of the hugetlb pool. */
enum shmview_huge {
    SHMVIEW_HUGE_WANTED = 1,   /* where there are some; base pages otherwise */
    SHMVIEW_HUGE_REQUIRED = 2, /* or the creation fails */
};

/* How a segment got huge pages; 0: it has none. */
enum shmview_huge_by {
    SHMVIEW_HUGE_BY_HUGETLB = 1, /* of the pool of the administrator: vm.nr_hugepages */
    SHMVIEW_HUGE_BY_THP = 2,     /* transparent ones, by advice */
};

/* Why a segment got fewer than its creator wanted; 0: it got them. */
enum shmview_huge_missing {
    SHMVIEW_HUGE_SMALL = 1,       /* the data is smaller than one */
    SHMVIEW_HUGE_DISABLED = 2,    /* the system allows none for this backing */
    SHMVIEW_HUGE_SHORT = 3,       /* the kernel has found no free ones */
    SHMVIEW_HUGE_UNSUPPORTED = 4, /* the kernel cannot populate memory (before 5.14) */
};

/* Which nodes the data comes from; 0: as the kernel has it, which is the node on which
 * the daemon runs while it commits the page. */
enum shmview_numa {
    SHMVIEW_NUMA_LOCAL = 1,       /* the node on which the creating thread runs */
    SHMVIEW_NUMA_INTERLEAVED = 2, /* all in turn, page by page */
    SHMVIEW_NUMA_NODE = 3,        /* the given one */
};

/* The highest number of a node. */
#define SHMVIEW_NODE_MAX 62

/* What a creator wants: member placement of struct shmview_create_options. Set
 * struct_bytes to sizeof. A member that is 0 has its default. */
struct shmview_placement {
    uint32_t struct_bytes;
    uint32_t huge; /* enum shmview_huge */
    uint32_t numa; /* enum shmview_numa */
    uint32_t node; /* of SHMVIEW_NUMA_NODE, at most SHMVIEW_NODE_MAX */
};

/* What a segment got when it was created. */
struct shmview_placed {
    uint32_t huge;         /* enum shmview_huge: what its creator wanted */
    uint32_t huge_by;      /* enum shmview_huge_by */
    uint32_t huge_missing; /* enum shmview_huge_missing */
    uint32_t numa;         /* enum shmview_numa: what its creator wanted */
    uint64_t huge_bytes;   /* of the data, in huge pages */
    /* Bit i: a sample of its pages has found node i. 0: its creator wanted no nodes, or
     * the daemon cannot find out. */
    uint64_t nodes;
};

/* Gets what the segment got when it was created. Does not ask the daemon. All members
 * are 0 for memory of the program and for segments whose creator wanted nothing. Does
 * not block. Any thread. Never fails. */
void shmview_placement_get(const struct shmview_segment *segment,
                           struct shmview_placed *ret_placed);

/* Maps every page that has one of the bytes [offset, offset + bytes) now instead of at
 * its first use: for writing if the segment is attached with SHMVIEW_WRITE, else for
 * reading. No byte changes. bytes may be 0. Like SHMVIEW_POPULATE, but for a part, and
 * with as many threads as call it: two threads that populate one half each take 0.6 of
 * the time of one, where two processors are idle. Where the kernel cannot populate
 * (before Linux 5.14), the call touches each page.
 *
 * Blocks while the kernel works: 0.3 s for each GiB of small pages. Does not ask the
 * daemon. Any thread, also of a forked child, and with or without the lock.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BOUNDS if the bytes are not all in the
 * segment, _NO_MEMORY if the kernel has none for page tables, or _SYSTEM, for instance
 * if another client has truncated the memory. */
int shmview_populate(struct shmview_segment *segment, uint64_t offset, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
