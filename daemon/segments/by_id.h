/* SPDX-License-Identifier: Apache-2.0 */
/* Segments in the order of their ids. New ids grow, so a segment is added at the end, and a search
 * halves the list. A segment that is gone leaves a gap with its id; the list is closed up when half
 * of it are gaps. */
#ifndef DAEMON_BY_ID_H
#define DAEMON_BY_ID_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/segments/segment.h"

/* Zeroes are an empty list. */
struct by_id {
    uintptr_t *list; /* pointers to segments; a gap is an odd number, twice the id and 1 */
    size_t n, capacity, n_gaps;
};

/* Adds a segment, whose id must not be in the list. Returns 0 or -ENOMEM. */
int by_id_add(struct by_id *ids, struct segment *segment);

/* Removes a segment, which must be in the list. A list that becomes empty frees its memory. */
void by_id_remove(struct by_id *ids, const struct segment *segment);

/* Returns the segment with the id, or NULL. */
struct segment *by_id_find(const struct by_id *ids, uint64_t id);

/* Returns the segment with the lowest id above `id`, or NULL. */
struct segment *by_id_next(const struct by_id *ids, uint64_t id);

static inline size_t by_id_count(const struct by_id *ids)
{
    return ids->n - ids->n_gaps;
}

#endif
