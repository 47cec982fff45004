/* SPDX-License-Identifier: Apache-2.0 */
/* By default uthash ends the process if it cannot grow a table. With this it sets a flag instead,
 * and the creation is refused. */
static _Thread_local int hash_failed;
#define uthash_nonfatal_oom(element) (hash_failed = 1)

#include "daemon/segments/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/segments/charge.h"
#include "daemon/segments/events.h"

/* Takes a segment out of all tables and lists, and refunds its charges. */
static void forget(struct registry *registry, struct segment *segment)
{
    if (segment->has_creator)
        LIST_REMOVE(segment, created);
    if (segment->named)
        HASH_DELETE(by_name, registry->by_name, segment);
    HASH_DELETE(by_id, registry->by_id, segment);
    charge_refund(segment);
}

/* Removes a segment that no client has attached: record, objects, and the struct. */
static void registry_free(struct registry *registry, struct segment *segment, struct actor by)
{
    /* The record goes first. If the daemon dies in between, the next one finds objects without a
     * record and removes them. In the other order it would report the segment as lost. */
    int r = segment->allocated ? store_delete_segment(registry->home.store, segment->id) : 0;
    if (r)
        log_error("the record of segment '%s' cannot be deleted: %s", segment->name, strerror(-r));
    if (segment->allocated && segment->named)
        events_add(&registry->home.events, SHMVIEW_EVENT_REMOVED, segment, by);
    if (segment->allocated)
        registry->allocated_bytes -= segment->size;
    if (segment->allocated && !segment->named)
        registry->removed_bytes -= segment->size;
    forget(registry, segment);
    segment_free(segment);
}

void registry_abandon(struct registry *registry)
{
    struct segment *s, *next;
    HASH_ITER (by_id, registry->by_id, s, next) {
        forget(registry, s);
        segment_abandon(s);
    }
}

void registry_deinit(struct registry *registry)
{
    struct segment *s, *next;
    HASH_ITER (by_id, registry->by_id, s, next)
        registry_free(registry, s, ACTOR_NONE);
}

/* Adds s to both tables; its name and id must be set. Returns 0; or -1 with errno ENOMEM, and s is
 * in no table. */
static int enter(struct registry *registry, struct segment *s)
{
    errno = ENOMEM;
    hash_failed = 0;
    if (s->named)
        HASH_ADD_KEYPTR(by_name, registry->by_name, s->name, strlen(s->name), s);
    if (hash_failed)
        return -1;
    HASH_ADD(by_id, registry->by_id, id, sizeof s->id, s);
    if (!hash_failed)
        return 0;
    if (s->named)
        HASH_DELETE(by_name, registry->by_name, s);
    return -1;
}

struct segment *registry_restore(struct registry *registry, const struct store_segment *record)
{
    bool named = record->flags & STORE_NAMED;
    if ((named && registry_find(registry, record->name)) ||
        registry_find_id(registry, record->id)) {
        errno = EEXIST;
        return NULL;
    }
    struct segment *s = segment_new(&registry->home, record->id, record->name);
    if (!s)
        return NULL;
    s->size = record->size;
    s->lifetime = (uint8_t)record->lifetime;
    s->lock = record->flags & STORE_LOCK;
    s->allocated = true;
    s->named = named;
    s->holder = record->creator;
    s->device = record->device;
    memcpy(s->inodes, record->inode, sizeof s->inodes);
    s->access = access_share(&record->access);
    if (!s->access || enter(registry, s)) {
        access_unshare(s->access);
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    registry->allocated_bytes += s->size;
    if (!s->named)
        registry->removed_bytes += s->size;
    return s;
}

struct segment *registry_reserve(struct registry *registry, const char *name)
{
    if (registry_find(registry, name)) {
        errno = EEXIST;
        return NULL;
    }
    struct segment *s = segment_new(&registry->home, ++registry->last_id, name);
    if (!s) {
        errno = ENOMEM;
        return NULL;
    }
    s->named = true;
    if (enter(registry, s)) {
        free(s);
        return NULL;
    }
    return s;
}

struct segment *registry_find(const struct registry *registry, const char *name)
{
    struct segment *s;
    HASH_FIND(by_name, registry->by_name, name, strlen(name), s);
    return s;
}

struct segment *registry_find_id(const struct registry *registry, uint64_t id)
{
    struct segment *s;
    HASH_FIND(by_id, registry->by_id, &id, sizeof id, s);
    return s;
}

/* uthash keeps elements in the order in which they were added. That is the order of the ids: new
 * ids grow, and recovery adds the records in their order. */
struct segment *registry_next(const struct registry *registry, uint64_t id)
{
    struct segment *s = registry_find_id(registry, id);
    if (s)
        return s->by_id.next;
    /* That segment was freed since the last turn. Look for one with an id shortly below it before
     * the slow search through all segments. */
    for (uint64_t near = id; id && near > 0 && id - near < 1000;)
        if ((s = registry_find_id(registry, --near)))
            return s->by_id.next;
    for (s = registry->by_id; s && s->id <= id; s = s->by_id.next)
        ;
    return s;
}

void registry_remove(struct registry *registry, struct segment *segment, struct actor by)
{
    if (segment->n_attachments == 0) {
        registry_free(registry, segment, by);
        return;
    }
    if (segment->named) {
        events_add(&registry->home.events, SHMVIEW_EVENT_REMOVED, segment, by)->attachments =
            segment->n_attachments;
        registry->removed_bytes += segment->size;
        HASH_DELETE(by_name, registry->by_name, segment);
        segment->named = false;
        /* The record is written before the object is renamed. If the daemon dies in between, the
         * next one renames the object (segment_rename_data()). */
        int r = segment_keep(segment);
        if (r)
            log_error("the removal of segment '%s' cannot be recorded: %s", segment->name,
                      strerror(-r));
        segment_unname(segment);
    }
}

void registry_release(struct registry *registry, struct segment *segment, struct actor by)
{
    if (segment->n_attachments == 0 && (!segment->named || segment->lifetime == SHMVIEW_ATTACHED))
        registry_free(registry, segment, by);
}
