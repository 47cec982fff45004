/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching: what Attach does, and Create at its end. */
#ifndef DAEMON_ATTACH_H
#define DAEMON_ATTACH_H

#include "daemon/requests/methods.h"

/* Answers with the segment and a new attachment to it, or refuses. */
void attach_segment(struct state *state, struct connection *connection, struct segment *segment,
                    int64_t access, struct answer *answer);

#endif
