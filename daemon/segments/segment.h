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

/* Allocates the objects and writes their headers, in steps of SEGMENT_STEP_BYTES at most. *done is
 * 0 before the first. Blocks; made to run off the loop, where nothing else touches the segment.
 * Returns 1: call it again; 0, and its use is the caller's to end where nobody attaches; -ENOSPC
 * with *ret_space filled, -ECANCELED or another -errno; then nothing is left. */
int segment_allocate_some(struct segment *segment, const atomic_bool *cancel, uint64_t *done,
                          struct object_space *ret_space);

/* The same on the loop, for a small one that is attached at once: its descriptors stay open.
 * Returns -EAGAIN where what there is seems not to be enough, and others must be waited for. */
int segment_allocate_now(struct segment *segment);

/* Removes those of its objects that there are. */
void segment_remove_objects(struct segment *segment);

/* Removes the objects and frees the segment. Takes NULL. Returns NULL. */
struct segment *segment_free(struct segment *segment);
/* Frees it; the objects stay for the next daemon. */
void segment_leave(struct segment *segment);

/* After segment_restore(): slot is that of a user of this generation, who keeps it. Returns 0;
 * -ESTALE if it is not, or he is known to be dead; or -errno. */
int segment_claim_slot(struct segment *segment, uint32_t slot, uint32_t generation);

/* After that: slots that nobody claimed are those of users nobody knows: they are given
 * back, as by a death. Then ends an announcement of deaths that was cut short, and wakes all
 * who wait. Where nobody is attached this is done when somebody attaches. */
void segment_restored(struct segment *segment);

/* Takes over an attachment. Returns 0 and owes segment_detach(), or -ENOMEM. */
int segment_restore_attachment(struct segment *segment);

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

/* What a client needs to use a segment. */
struct segment_grip {
    int fds[N_SEGMENT_PARTS]; /* by enum segment_part; borrowed from the segment, -1: none */
    uint32_t slot;            /* or SLOT_NONE */
    uint32_t generation;      /* of the slot */
};

/* Opens the objects that access (enum shmview_access) is due, and takes a slot. The descriptors of
 * *ret are borrowed until the next call. Returns 0 and owes segment_detach(); -ENOLCK if every slot
 * is taken, or -errno; then nothing is changed. */
int segment_attach(struct segment *segment, int64_t access, struct segment_grip *ret);

/* What its control object begins with. */
void segment_control_header(const struct segment *segment, struct shmview_control *ret);

/* The size of a control object with so many slots. */
uint32_t segment_control_bytes(uint32_t n_slots);

/* Wakes all who wait for the lock, to look again. */
void segment_announce(struct segment *segment);

/* Gives a slot back (SLOT_NONE: none): publishes the end of its user, and wakes all that wait. */
void segment_detach(struct segment *segment, uint32_t slot);

/* The part of segment_detach() that others wait for: gives a slot back. */
void segment_give_slot(struct segment *segment, uint32_t slot);

/* The set of those who watch has changed: those who notify are to ask again. */
void segment_watches_changed(struct segment *segment);

/* Before segment_give_slot(), where that user ended inside the lock: keeps its id, pid and command
 * for the next owner. The command is printable. */
void segment_note_owner(struct segment *segment, uint32_t id, pid_t pid, const char command[16]);

/* Counts a death inside the lock. */
void segment_owner_died(struct segment *segment);

/* Ends an attachment of a client that lives on: the daemon leaves, its id stays. */
void segment_forget(struct segment *segment);

/* --- segment_layouts.c ---------------------------------------------------- */

/* Adds a layout as layouts_add() does, publishes and keeps it. text ends with a NUL, which n
 * counts. Returns the index of the layout or -errno. The caller has checked the layout, and charged
 * n bytes for it. */
int segment_add_layout(struct segment *segment, const char *name, const char *text, size_t n);

/* Lets clients find the layouts that there are in the control object. Returns 0 or -errno. */
int segment_publish_layouts(const struct segment *segment);

#endif
