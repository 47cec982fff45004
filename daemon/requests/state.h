/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the daemon knows, without sockets: segments, clients, quotas, and the
 * configuration. Requests work on it, so it lies in this room. The server (daemon/server.h) owns
 * it; tests make one without a server. */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

#include "daemon/base/meter.h"
#include "daemon/clients/tally.h"
#include "daemon/requests/declared.h"
#include "daemon/requests/departure.h"
#include "daemon/segments/registry.h"

struct monitors;

/* Used on the loop only. */
struct state {
    struct registry registry;
    struct clients clients;
    struct tally tally;
    struct meter meter;
    struct quota quota;
    struct config *config; /* in force; owned. A reload replaces it: keep no pointer into it */
    struct declaring declared;
    struct departures departures;
    uv_loop_t *loop;
    struct turns *turns;
    struct monitors *monitors;        /* NULL: there is no monitor */
    unsigned max_connections;         /* as many as there are descriptors for */
    unsigned n_jobs;                  /* work on threads that uses this: the daemon waits for it */
    void (*job_done)(struct state *); /* called after each of these */
};

/* Initialises state, which must be zeroed. loop and turns are borrowed; turns need not be
 * initialised yet. Takes over config. */
void state_init(struct state *state, uv_loop_t *loop, struct turns *turns, struct config *config);

#endif
