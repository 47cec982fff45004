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
/* a table that cannot grow says so instead of ending the daemon */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "common/frame.h"
#include "common/wire.h"
#include "daemon/object.h"
#include "daemon/slots.h"
#include "daemon/store.h"

struct connection;

/* Descriptors of a segment's objects, opened when first wanted. -1: not open. */
enum segment_object {
    DATA_WRITE,
    DATA_READ,
    CONTROL,
    LIVENESS,
    N_SEGMENT_OBJECTS
};

struct segment {
    char name[LIMIT_NAME_BYTES + 1];
    uint64_t id;
    uint64_t size;
    uid_t owner;
    int64_t lifetime; /* enum shmview_lifetime */
    bool lock;
    bool allocated; /* until then nobody but its creator knows it */
    bool named;     /* found by name; false once removed */
    uint32_t n_attachments;
    struct object data, control, liveness;
    int fds[N_SEGMENT_OBJECTS]; /* all -1 unless cached */
    bool cached;                /* among the few whose descriptors are kept open */
    TAILQ_ENTRY(segment) recent;
    struct shmview_liveness *live; /* mapped while anybody is attached, and if cached */
    uint64_t control_bytes;        /* committed */
    struct slots slots;
    unsigned n_watches;          /* attachments that watch */
    struct wire_layout *layouts; /* strings and views owned */
    size_t n_layouts;
    LIST_HEAD(, attachment) watchers;
    bool has_creator;           /* lifetime "creator": is on somebody's list */
    struct store_holder holder; /* who that is */
    LIST_ENTRY(segment) created;
    struct store *store; /* where it is kept; NULL: nowhere */
    UT_hash_handle by_name, by_id;
};

/* Allocates the objects and writes their headers. Blocks; made to run off the
 * loop, where nothing else touches the segment. Returns 0, -ENOSPC with
 * *ret_space filled, -ECANCELED or another -errno; then nothing is left. */
int segment_allocate(struct segment *segment, const atomic_bool *cancel,
                     struct object_space *ret_space);

/* Removes the objects and frees the segment. Takes NULL. Returns NULL. */
struct segment *segment_free(struct segment *segment);
/* Frees it; the objects stay for the next daemon. */
void segment_leave(struct segment *segment);

/* After segment_restore(): whether slot is that of a user of this generation who is not known
 * to be dead. He keeps it. */
bool segment_claim_slot(struct segment *segment, uint32_t slot, uint32_t generation);

/* After that: slots that nobody claimed are those of users nobody knows: they are given
 * back, as by a death. Then ends an announcement of deaths that was cut short, wakes all who
 * wait, and lets go of the liveness object where nobody is attached. */
void segment_restored(struct segment *segment);

/* Takes over what a daemon left: the objects are there by their names, and are those that
 * device and inodes tell. Every slot is as the liveness object shows it; those of users
 * that died unnoticed are to be given back by the caller.
 * Returns 0; -ESTALE with *ret_why where something does not fit; or -errno. */
int segment_restore(struct segment *segment, const char **ret_why);

/* Writes its record. Returns 0 or -errno. */
int segment_keep(const struct segment *segment);

/* Takes the name away and gives the data object that of the id. */
void segment_unname(struct segment *segment, const char *instance);

/* The name of an object that goes by the segment's id. */
void segment_object_name(const struct segment *segment, const char *instance, const char *part,
                         object_name ret_name);

/* Descriptors are kept open for so many segments, those attached last; 0: 1. */
void segment_cache_limit(unsigned n_segments);

/* Opens the descriptors that access (enum shmview_access) is due, in the order
 * data, control, liveness, and takes a slot. *ret says which is which; *ret_fds is
 * borrowed until the next call.
 * Returns 0 and owes segment_detach(); -ENOSPC when every slot is taken, or
 * -errno; then nothing is changed. */
int segment_attach(struct segment *segment, int64_t access, struct wire_attachment *ret,
                   struct frame_descriptors *ret_fds);

/* Gives a slot back (WIRE_ABSENT: none): publishes the death of its user, whose
 * pid is named to the next owner of the lock, and wakes all who wait. */
void segment_detach(struct segment *segment, int64_t slot, pid_t pid);

/* The set of those who watch has changed: those who notify are to ask again. */
void segment_watches_changed(struct segment *segment);

/* Ends an attachment of a client that lives on: the daemon leaves, its id stays. */
void segment_forget(struct segment *segment);

/* Adds a copy of layout, and keeps it. Returns its index or -errno. Checked by the caller. */
int segment_add_layout(struct segment *segment, const struct wire_layout *layout);
/* The same for one that is kept already. */
int segment_restore_layout(struct segment *segment, const struct wire_layout *layout);

const struct wire_layout *segment_find_layout(const struct segment *segment, const char *name);

#endif
