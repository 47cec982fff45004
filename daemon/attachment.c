/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/attachment.h"

#include <errno.h>
#include <stdlib.h>

int attachment_begin(struct attachments *list, struct segment *segment, int64_t access, pid_t pid,
                     struct wire_attachment *ret, struct frame_descriptors *ret_fds)
{
    static uint64_t last_id;
    struct attachment *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    int r = segment_attach(segment, access, ret, ret_fds);
    if (r) {
        free(a);
        return r;
    }
    a->id = ++last_id;
    a->segment = segment;
    a->access = access;
    a->slot = ret->slot;
    a->pid = pid;
    LIST_INSERT_HEAD(list, a, link);
    ret->id = (int64_t)a->id;
    return 0;
}

void attachment_end(struct registry *registry, struct attachment *attachment)
{
    LIST_REMOVE(attachment, link);
    segment_detach(attachment->segment, attachment->slot, attachment->pid);
    registry_release(registry, attachment->segment);
    free(attachment);
}

struct attachment *attachment_find(const struct attachments *list, uint64_t id)
{
    struct attachment *a;
    LIST_FOREACH(a, list, link)
    if (a->id == id)
        return a;
    return NULL;
}

struct attachment *attachment_find_writer(const struct attachments *list,
                                          const struct segment *segment)
{
    struct attachment *a;
    LIST_FOREACH(a, list, link)
    if (a->segment == segment && a->access == SHMVIEW_WRITE)
        return a;
    return NULL;
}
