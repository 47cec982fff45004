/* SPDX-License-Identifier: Apache-2.0 */
/* One request: where it came from and what it wants. */
#ifndef DAEMON_REQUEST_H
#define DAEMON_REQUEST_H

#include "common/wire/wire_stats.h"
#include "daemon/clients/connection.h"
#include "daemon/requests/state.h"
#include "daemon/rights/policy.h"

struct request {
    struct state *state;
    struct connection *connection; /* NULL: the configuration declares what it wants */
    struct who who;                /* at the other end; borrows from the connection */
    struct answer *answer;
};

/* The parameters of a request. The method frees what they own. */
union wanted {
    const char *name;
    int64_t attachment;
    struct wire_claim claim;
    struct wire_create create;
    struct wire_attach attach;
    struct wire_entrust entrust;
    struct wire_set_access set_access;
    struct wire_describe describe;
    struct wire_define define;
    struct wire_monitor monitor;
    struct wire_stats_call stats;
};

/* Whether the segment, which may be NULL, exists for the client. */
bool request_may_see(const struct request *request, const struct segment *segment);

/* Returns the segment called name or, if id is not WIRE_ABSENT, the one with that id; or NULL after
 * refusing the request. */
struct segment *request_find(const struct request *request, const char *name, int64_t id);

#endif
