/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment needs while anybody is attached, or was lately: of a hundred thousand
 * segments that is true of few. */
#ifndef DAEMON_USE_H
#define DAEMON_USE_H

#include "daemon/segments/segment.h"

/* Opened when first wanted. */
enum use_descriptor {
    DATA_WRITE,
    DATA_READ,
    CONTROL_WRITE,
    LIVENESS_READ,
    N_USE_DESCRIPTORS
};

struct segment_use {
    struct segment *segment;
    int fds[N_USE_DESCRIPTORS]; /* -1: not open */
    bool cached;                /* among the few whose descriptors are kept open */
    unsigned n_watches;         /* attachments that watch */
    bool rings;                 /* its watchers are about to be woken */
    TAILQ_ENTRY(segment_use) ringing;
    TAILQ_ENTRY(segment_use) recent;
    struct shmview_liveness *live; /* NULL: nobody has asked for a slot yet */
    LIST_HEAD(, attachment) watchers;
    LIST_HEAD(, attachment) attachments;
};

/* Gives the segment one if it has none. Returns 0, or -ENOMEM. */
int use_begin(struct segment *segment);

/* Closes the descriptors. */
void use_close(struct segment_use *use);
/* Closes the descriptors, and frees it where nobody is attached. Takes NULL. */
void use_abandon(struct segment_use *use);

/* Returns a borrowed descriptor or -errno. */
int use_open(struct segment_use *use, enum use_descriptor which);

/* Maps the liveness object, which is not mapped yet; fd, which stays the caller's, is open for
 * writing. Returns 0 or -errno. */
int use_map_object(struct segment_use *use, int fd);

/* --- Attaching ----------------------------------------------------------- */

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
void segment_abandon_attachment(struct segment *segment);

/* --- Restoring ----------------------------------------------------------- */

/* After segment_restore(): slot is that of a user of this generation, who keeps it. Returns 0;
 * -ESTALE if it is not, or he is known to be dead; or -errno. */
int segment_claim_slot(struct segment *segment, uint32_t slot, uint32_t generation);

/* After that: slots that nobody claimed are those of users nobody knows: they are given
 * back, as by a death. Then ends an announcement of deaths that was cut short, and wakes all
 * who wait. Where nobody is attached this is done when somebody attaches. */
void segment_restored(struct segment *segment);

/* Takes over an attachment. Returns 0 and owes segment_detach(), or -ENOMEM. */
int segment_restore_attachment(struct segment *segment);

#endif
