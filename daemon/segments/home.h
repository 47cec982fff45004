/* SPDX-License-Identifier: Apache-2.0 */
/* What all segments of an instance have in common. */
#ifndef DAEMON_HOME_H
#define DAEMON_HOME_H

#include "daemon/segments/events.h"
#include "daemon/segments/ringing.h"

struct phases;
struct store;

struct segment_home {
    struct store *store; /* where they are kept; NULL: nowhere */
    struct events events;
    struct ringing ringing;
    TAILQ_HEAD(uses_recent, segment_use) recent; /* with open descriptors, the last one first */
    unsigned n_recent;
    unsigned max_recent;         /* 0: 1 */
    const struct phases *phases; /* NULL: nobody listens */
    uint8_t last_session;        /* of phases */
    uint64_t last_attachment;    /* id; those of new attachments are above */
    unsigned n_attachments;      /* of all clients */
    unsigned n_watches;          /* attachments that watch, each with two descriptors */
    unsigned max_watches;
    uint64_t n_repairs; /* objects that were repaired since the daemon was started */
};

/* home is zeroed. */
void home_init(struct segment_home *home);

#endif
