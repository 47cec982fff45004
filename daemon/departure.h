/* SPDX-License-Identifier: Apache-2.0 */
/* What dead clients have left is ended in slices: one may have had thousands of segments.
 *
 *   died -> its slots are announced -> its attachments and segments are ended -> forgotten
 *
 * Announcing comes first, for all of the dead, because others wait for locks. The first slice is
 * done at once, so that nothing is left of most clients when departure_begin() returns. */
#ifndef DAEMON_DEPARTURE_H
#define DAEMON_DEPARTURE_H

#include "daemon/methods.h"

void departures_init(struct state *state);

/* The loop is about to look for events. */
void departures_round(struct departures *departures);

/* Takes over what a dead client has: its lists are empty afterwards. Frees client, which may be
 * NULL, and removes its presence when all is ended. */
void departure_begin(struct state *state, pid_t pid, uid_t uid, struct attachments *attachments,
                     struct created_segments *created, struct client *client);

/* Ends what the dead have of segment (NULL: of none), before it is used. Returns it, or NULL if it
 * has gone. */
struct segment *departure_settle(struct state *state, struct segment *segment);

/* Ends all that is left. */
void departures_finish(struct state *state);

#endif
