/* SPDX-License-Identifier: Apache-2.0 */
/* A handle of a segment, or of foreign memory. */
#ifndef CLIENT_SEGMENT_H
#define CLIENT_SEGMENT_H

#include <sys/types.h>

#include "client/link/call.h"
#include "client/lock/lock.h"
#include "common/views/view.h"

#pragma GCC visibility push(hidden)

/* Layouts as the daemon reported them; strings live in root. */
struct layouts {
    json_t *root;
    struct wire_layout *list;
    size_t n;
};

/* A layout that was declared through this handle. */
struct declared {
    SLIST_ENTRY(declared) link;
    int64_t index; /* as the daemon has reported it */
    char name[LIMIT_VIEW_NAME_BYTES + 1];
};

struct shmview_segment {
    struct lock lock; /* first. Also of a segment without: the attachment and its process */
    struct shmview_connection *connection;
    void *data;
    uint64_t size;
    uint64_t id;
    int access;
    struct layouts layouts;
    SLIST_HEAD(, declared) declared;
    int change_fd;       /* -1: nobody asked for it */
    dev_t change_device; /* of change_fd, as of a connection's socket */
    ino_t change_inode;
    struct formats formats;     /* of its views; under NOT_FORKED */
    _Atomic uint32_t n_buffers; /* that are out; the high bit: detach with the last one */
    void (*release)(void *arg); /* of foreign memory: then connection is NULL */
    void *release_arg;
    char name[LIMIT_NAME_BYTES + 1];
};

/* Frees what shmview_define() has noted. */
void layouts_forget_declared(struct shmview_segment *segment);

/* Lets a forked child take part under its own slot. Returns 0 or an error. */
int segment_step_in(struct shmview_segment *segment);
int fail_no_lock(const struct shmview_segment *segment);

/* --- map.c --------------------------------------------------------------- */

/* Whether the descriptors are those that the attachment tells of. Returns 0 or an error. */
int segment_check_attachment(const struct wire_attachment *a, const struct frame_descriptors *fds);
/* Maps them for a segment whose id, size and access are known. flags as of shmview_attach().
 * Returns 0 or an error; what was mapped until then is in the segment. */
int segment_map(struct shmview_segment *segment, const struct wire_attachment *a,
                const struct frame_descriptors *fds, unsigned flags);
void segment_unmap_lock(struct shmview_segment *segment);

/* --- change.c ------------------------------------------------------------ */

/* Closes what a segment holds for changes. */
void change_close(struct shmview_segment *segment);

#pragma GCC visibility pop

#endif
