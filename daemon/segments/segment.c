/* SPDX-License-Identifier: Apache-2.0 */
/* The objects of a segment have names by which the next daemon finds them. The data object has the
 * name of the segment, so that a person can find it in /dev/shm. The other two have the id, which
 * never changes. When the segment is removed, the data object gets a name of that kind, too. */
#include "daemon/segments/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/segments/use.h"

struct segment *segment_new_labelled(struct segment_home *home, uint64_t id, const char *name,
                                     const char *label)
{
    size_t n = strlen(name) + 1, more = label[0] ? strlen(label) + 1 : 0;
    struct segment *s = calloc(1, sizeof *s + n + more);
    if (!s)
        return NULL;
    s->home = home;
    s->id = id;
    s->has_label = more > 0;
    memcpy(s->name, name, n);
    memcpy(s->name + n, label, more);
    return s;
}

struct segment *segment_new(struct segment_home *home, uint64_t id, const char *name)
{
    return segment_new_labelled(home, id, name, "");
}

/* --- Objects ------------------------------------------------------------- */

/* Names of segments have no '+' (common/base/name.h), so the two kinds of names never collide. */
static void name_by_id(const struct segment *segment, enum segment_part part, object_name ret)
{
    static const char *const parts[] = {"data", "control", "liveness"};
    snprintf(ret, sizeof(object_name), "+%" PRIu64 ".%s", segment->id, parts[part]);
}

static void name_by_name(const struct segment *segment, object_name ret)
{
    snprintf(ret, sizeof(object_name), "%s", segment->name);
}

void segment_object(const struct segment *segment, enum segment_part part, struct object *ret)
{
    ret->device = segment->device;
    ret->inode = segment->inodes[part];
    ret->own = segment->own && part == DATA;
    ret->maker = segment->maker;
    ret->placement = part == DATA ? segment->placement : NULL;
    ret->zeroed = part == DATA && segment->populate;
    ret->kind = !segment->sealed ? OBJECT_FILE : part == DATA ? OBJECT_SEALED : OBJECT_SEALED_FULLY;
    if (part == DATA && segment->named)
        name_by_name(segment, ret->name);
    else
        name_by_id(segment, part, ret->name);
}

void segment_remove_objects(struct segment *segment)
{
    struct object object;
    for (int part = 0; part < N_SEGMENT_PARTS; part++) {
        if (segment->inodes[part] == 0)
            continue;
        segment_object(segment, (enum segment_part)part, &object);
        object_remove(&object);
        segment->inodes[part] = 0;
    }
}

void segment_abandon(struct segment *segment)
{
    segment->n_attachments = 0;
    use_abandon(segment->use);
    layouts_deinit(&segment->layouts);
    slots_deinit(&segment->slots);
    access_unshare(segment->access);
    free(segment->placement);
    free(segment);
}

struct segment *segment_free(struct segment *segment)
{
    if (!segment)
        return NULL;
    /* A large object has another descriptor, with which a thread frees it (object_remove()). A
     * sealed one has no name that could be removed: it is gone when its descriptors are closed. */
    segment->n_attachments = 0;
    if (segment->sealed)
        use_abandon(segment->use);
    else
        use_discard(segment->use);
    segment_remove_objects(segment);
    segment_abandon(segment);
    return NULL;
}

int segment_rename_data(const struct segment *segment)
{
    struct object object;
    object_name name;
    segment_object(segment, DATA, &object);
    name_by_name(segment, object.name);
    name_by_id(segment, DATA, name);
    return object_rename(&object, name);
}

void segment_unname(struct segment *segment)
{
    if (segment_rename_data(segment)) {
        /* The object would keep the name of a segment that another client may create. */
        struct object object;
        segment_object(segment, DATA, &object);
        name_by_name(segment, object.name);
        object_remove(&object);
        segment->inodes[DATA] = 0;
        segment_keep(segment);
    }
    segment->named = false;
}

int segment_keep(const struct segment *segment)
{
    struct store_segment record = {
        .id = segment->id,
        .size = segment->size,
        .device = segment->device,
        .inode = {segment->inodes[DATA], segment->inodes[CONTROL], segment->inodes[LIVENESS]},
        .maker = segment->maker,
        .lifetime = segment->lifetime,
        .flags = (segment->lock ? STORE_LOCK : 0) | (segment->named ? STORE_NAMED : 0) |
                 (segment->sealed ? STORE_SEALED : 0) | (segment->own ? STORE_OWN : 0) |
                 (segment->placement ? STORE_PLACED : 0),
    };
    if (segment->placement)
        record.placement = (struct store_placement){
            .huge = segment->placement->huge,
            .numa = segment->placement->numa,
            .by = segment->placement->by,
            .missing = segment->placement->missing,
            .node = segment->placement->node,
            .huge_bytes = segment->placement->huge_bytes,
            .nodes = segment->placement->nodes,
        };
    if (segment->access)
        record.access = *segment->access;
    if (segment->has_creator)
        record.creator = segment->holder;
    strcpy(record.name, segment->name);
    strcpy(record.label, segment_label(segment));
    return store_put_segment(segment->home->store, &record);
}

/* The new access is in place before the record is written, because segment_keep() reads it from the
 * segment. */
int segment_set_access(struct segment *segment, const struct access *access)
{
    const struct access *old = segment->access, *new = access_share(access);
    if (!new)
        return -ENOMEM;
    segment->access = new;
    int r = segment->allocated ? segment_keep(segment) : 0;
    if (r)
        segment->access = old;
    access_unshare(r ? new : old);
    return r;
}
