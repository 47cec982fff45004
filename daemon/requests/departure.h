/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the attachments and segments of dead clients, in slices of a quarter of a millisecond. It
 * also ends the attachments that a client did not name when it claimed again.
 *
 *   client died -> slots announced as dead -> attachments and segments ended -> freed
 *
 * A client may have had 4000 segments. Ending all of them at once would stop the loop for 0.2 s.
 * Other clients may be waiting for the locks of the dead one, but for nothing else that it had.
 * Therefore all slots of all departures are announced first.
 *
 * The first slice is done at once, so that of most clients nothing is left when departure_begin()
 * returns. A request for a segment that a departure still has ends that segment first
 * (departure_settle()): no client sees a remainder of a dead one. */
#ifndef DAEMON_DEPARTURE_H
#define DAEMON_DEPARTURE_H

#include "daemon/clients/client.h"

struct state;

TAILQ_HEAD(departure_list, departure);
/* All departures of an instance. Each is in one of the two lists, and owns its attachments and
 * segments. The departures in a list take turns. */
struct departures {
    uv_idle_t slices;                 /* active while a list is not empty */
    struct departure_list announcing; /* they have attachments that are not announced */
    struct departure_list ending;     /* all their attachments are announced */
    int64_t used_ns;                  /* by first slices, since the last look for events */
};

/* Also sets the callbacks of state->clients, which begin departures. */
void departures_init(struct state *state);

/* Must be called before the loop looks for events. */
void departures_round(struct departures *departures);

/* Begins a departure of the attachments and segments in both lists, which are empty afterwards.
 * Frees client, which may be NULL. Removes the presence of the client after everything else has
 * ended: until then it proves to the next daemon that the client is dead. Never fails; if memory is
 * short, it does all the work at once. */
void departure_begin(struct state *state, struct attachments *attachments,
                     struct created_segments *created, struct client *client);

/* Ends the attachments to a segment that departures have, and the segment itself if its creator is
 * dead. Call before a segment is used for a request. segment may be NULL. Returns the segment, or
 * NULL if it was freed. */
struct segment *departure_settle(struct state *state, struct segment *segment);

/* Finishes all departures, however long that takes: when the daemon exits. */
void departures_finish(struct state *state);

#endif
