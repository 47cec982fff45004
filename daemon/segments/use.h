/* SPDX-License-Identifier: Apache-2.0 */
/* The state that only segments in use need: open descriptors, the mapped liveness object, and the
 * lists of attachments and watchers. A segment is in use while a client has attached it, and for a
 * while after that. Of a hundred thousand segments usually few are, so this state is not in struct
 * segment.
 *
 *   begun -> cached (a client attached or froze lately) -> not cached, attached -> freed
 *
 * The descriptors of the segments that were attached last stay open, so that the next attachment
 * need not open the objects again. The number of these segments is bounded (home.h), because the
 * daemon needs descriptors for connections, too. If it is exceeded, the segment that was attached
 * longest ago loses its descriptors. The mapping stays while a client is attached, because the
 * daemon needs it to announce a death, and that must not fail.
 *
 * This module also assigns the slots of the lock. It is the only one that changes the liveness
 * object after its creation. Everything here is used on the loop only, except what
 * segment_allocate_some() calls. */
#ifndef DAEMON_USE_H
#define DAEMON_USE_H

#include "daemon/segments/segment.h"

/* The descriptors of a segment in use, each of which is opened when it is needed first. Liveness is
 * opened read-only, because clients get this descriptor. */
enum use_descriptor {
    DATA_WRITE,
    DATA_READ,
    CONTROL_WRITE,
    LIVENESS_READ,
    N_USE_DESCRIPTORS
};

/* A segment has one of these or none. */
struct segment_use {
    struct segment *segment;
    int fds[N_USE_DESCRIPTORS]; /* -1: not open */
    bool cached;                /* in the list `recent` of the home; its descriptors may be open */
    unsigned n_watches;         /* the length of watchers */
    bool rings;                 /* in the list of ringing.c, which will wake its watchers */
    TAILQ_ENTRY(segment_use) ringing;
    TAILQ_ENTRY(segment_use) recent;
    struct shmview_liveness *live;    /* NULL: not mapped yet */
    const struct attachment *freezer; /* freezes the segment now; NULL: nobody does */
    LIST_HEAD(, attachment) watchers;
    LIST_HEAD(, attachment) attachments;
};

/* Makes sure that the segment has its struct segment_use. Returns 0 or -ENOMEM. */
int use_begin(struct segment *segment);

/* Closes the descriptors. */
void use_close(struct segment_use *use);
/* Closes the descriptors, takes the segment out of the list of recent ones, and frees use if no
 * client is attached. use may be NULL. */
void use_abandon(struct segment_use *use);

/* Like use_abandon(), for a segment whose objects are removed next: a thread closes the descriptors
 * of a small one (discard_soon()), and frees the memory with them. */
void use_discard(struct segment_use *use);

/* Makes this the segment that was attached last. If there are too many then, abandons the use of
 * the one that was attached longest ago; its attachments stay. */
void use_cache(struct segment_use *use);

/* Opens the object if it is not open. use_cache() must come before, unless use_close() comes soon;
 * otherwise the descriptor would not count among those that the daemon can spare. Returns a
 * descriptor, which use owns; or -errno. */
int use_open(struct segment_use *use, enum use_descriptor which);

/* Maps the liveness object, which must not be mapped yet. fd is open for reading and writing, and
 * stays the caller's. Returns 0 or -errno. */
int use_map_object(struct segment_use *use, int fd);

/* --- Attaching ----------------------------------------------------------- */

/* What the reply to an attachment passes to the client. */
struct segment_grip {
    int fds[N_SEGMENT_PARTS]; /* by enum segment_part; borrowed; -1: none */
    uint32_t slot;            /* SLOT_NONE if it has none */
    uint32_t generation;      /* of the slot */
};

/* Begins an attachment: opens the objects that `access` (enum shmview_access) needs, repairs them,
 * and takes a slot unless access is SHMVIEW_PEEK or the segment has no lock. The descriptors in
 * *ret are borrowed until another segment is attached, which may close them.
 *
 * Returns 0, and the caller owes segment_detach() or segment_abandon_attachment(); -ENOLCK if all
 * slots are taken; or -errno. A failure takes no slot. */
int segment_attach(struct segment *segment, int64_t access, struct segment_grip *ret);

/* Returns the size of a control object with n_slots slots, in whole pages. */
uint32_t segment_control_bytes(uint32_t n_slots);

/* Wakes all clients that wait for the lock, so that they look at it again. */
void segment_announce(struct segment *segment);

/* Ends an attachment. Gives its slot back unless it is SLOT_NONE. */
void segment_detach(struct segment *segment, uint32_t slot);

/* Gives a slot back: marks its user as dead in the liveness object, then wakes all clients that
 * wait for the lock. The next one takes the lock if that user held it. */
void segment_give_slot(struct segment *segment, uint32_t slot);

/* Marks all slots as ended in the liveness object, then wakes all waiters: the segment is removed
 * although clients that live have attached it, and no daemon will announce their deaths. Each of
 * them loses its attachment. One that is inside stays alone there. */
void segment_end_attachments(struct segment *segment);

/* Like segment_end_attachments(), for a segment of which this daemon has no record. fd is open for
 * reading and writing. Does nothing if it is not that of the liveness object of a segment. */
void use_end_unknown(int fd);

/* Writes the number of watchers to the liveness object. Clients that make a change ring the daemon
 * only if it is not 0. */
void segment_watches_changed(struct segment *segment);

/* Stores id, pid and command of a client that ended inside the lock in the liveness object, for the
 * next owner. Must be called before segment_give_slot(), because the next owner may go in right
 * after that. command must be printable. */
void segment_note_owner(struct segment *segment, uint32_t id, pid_t pid, const char command[16]);

/* Counts a death inside the lock in the liveness object, for people. */
void segment_owner_died(struct segment *segment);

/* Ends an attachment in this daemon only, because the daemon exits. The slot stays alive for the
 * client and the next daemon. */
void segment_abandon_attachment(struct segment *segment);

/* --- Restoring ----------------------------------------------------------- */

/* Called after segment_restore() for each attachment with a slot: the client keeps the slot.
 * Returns 0; -ESTALE if the slot has another generation, is dead, or was claimed before; or
 * -errno. */
int segment_claim_slot(struct segment *segment, uint32_t slot, uint32_t generation);

/* Called after all attachments of the segment were restored. Gives back the slots that none of them
 * has claimed; there are some if the earlier daemon died after it took a slot and before it wrote
 * the record. Then wakes all waiters, because that daemon may have marked a death and died before
 * it woke them. If no attachment has claimed a slot, the next one that takes a slot does all
 * this. */
void segment_restored(struct segment *segment);

/* Called after segment_claim_slot() for all attachments. Whether an earlier daemon has begun
 * segment_end_attachments(). */
bool segment_has_ended(const struct segment *segment);

/* Counts an attachment that an earlier daemon made. Returns 0, and the caller owes
 * segment_detach(); or -ENOMEM. */
int segment_restore_attachment(struct segment *segment);

#endif
