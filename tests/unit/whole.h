/* SPDX-License-Identifier: Apache-2.0 */
/* Creates objects and segments in one call. The daemon reserves memory first and commits it in
 * steps. */
#ifndef UNIT_WHOLE_H
#define UNIT_WHOLE_H

#include "daemon/segments/segment.h"

/* Returns the result of object_promise() or object_create_promised(). */
static inline int whole_object(struct object *object, uint64_t bytes, const atomic_bool *cancel,
                               struct object_space *ret_space)
{
    int r = object_promise(object->kind, bytes, ret_space);
    return r ? r : object_create_promised(object, bytes, bytes, cancel);
}

/* Returns the result of the last segment_allocate_some(). */
static inline int whole_segment(struct segment *segment, const atomic_bool *cancel,
                                struct object_space *ret_space)
{
    uint64_t done = 0;
    int r;
    while ((r = segment_allocate_some(segment, cancel, &done, ret_space)) == ALLOCATED_PART)
        continue;
    return r;
}

#endif
