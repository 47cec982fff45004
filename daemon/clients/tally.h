/* SPDX-License-Identifier: Apache-2.0 */
/* Counts connections, requests and refusals, for Stats. A request is counted by its answer, because
 * only that shows whether it was refused. */
#ifndef DAEMON_TALLY_H
#define DAEMON_TALLY_H

#include <stdint.h>

#include "daemon/clients/connection.h"

/* One for each daemon. connection.c counts connections; the rest is written here. Loop only. */
struct tally {
    unsigned n_connections; /* that are open now */
    uint64_t n_requests;
    uint64_t refusals[N_REFUSALS]; /* by answer->error */
    int64_t started_ns;            /* when the daemon started */
    struct events *events;         /* borrowed; gets an event for each refusal because of a quota */
};

/* Counts an answer that is about to be sent; ignores one that is pending. A refusal because of a
 * quota or a limit is also logged, and becomes an event. */
void tally_note(const struct connection *connection, const struct answer *answer);

#endif
