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

/* Frees it where nobody is attached and no descriptor is kept open. */
void use_end(struct segment_use *use);
/* Closes the descriptors. */
void use_close(struct segment_use *use);
/* Both. Takes NULL. */
void use_leave(struct segment_use *use);

/* Makes it the segment attached last: its descriptors, and those of the home's max_recent segments
 * attached last, are kept open. */
void use_cache(struct segment_use *use);

/* It is cached. Returns a borrowed descriptor or -errno. */
int use_open(struct segment_use *use, enum use_descriptor which);

/* Maps the liveness object, once. Returns 0 or -errno. */
int use_map(struct segment_use *use);
/* The same, where it is not mapped yet and fd, which stays the caller's, is open for writing. */
int use_map_object(struct segment_use *use, int fd);

#endif
