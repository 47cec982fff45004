/* SPDX-License-Identifier: Apache-2.0 */
/* Switches of phases, for those who want to hear of them. Clients switch in memory, and tell
 * the daemon nothing; so it looks, a few times a second, at those segments that can be
 * switched: those with layouts that are attached. Switches between two looks are told as one
 * event, with their number. Each turn is short: where there are very many segments each is
 * looked at less often. Besides, a segment is looked at whenever an attachment begins and ends, so
 * that nobody is too quick. */
#ifndef DAEMON_PHASES_H
#define DAEMON_PHASES_H

#include "daemon/segments/registry.h"

#define PHASES_PERIOD_MS 100

struct phases {
    uint64_t next;         /* the segment that was looked at last in this round */
    uint64_t first_unseen; /* segments from that id on were never switched unseen */
    uint8_t session;       /* what a segment that was looked at is marked with */
};

/* Switches from here on will be told. */
void phases_begin(struct phases *phases, struct registry *registry);

/* Nobody listens any more. */
void phases_end(struct registry *registry);

/* An attachment to that segment is about to begin, or to end: looks at it, if anybody listens. */
void phases_note(struct segment *segment);

/* Looks at segments until that time, and adds events. At the next one after the last that it looked
 * at before; at least one. */
void phases_look(struct phases *phases, const struct registry *registry, int64_t until_ns);

/* Like phases_look(), but looks only at those called names, each once at most. *next is the index
 * of the name to begin with: 0 at first. */
void phases_look_at(struct phases *phases, const struct registry *registry,
                    const char *const *names, size_t n, size_t *next, int64_t until_ns);

#endif
