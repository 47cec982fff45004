/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon knows; no sockets. It lies in this room because its requests work on it. */
#ifndef DAEMON_STATE_H
#define DAEMON_STATE_H

#include "daemon/clients/tally.h"
#include "daemon/requests/declared.h"
#include "daemon/requests/departure.h"
#include "daemon/segments/registry.h"

struct monitors;

struct state {
    struct registry registry;
    struct clients clients;
    struct tally tally;
    struct quota quota;
    struct config *config; /* in force; replaced whole: no pointer into it is kept */
    struct declaring declared;
    struct departures departures;
    uv_loop_t *loop;
    struct turns *turns;
    struct monitors *monitors;        /* NULL: nobody hears of events */
    unsigned max_connections;         /* that there are descriptors for */
    unsigned n_jobs;                  /* allocations under way */
    void (*job_done)(struct state *); /* called after each */
};

/* state is zeroed, and turns need not be ready yet. Takes over config. */
void state_init(struct state *state, uv_loop_t *loop, struct turns *turns, struct config *config);

#endif
