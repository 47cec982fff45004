/* SPDX-License-Identifier: Apache-2.0 */
/* One segment: its objects, its record in the registry, its layouts, and the slots of its lock.
 *
 *   reserved -> allocated -> removed -> freed
 *
 * A reserved segment has a name, which nobody else can take, and no objects. Requests do not find
 * it until it is allocated. A removed segment has lost its name, and is freed after its last
 * attachment. A segment that nobody has attached is freed as soon as it is removed.
 *
 * Clients write the data and the control object and can truncate both. Therefore the daemon never
 * maps these two; it uses pread() and pwrite(). The liveness object is mapped while the segment is
 * in use (use.h), because clients get it read-only.
 *
 * An instance may have a hundred thousand segments, most of them idle. So this struct has only the
 * state that an idle segment needs, and one string: its name, then its label if it has one. Names
 * of objects are computed from the name and the id when they are needed.
 *
 * Everything here is used on the loop only, except segment_allocate_some(). */
#ifndef DAEMON_SEGMENT_H
#define DAEMON_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <shmview/layout.h>
#include <shmview/shmview.h>

#include "daemon/base/table.h"
#include "daemon/memory/object.h"
#include "daemon/memory/placement.h"
#include "daemon/memory/slots.h"
#include "daemon/rights/access.h"
#include "daemon/segments/home.h"
#include "daemon/segments/layouts.h"
#include "daemon/store/store.h"

struct quota_user;
struct segment_use;

/* The committed size of a new control object. It has room for the first slots; use.c lets it grow.
 */
#define SEGMENT_CONTROL_BYTES 4096

/* How much memory a step of an allocation commits at most. It takes some 20 ms; then another
 * allocation may have its turn. */
#define SEGMENT_STEP_BYTES ((uint64_t)64 << 20)

/* The objects of a segment. A segment without a lock has only the first. */
enum segment_part {
    DATA,
    CONTROL,
    LIVENESS,
    N_SEGMENT_PARTS
};

/* Segments of lifetime "creator" that end with the same client. Its connection has the list; after
 * a lost connection the client has it (client.h), and after the client's death a departure. */
LIST_HEAD(created_segments, segment);

/* The registry (registry.h) owns all segments. Only the loop writes them, with one exception: until
 * a segment is allocated, a thread may run segment_allocate_some(), and then nothing else touches
 * the members that this function writes. */
struct segment {
    uint64_t id; /* no other segment of the instance gets it, not even under a later daemon */
    uint64_t size;
    struct segment_home *home;        /* borrowed */
    struct segment_use *use;          /* owned; NULL if nobody is attached or was lately */
    uint64_t device;                  /* of its objects, as stat() returns it */
    uint64_t inodes[N_SEGMENT_PARTS]; /* of its objects; 0 if there is no such object */
    const struct access *access;      /* of access_share(); NULL until permit.c has set it */
    struct placement *placement;      /* of its data, owned; NULL: its creator wanted none */
    struct quota_user *payer;         /* the user who is charged for it; NULL: nobody */
    uint32_t control_bytes;           /* of the control object, committed */
    uint32_t n_attachments;
    uid_t maker;         /* the user whose client has made the data object, if own */
    uint32_t phase_seen; /* the generation of the phase when phases.c looked last */
    uint8_t lifetime;    /* enum shmview_lifetime */
    bool lock;
    bool allocated;        /* false: the segment is only reserved */
    bool named;            /* it is found by name; false after its removal */
    bool has_creator : 1;  /* it is on a list of created_segments */
    bool has_label : 1;    /* it is in `name` after the NUL */
    bool own : 1;          /* its creator has made the data object (daemon/memory/own.h) */
    bool populate : 1;     /* its creator is going to map the data at once */
    bool departing : 1;    /* its creator is dead, and departure.c will remove it */
    bool sealed;           /* its objects are memfds; false: files in /dev/shm */
    bool unread;           /* the slots of an earlier daemon have not been read (use.c) */
    uint8_t phase_session; /* the session of phases.c that wrote phase_seen */
    struct slots slots;
    struct layouts layouts;
    struct store_holder holder; /* the process with which it ends, if has_creator */
    LIST_ENTRY(segment) created;
    struct table_link by_name; /* of the registry, while it is named */
    char name[];               /* stays after the removal, for the log and for events */
};

