/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's count of connections, of requests, and of its refusals. */
#ifndef DAEMON_TALLY_H
#define DAEMON_TALLY_H

#include <stdint.h>

#include "daemon/clients/connection.h"

struct tally {
    unsigned n_connections;
    uint64_t n_requests;
    uint64_t refusals[N_REFUSALS]; /* by answer->error */
    int64_t started_ns;            /* when the daemon started */
    struct events *events;         /* hear of refusals for want of quota */
};

/* Counts an answer that is sent now. A refusal for want of quota is also logged, and an event. */
void tally_note(const struct connection *connection, const struct answer *answer);

#endif
