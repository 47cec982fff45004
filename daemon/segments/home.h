/* SPDX-License-Identifier: Apache-2.0 */
/* State that all segments of one instance share: where they are stored, who receives their events,
 * and the counts that are bounded for all of them together. Every segment points to it, so that
 * modules which get a segment need no other argument. The registry contains it. */
#ifndef DAEMON_HOME_H
#define DAEMON_HOME_H

#include "daemon/base/table.h"
#include "daemon/segments/events.h"
#include "daemon/segments/ringing.h"

struct phases;
struct store;

struct segment_home {
    struct store *store; /* borrowed; NULL: nothing is stored, for tests */
    struct events events;
    struct ringing ringing;
    TAILQ_HEAD(uses_recent, segment_use) recent; /* the one attached last comes first */
    unsigned n_recent;                           /* the length of recent */
    unsigned max_recent;                         /* at least 1; 0 counts as 1 */
    const struct phases *phases;                 /* NULL: no monitor wants phases */
    uint8_t last_session;                        /* of phases.c */
    struct table attachments;                    /* of all clients, by id */
    uint64_t last_attachment;                    /* the highest id that an attachment has had */
    unsigned n_attachments;                      /* of all clients */
    unsigned n_watches;   /* attachments that watch, each with two descriptors */
    unsigned max_watches; /* for n_watches */
    uint64_t n_repairs;   /* repaired objects since the daemon started */
    struct table repairs; /* of segment_repair.c: those that a thread does now */
};

/* home must be zeroed. The owner then sets store, ringing, and what it wants to change. */
void home_init(struct segment_home *home);

#endif
