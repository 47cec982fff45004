/* SPDX-License-Identifier: Apache-2.0 */
/* All segments of an instance: by name, and by id for those whose name is gone. */
#ifndef DAEMON_REGISTRY_H
#define DAEMON_REGISTRY_H

#include <stdint.h>

#include "daemon/segments/segment.h"

/* Zeroed is empty once home_init() has initialized its home. */
struct registry {
    struct segment_home home;
    struct segment *by_name;
    struct segment *by_id;
    uint64_t last_id;
    uint64_t allocated_bytes; /* of all segments */
    uint64_t removed_bytes;   /* of those among them whose name is gone */
};

/* Frees all segments; nobody may be attached any more. */
void registry_deinit(struct registry *registry);

/* Frees all segments; their objects and records stay for the next daemon. */
void registry_abandon(struct registry *registry);

/* Takes over what a record tells of. Returns the segment, whose objects are yet to be
 * looked at; or NULL with errno EEXIST or ENOMEM. */
struct segment *registry_restore(struct registry *registry, const struct store_segment *record);

/* Makes a segment that holds the name and has no objects yet. name is valid.
 * Returns it, or NULL with errno EEXIST or ENOMEM. */
struct segment *registry_reserve(struct registry *registry, const char *name);

/* Returns the segment of that name, allocated or not, or NULL. */
struct segment *registry_find(const struct registry *registry, const char *name);
struct segment *registry_find_id(const struct registry *registry, uint64_t id);

/* The segment, allocated or not, with the least id above that; NULL: there is none. */
struct segment *registry_next(const struct registry *registry, uint64_t id);

/* Takes the name away at once; the segment goes too if nobody is attached. by is who causes it. */
void registry_remove(struct registry *registry, struct segment *segment, struct actor by);

/* Called after an attachment of by ended: lets go what nothing keeps any more. */
void registry_release(struct registry *registry, struct segment *segment, struct actor by);

#endif
