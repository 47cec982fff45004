/* SPDX-License-Identifier: Apache-2.0 */
/* One request: the client that sent it, its parameters, and the reply that a method fills in.
 * Methods get everything that they need by this, so they have no state of their own. */
#ifndef DAEMON_REQUEST_H
#define DAEMON_REQUEST_H

#include "common/wire/wire_freeze.h"
#include "common/wire/wire_stats.h"
#include "daemon/clients/connection.h"
#include "daemon/requests/state.h"
#include "daemon/rights/policy.h"

struct definition;

/* On the stack of methods_call(). A creation on a thread keeps a copy, which gets another answer
 * later. */
struct request {
    struct state *state;
    struct connection *connection; /* NULL if the configuration declares a segment */
    struct who who;                /* the user; borrows from the connection */
    struct answer *answer;         /* the method fills it in; the caller sends it */
};

/* The parameters of a request, decoded; the method determines which member. Strings are borrowed
 * from the message. The method frees what a member owns. */
union wanted {
    const char *name;
    int64_t attachment;
    struct wire_claim claim;
    struct wire_create create;
    struct wire_attach attach;
    struct wire_list list;
    struct wire_entrust entrust;
    struct wire_set_access set_access;
    struct wire_freeze freeze;
    struct wire_describe describe;
    struct definition *definition;
    struct wire_monitor monitor;
    struct wire_stats_call stats;
};

/* Whether the segment exists for the client: whether it is allocated and the user may see it.
 * segment may be NULL. */
bool request_may_see(const struct request *request, const struct segment *segment);

/* Finds the segment with that id, or if id is WIRE_ABSENT the one with that name. If a departure
 * still has parts of it, ends these first. A client also finds a segment that it has attached but
 * may not see any longer.
 *
 * Returns the segment; or NULL after refusing the request with SegmentNotFound, also if the segment
 * exists but the user may not see it: the refusal must not reveal that the name is taken. */
struct segment *request_find(const struct request *request, const char *name, int64_t id);

#endif
