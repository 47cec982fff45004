/* SPDX-License-Identifier: Apache-2.0 */
/* Data of new segments that was made ahead (pool.h): a file with its memory, which is zeroed.
 *
 * Committing alone leaves the zeroing to the first access of each page, by the client, where it
 * takes 0.9 us for each. Writing zeros to new pages takes the maker 0.2 us.
 *
 * Only data of READY_LEAST_BYTES and more is made ahead: to rename a smaller object takes as long
 * as to create it. It has exactly the size that was wanted before, because the size of the object
 * is a promise. Sealed objects are not made ahead: each of them is passed to the keeper, which
 * takes longer. */
#ifndef DAEMON_READY_H
#define DAEMON_READY_H

#include "daemon/memory/pool.h"
#include "daemon/segments/segment.h"

/* The smallest data that is made ahead. The kernel needs 20 us to commit and zero it. */
#define READY_LEAST_BYTES ((uint64_t)16 << 10)

/* Makes the objects of the pool. */
extern const struct pool_maker ready_maker;

/* Gives a reserved segment, whose size and name are set, data that was made ahead, if there is any
 * and if the creator wants no other memory than usual. The allocation then makes only the lock
 * (segment_allocate_some()). Loop only. */
void ready_give(struct segment *segment);

#endif
