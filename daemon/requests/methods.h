/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon does for a request: one table, one function a method. */
#ifndef DAEMON_METHODS_H
#define DAEMON_METHODS_H

#include "daemon/clients/client.h"
#include "daemon/clients/connection.h"
#include "daemon/config/config.h"
#include "daemon/rights/quota.h"
#include "daemon/segments/registry.h"

/* Declared segments that are being made: daemon/requests/declared.h. */
struct state;
struct declaring {
    unsigned n_pending;
    atomic_bool cancel;
    void (*done)(struct state *); /* called when none is left */
    void *arg;                    /* for it */
};

/* What is left of the dead, and unclaimed attachments: daemon/requests/departure.h. */
TAILQ_HEAD(departure_list, departure);
struct departures {
    uv_idle_t slices;                 /* active while there is something */
    struct departure_list announcing; /* some of their attachments are yet to be announced */
    struct departure_list ending;
    int64_t used_ns; /* since the last look for events */
};

/* What methods work on; no sockets. */
struct monitors;

struct state {
    struct registry registry;
    struct clients clients;
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

/* Answers call. Creation answers later, by connection_answer(). */
void methods_call(struct state *state, struct connection *connection, const struct wire_call *call,
                  struct answer *answer);

/* Undoes what answer, which cannot be sent, has given: its attachment, and its segment. */
void methods_take_back(struct state *state, struct connection *connection,
                       const struct answer *answer);

/* Ends the attachments of the connection, and the segments that go with their creator, if its
 * client is dead. */
void methods_let_go(struct state *state, struct connection *connection);
/* Cancels what the connection waits for. Everything that it holds stays with its client as long
 * as that lives, or is given back. */
void methods_release(struct state *state, struct connection *connection);

/* The same for a client that lives on without this daemon: nothing of what it does in
 * memory is disturbed. */
void methods_forget(struct connection *connection);

#endif
