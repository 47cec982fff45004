/* SPDX-License-Identifier: Apache-2.0 */
/* What dead clients have left is ended in slices, because one may have had thousands of segments.
 * So are attachments that a client did not name when it claimed again.
 *
 *   died, or unclaimed -> slots are announced -> attachments and segments are ended -> forgotten
 *
 * Announcing comes first, for all departures, because others wait for locks. The first slice is
 * done at once, so that nothing is left of most clients when departure_begin() returns. */
#ifndef DAEMON_DEPARTURE_H
#define DAEMON_DEPARTURE_H

#include "daemon/clients/client.h"

struct state;

TAILQ_HEAD(departure_list, departure);
struct departures {
    uv_idle_t slices;                 /* active while there is something */
    struct departure_list announcing; /* some of their attachments are yet to be announced */
    struct departure_list ending;
    int64_t used_ns; /* since the last look for events */
};

void departures_init(struct state *state);

/* The loop is about to look for events. */
void departures_round(struct departures *departures);

/* Takes over what a dead client has, or attachments that are unclaimed: the lists are empty
 * afterwards. Frees client, which may be NULL, and removes its presence when all is ended. */
void departure_begin(struct state *state, struct attachments *attachments,
                     struct created_segments *created, struct client *client);

/* Ends what departures have of segment (NULL: of none), before it is used. Returns it, or NULL if
 * it has gone. */
struct segment *departure_settle(struct state *state, struct segment *segment);

/* Ends all that is left. */
void departures_finish(struct state *state);

#endif
