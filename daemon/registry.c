/* SPDX-License-Identifier: Apache-2.0 */
static _Thread_local int hash_failed;
#define uthash_nonfatal_oom(element) (hash_failed = 1)

#include "daemon/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void registry_init(struct registry *registry, const char *instance)
{
    *registry = (struct registry){0};
    snprintf(registry->instance, sizeof registry->instance, "%s", instance);
}

static void registry_free(struct registry *registry, struct segment *segment)
{
    if (segment->creator)
        LIST_REMOVE(segment, created);
    if (segment->named)
        HASH_DELETE(by_name, registry->by_name, segment);
    HASH_DELETE(by_id, registry->by_id, segment);
    segment_free(segment);
}

void registry_deinit(struct registry *registry)
{
    struct segment *s, *next;
    HASH_ITER (by_id, registry->by_id, s, next)
        registry_free(registry, s);
}

struct segment *registry_reserve(struct registry *registry, const char *name)
{
    if (registry_find(registry, name)) {
        errno = EEXIST;
        return NULL;
    }
    struct segment *s = calloc(1, sizeof *s);
    if (!s) {
        errno = ENOMEM;
        return NULL;
    }
    s->id = ++registry->last_id;
    s->named = true;
    snprintf(s->name, sizeof s->name, "%s", name);
    const char *i = registry->instance;
    snprintf(s->data.name, sizeof s->data.name, "/shmview.%s.%s", i, name);
    segment_object_name(s, i, "control", s->control.name);
    segment_object_name(s, i, "liveness", s->liveness.name);
    hash_failed = 0;
    HASH_ADD_KEYPTR(by_name, registry->by_name, s->name, strlen(s->name), s);
    if (hash_failed) {
        free(s);
        errno = ENOMEM;
        return NULL;
    }
    HASH_ADD(by_id, registry->by_id, id, sizeof s->id, s);
    if (hash_failed) {
        HASH_DELETE(by_name, registry->by_name, s);
        free(s);
        errno = ENOMEM;
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

void registry_remove(struct registry *registry, struct segment *segment)
{
    if (segment->n_attachments == 0) {
        registry_free(registry, segment);
        return;
    }
    if (segment->named) {
        HASH_DELETE(by_name, registry->by_name, segment);
        segment_unname(segment, registry->instance);
    }
}

void registry_release(struct registry *registry, struct segment *segment)
{
    if (segment->n_attachments == 0 && (!segment->named || segment->lifetime == SHMVIEW_ATTACHED))
        registry_free(registry, segment);
}