/* Returns a new segment, which has no objects and is in no table. The caller owes segment_free() or
 * segment_abandon(). Returns NULL if memory is short. home must outlive the segment. */
struct segment *segment_new(struct segment_home *home, uint64_t id, const char *name);
/* Like segment_new(), with a label; "" is none. */
struct segment *segment_new_labelled(struct segment_home *home, uint64_t id, const char *name,
                                     const char *label);

/* Returns the label of the segment, or "". */
static inline const char *segment_label(const struct segment *segment)
{
    return segment->has_label ? segment->name + strlen(segment->name) + 1 : "";
}

/* How far an allocation has come, if it has not failed. */
enum allocation {
    ALLOCATED,
    ALLOCATED_PART, /* the caller must call again */
};

/* Does one step of the allocation: it commits up to SEGMENT_STEP_BYTES of the data, and after the
 * last of them creates the control and the liveness object with their headers. *done is the memory
 * committed so far; the caller sets it to 0 before the first step. Blocks, and therefore runs on a
 * thread.
 *
 * Returns an enum allocation. After ALLOCATED the caller owes use_abandon() if it does not attach
 * the segment. Returns -ENOSPC with *ret_space filled; -EOPNOTSUPP if the segment must have huge
 * pages and gets too few, for the reason in segment->placement; -ECANCELED if *cancel became true;
 * or another -errno. Then no object and no promise of memory is left. */
int segment_allocate_some(struct segment *segment, const atomic_bool *cancel, uint64_t *done,
                          struct object_space *ret_space);

/* Allocates a small segment on the loop, in one step. The descriptors stay open, because the caller
 * attaches the segment at once. Returns ALLOCATED, or -errno like segment_allocate_some(). -EAGAIN
 * means that memory is short now and that discard.c may be freeing some: use
 * segment_allocate_some(), which waits for that. -ENOSPC means that the client's memory is gone
 * with the failure, so that there is no other attempt. */
int segment_allocate_now(struct segment *segment);

/* Gives a new segment its data object: fd, which own_check() has accepted with this status, of a
 * client of the user maker. Before segment_allocate_*(), which then allocate the lock only. Takes
 * over fd in any case. Returns 0, or -errno like sealed_take_over(). */
int segment_take_data(struct segment *segment, int fd, const struct stat *st, uid_t maker);

/* Removes the objects that exist. */
void segment_remove_objects(struct segment *segment);

/* Removes the objects and frees the segment, which may be NULL. Does not touch its record. Returns
 * NULL. */
struct segment *segment_free(struct segment *segment);
/* Frees the segment. The objects stay for the next daemon. */
void segment_abandon(struct segment *segment);

/* Writes the record of the segment to the registry. Returns 0 or -errno. */
int segment_keep(const struct segment *segment);

/* Gives the segment a copy of access. If the segment is allocated, also writes its record. Returns
 * 0, or -errno with the old access in place. */
int segment_set_access(struct segment *segment, const struct access *access);

/* Gives the data object the name of the id, so that another segment can have the name. If that
 * fails, removes the data object: clients keep what they have mapped, and no other client can
 * attach the segment. */
void segment_unname(struct segment *segment);

/* Renames the data object from the name of the segment to the name of the id. Recovery calls this
 * for a removed segment, because the earlier daemon may have died before it renamed the object.
 * Returns 0 or -errno. */
int segment_rename_data(const struct segment *segment);

/* Returns one object of the segment under its current name, for the functions of object.h. */
void segment_object(const struct segment *segment, enum segment_part part, struct object *ret);

/* Returns the size that the control object has if `committed` bytes of it are committed. A sealed
 * one cannot grow, so it has room for all slots from the start. */
uint64_t segment_control_size(const struct segment *segment, uint32_t committed);

/* Returns the header that an object of the segment begins with; bytes is its size. */
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

/* Returns the beginning of the control object of a new segment. All other words are 0. */
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

/* Adds a layout to the segment, to its control object, and to the registry. text is the layout as
 * JSON, n bytes with the NUL. The caller has checked the layout and charged n bytes for it. Returns
 * the index of the layout; or -errno, and the caller must refund them. */
int segment_add_layout(struct segment *segment, const char *name, const char *text, size_t n);

/* Writes the hashes of the names of all layouts to the control object, where clients look for them.
 * Returns 0 or -errno. */
int segment_publish_layouts(const struct segment *segment);

#endif
