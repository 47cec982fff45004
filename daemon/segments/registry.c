/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/segments/charge.h"
#include "daemon/segments/events.h"
#include "daemon/segments/use.h"

/* Takes a segment out of all tables and lists, and refunds its charges. */
static void forget(struct registry *registry, struct segment *segment)
{
    if (segment->has_creator)
        LIST_REMOVE(segment, created);
    if (segment->named)
        table_remove(&registry->by_name, &segment->by_name);
    by_id_remove(&registry->by_id, segment);
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
    uint64_t id = 0; /* a search from the beginning would pass all gaps again */
    for (struct segment *s; (s = registry_next(registry, id));) {
        id = s->id;
        forget(registry, s);
        segment_abandon(s);
    }
}

void registry_deinit(struct registry *registry)
{
    uint64_t id = 0;
    for (struct segment *s; (s = registry_next(registry, id));) {
        id = s->id;
        registry_free(registry, s, ACTOR_NONE);
    }
}

void registry_end_attachments(const struct registry *registry)
{
    uint64_t id = 0;
    for (struct segment *s; (s = registry_next(registry, id)); id = s->id)
        if (s->allocated) /* otherwise nobody has it, and a thread may work on it */
            segment_end_attachments(s);
}

static uint32_t hash_of(const char *name)
{
    return table_hash_bytes(name, strlen(name));
}

/* Makes s known by its id, and by its name if it has one. Returns 0; or -1 with errno ENOMEM. */
static int enter(struct registry *registry, struct segment *s)
{
    if (by_id_add(&registry->by_id, s)) {
        errno = ENOMEM;
        return -1;
    }
    if (s->named)
        table_add(&registry->by_name, &s->by_name, hash_of(s->name));
    return 0;
}

/* Returns 0, or -1 if memory is short. */
static int restore_placement(struct segment *s, const struct store_segment *record)
{
    const struct store_placement *p = &record->placement;
    if (!(record->flags & STORE_PLACED))
        return 0;
    s->placement = malloc(sizeof *s->placement);
    if (!s->placement)
        return -1;
    *s->placement = (struct placement){
        .huge = p->huge,
        .numa = p->numa,
        .by = p->by,
        .missing = p->missing,
        .node = p->node,
        .huge_bytes = p->huge_bytes,
        .nodes = p->nodes,
    };
    return 0;
}

struct segment *registry_restore(struct registry *registry, const struct store_segment *record)
{
    bool named = record->flags & STORE_NAMED;
    if (record->id > INT64_MAX || (named && registry_find(registry, record->name)) ||
        registry_find_id(registry, record->id)) {
        errno = EEXIST;
        return NULL;
    }
    struct segment *s =
        segment_new_labelled(&registry->home, record->id, record->name, record->label);
    if (!s)
        return NULL;
    s->size = record->size;
    s->lifetime = (uint8_t)record->lifetime;
    s->lock = record->flags & STORE_LOCK;
    s->sealed = record->flags & STORE_SEALED;
    s->own = record->flags & STORE_OWN;
    s->maker = s->own ? (uid_t)record->maker : 0;
    s->allocated = true;
    s->named = named;
    s->holder = record->creator;
    s->device = record->device;
    memcpy(s->inodes, record->inode, sizeof s->inodes);
    s->access = access_share(&record->access);
    if (!s->access || restore_placement(s, record) || enter(registry, s)) {
        access_unshare(s->access);
        free(s->placement);
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    registry->allocated_bytes += s->size;
    if (!s->named)
        registry->removed_bytes += s->size;
    return s;
}

struct segment *registry_reserve_labelled(struct registry *registry, const char *name,
                                          const char *label)
{
    if (registry_find(registry, name)) {
        errno = EEXIST;
        return NULL;
    }
    struct segment *s = segment_new_labelled(&registry->home, ++registry->last_id, name, label);
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

struct segment *registry_reserve(struct registry *registry, const char *name)
{
    return registry_reserve_labelled(registry, name, "");
}

struct segment *registry_find(const struct registry *registry, const char *name)
{
    struct table_link *l = table_first(&registry->by_name, hash_of(name));
    for (; l; l = table_next(l)) {
        struct segment *s = CONTAINER_OF(l, struct segment, by_name);
        if (strcmp(s->name, name) == 0)
            return s;
    }
    return NULL;
}

struct segment *registry_find_id(const struct registry *registry, uint64_t id)
{
    return by_id_find(&registry->by_id, id);
}

struct segment *registry_next(const struct registry *registry, uint64_t id)
{
    return by_id_next(&registry->by_id, id);
}

unsigned registry_count(const struct registry *registry)
{
    return (unsigned)by_id_count(&registry->by_id);
}

void registry_unname(struct registry *registry, struct segment *segment)
{
    registry->removed_bytes += segment->size;
    table_remove(&registry->by_name, &segment->by_name);
    segment->named = false;
    /* The record is written before the object is renamed. If the daemon dies in between, the next
     * one renames the object (segment_rename_data()). */
    int r = segment_keep(segment);
    if (r)
        log_error("the removal of segment '%s' cannot be recorded: %s", segment->name,
                  strerror(-r));
    segment_unname(segment);
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
        registry_unname(registry, segment);
    }
}

void registry_release(struct registry *registry, struct segment *segment, struct actor by)
{
    if (segment->n_attachments == 0 && (!segment->named || segment->lifetime == SHMVIEW_ATTACHED))
        registry_free(registry, segment, by);
}
