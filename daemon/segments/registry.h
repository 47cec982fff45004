/* SPDX-License-Identifier: Apache-2.0 */
/* All segments of an instance, found by name and by id. A removed segment has lost its name and is
 * found by id only, until its last attachment ends.
 *
 * A name is taken when a creation begins, and before the memory of the segment is committed. Thus
 * of two creations of one name the second one fails at once. Until the first one is complete,
 * requests do not see the segment (request.h). */
#ifndef DAEMON_REGISTRY_H
#define DAEMON_REGISTRY_H

#include <stdint.h>

#include "daemon/segments/by_id.h"
#include "daemon/segments/segment.h"

/* Owns all segments. It is empty when it is zeroed and home_init() was called for its home. */
struct registry {
    struct segment_home home;
    struct table by_name;
    struct by_id by_id;
    uint64_t last_id;         /* the highest id that a segment has had */
    uint64_t allocated_bytes; /* the sizes of all allocated segments together */
    uint64_t removed_bytes;   /* the part of these that belongs to removed segments */
};

/* Removes all segments with their objects and records. No client may be attached. */
void registry_deinit(struct registry *registry);

/* Ends the attachments of all segments. Called before connections are closed and before
 * registry_deinit(), so that a client learns of it before it misses its daemon. */
void registry_end_attachments(const struct registry *registry);

/* Frees all segments. Their objects and records stay for the next daemon. */
void registry_abandon(struct registry *registry);

/* Adds the segment of a record that an earlier daemon wrote. The caller must check its objects by
 * segment_restore(), and charge its owner. Returns the segment, which the registry owns; or NULL
 * with errno EEXIST or ENOMEM. */
struct segment *registry_restore(struct registry *registry, const struct store_segment *record);

/* Adds a segment that has a name and no objects, with the next id. name must be valid. Returns the
 * segment, which the registry owns; or NULL with errno EEXIST or ENOMEM. */
struct segment *registry_reserve(struct registry *registry, const char *name);
/* Like registry_reserve(), with a label, which must be valid; "" is none. */
struct segment *registry_reserve_labelled(struct registry *registry, const char *name,
                                          const char *label);

/* Return the segment with that name or id, whether it is allocated or only reserved; or NULL. */
struct segment *registry_find(const struct registry *registry, const char *name);
struct segment *registry_find_id(const struct registry *registry, uint64_t id);

/* Returns the segment with the lowest id above `id`, allocated or not; or NULL. For callers that go
 * through all segments in several turns, while segments come and go. */
struct segment *registry_next(const struct registry *registry, uint64_t id);

/* Returns how many segments there are, reserved ones and removed ones among them. */
unsigned registry_count(const struct registry *registry);

/* Removes the name at once, and the segment itself if no client is attached. `by` is the process
 * that causes it, for the event. A segment that was only reserved is freed without an event. */
void registry_remove(struct registry *registry, struct segment *segment, struct actor by);

/* Removes the name alone, without an event. A failure to record that is logged. */
void registry_unname(struct registry *registry, struct segment *segment);

/* Called after an attachment of `by` has ended. Frees the segment if that was the last attachment,
 * and if the segment is removed or has the lifetime "attached". */
void registry_release(struct registry *registry, struct segment *segment, struct actor by);

#endif
