/* SPDX-License-Identifier: Apache-2.0 */
/* One segment: its objects, its layouts, the slots of its lock.
 *
 *   new -> allocated -> named, attached ... -> unnamed -> freed
 *
 * Data and control are written by clients: the daemon never maps them once they
 * are handed out. The liveness object is the daemon's own; it is mapped while
 * anybody is attached. */
#ifndef DAEMON_SEGMENT_H
#define DAEMON_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <shmview/layout.h>
#include <shmview/shmview.h>
/* a table that cannot grow says so instead of ending the daemon */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "daemon/memory/object.h"
#include "daemon/memory/slots.h"
#include "daemon/rights/access.h"
#include "daemon/segments/home.h"
#include "daemon/segments/layouts.h"
#include "daemon/store/store.h"

struct quota_user;
struct segment_use;

/* Of a control object without slots. */
#define SEGMENT_CONTROL_BYTES 4096

/* Committed before another allocation may have its turn: some 20 ms. */
#define SEGMENT_STEP_BYTES ((uint64_t)64 << 20)

enum segment_part {
    DATA,
    CONTROL,
    LIVENESS,
    N_SEGMENT_PARTS
};

LIST_HEAD(created_segments, segment);

struct segment {
    uint64_t id;
    uint64_t size;
    struct segment_home *home;
    struct segment_use *use; /* NULL: nobody is attached, or was lately */
    uint64_t device;
    uint64_t inodes[N_SEGMENT_PARTS]; /* of its objects; 0: there is none */
    const struct access *access;      /* shared: whose it is, who else may use it */
    struct quota_user *payer;         /* who is charged for it; NULL: nobody */
    uint32_t control_bytes;           /* committed */
    uint32_t n_attachments;
    uint32_t phase_seen; /* generation, when phases.c looked last */
    uint8_t lifetime;    /* enum shmview_lifetime */
    bool lock;
    bool allocated;        /* until then nobody but its creator knows it */
    bool named;            /* found by name; false once removed */
    bool has_creator;      /* lifetime "creator": is on somebody's list */
    bool departing;        /* its creator is dead, and it is about to go */
    bool unread;           /* its slots are yet to be read from the liveness object */
    uint8_t phase_session; /* when that was */
    struct slots slots;
    struct layouts layouts;
    struct store_holder holder; /* the creator, if it has one */
    LIST_ENTRY(segment) created;
    UT_hash_handle by_name, by_id;
    char name[];
};

/* Returns a segment without objects, or NULL: memory is short. home must outlive it. */
struct segment *segment_new(struct segment_home *home, uint64_t id, const char *name);

/* How far an allocation has come, unless it failed. */
enum allocation {
    ALLOCATED,
    ALLOCATED_PART, /* there are more steps */
};

/* Allocates the objects and writes their headers, in steps of SEGMENT_STEP_BYTES at most. *done is
 * 0 before the first. Blocks; made to run off the loop, where nothing else touches the segment.
 * Returns an enum allocation, and after ALLOCATED its use is the caller's to end where nobody
 * attaches; -ENOSPC with *ret_space filled, -ECANCELED or another -errno; then nothing is left. */
int segment_allocate_some(struct segment *segment, const atomic_bool *cancel, uint64_t *done,
                          struct object_space *ret_space);

/* The same on the loop, for a small one that is attached at once: its descriptors stay open.
 * Returns ALLOCATED, or an error: -EAGAIN where what there is seems not to be enough, and others
 * must be waited for. */
int segment_allocate_now(struct segment *segment);

/* Removes those of its objects that there are. */
void segment_remove_objects(struct segment *segment);

/* Removes the objects and frees the segment. Takes NULL. Returns NULL. */
struct segment *segment_free(struct segment *segment);
/* Frees it; the objects stay for the next daemon. */
void segment_abandon(struct segment *segment);

/* Writes its record. Returns 0 or -errno. */
int segment_keep(const struct segment *segment);

/* Gives it a copy of access, and keeps that if it is allocated. Returns 0 or -errno; then it
 * is as it was. */
int segment_set_access(struct segment *segment, const struct access *access);

/* Takes the name away and gives the data object that of the id. */
void segment_unname(struct segment *segment);

/* Gives the data object the name of the id, if it still has that of the segment. */
int segment_rename_data(const struct segment *segment);

/* One of its objects, under the name that it has now. */
void segment_object(const struct segment *segment, enum segment_part part, struct object *ret);

/* What an object of the segment begins with. */
static inline struct shmview_object_header segment_header(const struct segment *segment,
                                                          uint32_t magic, size_t bytes)
{
    return (struct shmview_object_header){
        .magic = magic,
        .version = SHMVIEW_LAYOUT_VERSION,
        .header_bytes = (uint32_t)bytes,
        .segment_id = segment->id,
    };
}

/* What its control object begins with. */
static inline void segment_control_header(const struct segment *segment,
                                          struct shmview_control *ret)
{
    *ret = (struct shmview_control){
        .header = segment_header(segment, SHMVIEW_CONTROL_MAGIC, sizeof *ret),
        .slots_offset = sizeof *ret,
        .slot_bytes = sizeof(struct shmview_slot),
    };
}

/* --- segment_layouts.c ---------------------------------------------------- */

/* Adds a layout as layouts_add() does, publishes and keeps it. text ends with a NUL, which n
 * counts. Returns the index of the layout or -errno. The caller has checked the layout, and charged
 * n bytes for it. */
int segment_add_layout(struct segment *segment, const char *name, const char *text, size_t n);

/* Lets clients find the layouts that there are in the control object. Returns 0 or -errno. */
int segment_publish_layouts(const struct segment *segment);

#endif
