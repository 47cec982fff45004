/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/placement.h - how the memory of a segment reaches the page table of a process.
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
