/* SPDX-License-Identifier: Apache-2.0 */
/* One connection's right to one segment. Its end gives everything back. */
#ifndef DAEMON_ATTACHMENT_H
#define DAEMON_ATTACHMENT_H

#include <sys/queue.h>

#include "daemon/registry.h"

struct attachment {
    uint64_t id;
    struct segment *segment;
    int64_t access; /* enum shmview_access */
    int64_t slot;   /* or WIRE_ABSENT */
    pid_t pid;
    LIST_ENTRY(attachment) link;
};
LIST_HEAD(attachments, attachment);

/* Attaches segment for pid and adds the attachment to list. *ret and
 * *ret_fds borrow from the segment. Returns 0 or what segment_attach()
 * returns, -ENOMEM. */
int attachment_begin(struct attachments *list, struct segment *segment, int64_t access, pid_t pid,
                     struct wire_attachment *ret, struct frame_descriptors *ret_fds);

/* Ends it, and its segment's life where nothing else keeps it. */
void attachment_end(struct registry *registry, struct attachment *attachment);

/* Returns the attachment of that id, or NULL. */
struct attachment *attachment_find(const struct attachments *list, uint64_t id);

/* The one with write access to segment, or NULL. */
struct attachment *attachment_find_writer(const struct attachments *list,
                                          const struct segment *segment);

#endif
