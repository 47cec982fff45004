/* SPDX-License-Identifier: Apache-2.0 */
/* One connection's right to one segment. Its end gives everything back. */
#ifndef DAEMON_ATTACHMENT_H
#define DAEMON_ATTACHMENT_H

#include <sys/queue.h>

#include "daemon/segments/registry.h"
#include "daemon/segments/use.h"

struct attachment {
    uint64_t id;
    struct segment *segment;
    int64_t access; /* enum shmview_access */
    uint32_t slot;  /* or SLOT_NONE */
    bool departed;  /* it is about to end: its client is dead, or it is unclaimed */
    bool unclaimed; /* its client lives, and has not named it in a claim */
    bool announced; /* its end was told; it has no slot any more */
    pid_t pid;
    uid_t uid;
    uint32_t generation;        /* of the slot */
    struct store_holder holder; /* as it is kept */
    struct quota_user *payer;   /* who is charged for it; NULL: nobody */
    int watch[2];               /* socket pair for changes, or -1: to read from, to write to */
    LIST_ENTRY(attachment) link;
    LIST_ENTRY(attachment) watcher; /* of the segment, if it watches */
    LIST_ENTRY(attachment) sibling; /* of the segment */
};
LIST_HEAD(attachments, attachment);

/* Attaches segment for holder, who may claim the attachment from another daemon, and adds it to
 * list. payer has been charged for it, and may be NULL; attachment_new() refunds that if it fails.
 * *ret_grip borrows from the segment. Returns 0 and owes attachment_end(); or what segment_attach()
 * returns, or -ENOMEM, or -errno because the attachment cannot be kept in the store. */
int attachment_new(struct attachments *list, struct segment *segment, int64_t access,
                   const struct store_holder *holder, struct quota_user *payer,
                   struct attachment **ret, struct segment_grip *ret_grip);

/* Like attachment_new(), for an attachment that is in the store. The segment was restored. Returns
 * the attachment or NULL: memory is short. */
struct attachment *attachment_restore(struct attachments *list, struct segment *segment,
                                      const struct store_attachment *record,
                                      struct quota_user *payer);

/* Undoes attachment_new() after others have heard of it. */
void attachment_retract(struct attachment *attachment);

/* Undoes attachment_new(); the segment lives on whatever its lifetime. */
void attachment_cancel(struct attachment *attachment);

/* Frees it without a word to anybody: the daemon leaves, the client lives on. */
void attachment_abandon(struct attachment *attachment);

/* Ends it, and its segment's life where nothing else keeps it. */
void attachment_end(struct registry *registry, struct attachment *attachment);

/* The same at the client's wish. */
void attachment_detached(struct registry *registry, struct attachment *attachment);

/* The same for one that its client has not detached: the client is dead or has hung up, and events
 * tell what it held; or it has not claimed the attachment, and events tell that it has detached. */
void attachment_died(struct registry *registry, struct attachment *attachment);

/* The first part of that: takes what others wait for. attachment_died() does the rest. */
void attachment_announce(struct attachment *attachment);

/* Lets it hear of changes, by a socket pair: unlike with an eventfd each write says for
 * itself that it must not wait, so that nobody can make it. *ret_fd is the end to read
 * from, borrowed. Returns 0; -ENOLCK for an attachment without a lock
 * slot, -EDQUOT if LIMIT_WATCHES of the segment watch, or the user has his share of those, or of
 * all; -errno. */
int attachment_watch(struct attachment *attachment, int *ret_fd);

/* Makes the descriptors of all attachments that watch the segment readable. Does not wait. */
void attachment_ring(const struct segment *segment);

/* Returns the attachment of that id, or NULL. */
struct attachment *attachment_find(const struct attachments *list, uint64_t id);

/* The one with write access to segment, or NULL. */
struct attachment *attachment_find_writer(const struct attachments *list,
                                          const struct segment *segment);

#endif
