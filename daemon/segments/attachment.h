/* SPDX-License-Identifier: Apache-2.0 */
/* An attachment: the right of one client to one segment, with one access.
 *
 *   new -> (watching) -> announced -> ended
 *
 * An attachment has descriptors in its client, a slot in the lock unless its access is peek, a
 * charge, and a record in the registry. Its end gives all of that back except the descriptors,
 * which the daemon cannot take from a process.
 *
 * The end has two parts. To announce it means to mark the slot as dead and to wake all waiters;
 * other clients may be waiting for the lock of the dead client. To end it means to delete the
 * record and perhaps the segment, which nobody waits for. A departure (daemon/requests/departure.h)
 * first does the first part for all attachments of a dead client.
 *
 * Everything here is used on the loop only. */
#ifndef DAEMON_ATTACHMENT_H
#define DAEMON_ATTACHMENT_H

#include <sys/queue.h>

#include "daemon/segments/registry.h"
#include "daemon/segments/use.h"

/* Only attachment.c creates and frees attachments. The list that `link` is in decides to whom an
 * attachment belongs: a connection, a client without a connection, or a departure. */
struct attachment {
    uint64_t id; /* unique in the instance, even across restarts */
    struct segment *segment;
    int64_t access; /* enum shmview_access */
    uint32_t slot;  /* SLOT_NONE if it has none */
    bool departed;  /* a departure has it and will end it */
    bool unclaimed; /* its client lives, but has not named it in a claim */
    bool announced; /* its end is announced; slot is SLOT_NONE */
    pid_t pid;
    uid_t uid;
    uint32_t generation;        /* of the slot */
    struct store_holder holder; /* the client, as in the record */
    struct quota_user *payer;   /* the user who is charged for it; NULL: nobody */
    int watch[2]; /* a socket pair: [0] for the client to read, [1] for the daemon; -1: none */
    struct table_link by_id; /* of home->attachments */
    struct attachments *of;  /* the list of its client; NULL: a departure has it */
    LIST_ENTRY(attachment) link;
    LIST_ENTRY(attachment) watcher; /* in the list of watchers of the segment, if it watches */
    LIST_ENTRY(attachment) sibling; /* in the list of all attachments of the segment */
};

/* The attachments of a client; a list of <sys/queue.h> with a count, because a client may have
 * thousands. It begins as zeros. */
struct attachments {
    struct attachment *lh_first;
    unsigned n;
};

/* Attaches the segment for holder, writes the record, and adds the attachment to list. The holder
 * may claim the attachment from a later daemon. payer was charged for one attachment, or is NULL; a
 * failure refunds it. The descriptors in *ret_grip are borrowed from the segment until another one
 * is attached.
 *
 * Returns 0, and the caller owes one of the functions below that end an attachment. Returns -ENOLCK
 * if all slots are taken, -ENOMEM, or -errno because an object cannot be opened or the record
 * cannot be written. */
int attachment_new(struct attachments *list, struct segment *segment, int64_t access,
                   const struct store_holder *holder, struct quota_user *payer,
                   struct attachment **ret, struct segment_grip *ret_grip);

/* Like attachment_new(), but for a record that an earlier daemon wrote. The segment must be
 * restored. If it is frozen, access write becomes read. Returns the attachment, or NULL if memory
 * is short. */
struct attachment *attachment_restore(struct attachments *list, struct segment *segment,
                                      const struct store_attachment *record,
                                      struct quota_user *payer);

/* Sets the access of an attachment to read, in its record too: its client has frozen the segment.
 * If the record cannot be written, logs it; a later daemon then reports the old access. */
void attachment_become_reader(struct attachment *attachment);

/* Like attachment_cancel(), but for an attachment that was announced by an event: adds the event
 * that it has ended. */
void attachment_retract(struct attachment *attachment);

/* Undoes attachment_new() without an event: gives back slot, record and charge, and frees the
 * attachment. Keeps the segment, whatever its lifetime. */
void attachment_cancel(struct attachment *attachment);

/* Frees the attachment because the daemon exits. Record and slot stay for the next daemon, and the
 * client continues to use the segment. */
void attachment_abandon(struct attachment *attachment);

/* Cancels the attachment, and removes the segment if nothing else keeps it. */
void attachment_end(struct registry *registry, struct attachment *attachment);

/* Like attachment_end(), but adds the event `detached`: the client has asked for it. */
void attachment_detached(struct registry *registry, struct attachment *attachment);

/* Like attachment_end(), for an attachment whose client did not detach it. Announces the end. */
void attachment_died(struct registry *registry, struct attachment *attachment);

/* Announces the end of the attachment: marks its slot as dead, wakes all waiters of the lock, and
 * adds events. For a dead client these report what it held; for an unclaimed attachment, that it
 * was detached. If the client ended inside the lock, first stores its id, pid and command in the
 * liveness object. Does nothing if that is done. The caller still owes attachment_died() or
 * attachment_detached(). */
void attachment_announce(struct attachment *attachment);

/* Announces at most ANNOUNCED_FIRST of the attachments of a process that is exiting. Call before
 * its connection is ended: other clients wait for these locks, and to end a connection takes a
 * dozen system calls. */
#define ANNOUNCED_FIRST 8
void attachments_announce_first(const struct attachments *list);

/* Gives the attachment a socket pair for changes, unless it has one. *ret_fd is the end that
 * becomes readable after a change; it is borrowed. A socket pair is used and not an eventfd,
 * because all holders of an eventfd share its O_NONBLOCK: one client could make the daemon's write
 * block. On a socket each send has MSG_DONTWAIT.
 *
 * Returns 0; -ENOLCK if the attachment has no slot; -EDQUOT if LIMIT_WATCHES attachments watch the
 * segment, or the user has used up a share of the last watches of the segment or of the daemon; or
 * -errno. */
int attachment_watch(struct attachment *attachment, int *ret_fd);

/* Makes the descriptor of each attachment that watches the segment readable. The segment must be in
 * use. Does not block. */
void attachment_ring(const struct segment *segment);

/* Moves an attachment from the list of a client to another one. */
void attachment_move(struct attachments *to, struct attachment *attachment);

/* Returns the attachment with that id in the list of a client, or NULL. Takes the same time for
 * long lists. */
struct attachment *attachment_find(const struct attachments *list, uint64_t id);

/* Returns the attachment whose client has this id in the lock of the segment, or NULL. */
const struct attachment *attachment_of_holder(const struct segment *segment, uint64_t id);

/* Returns an attachment in the list to the segment with the access write, or NULL. */
struct attachment *attachment_find_writer(const struct attachments *list,
                                          const struct segment *segment);

#endif
