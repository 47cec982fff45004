/* SPDX-License-Identifier: Apache-2.0 */
/* What requests may do and what they cost: policy and quotas applied to a connection. */
#ifndef DAEMON_GRANTS_H
#define DAEMON_GRANTS_H

#include "daemon/requests/methods.h"
#include "daemon/rights/policy.h"

/* Who is at the other end; borrows from the connection. */
struct who grants_who(const struct state *state, const struct connection *connection);

/* Gives a new segment what create wants it to have, or its defaults, and charges its owner.
 * The segment has its size. Returns whether it may be; else *answer refuses. */
bool grants_create(struct state *state, struct connection *connection,
                   const struct wire_create *create, struct segment *segment,
                   struct answer *answer);

/* The same for one that the administrator declares: whatever its owner may have. */
bool grants_declare(struct state *state, struct segment *segment, const struct access *access,
                    struct answer *answer);

/* Whether he may create anything; else *answer refuses. */
bool grants_may_create(const struct state *state, const struct connection *connection,
                       struct answer *answer);

/* Charges the connection's user for one attachment more. Returns whether that may be. */
bool grants_attach(struct state *state, struct connection *connection,
                   struct quota_user **ret_payer, struct answer *answer);

/* The method SetAccess, of a segment that the caller may see. */
void grants_set_access(struct state *state, struct connection *connection, struct segment *segment,
                       const struct wire_grant *want, struct answer *answer);

/* Charges the segment's payer for bytes of a layout that the connection defines. Returns whether
 * that may be. The caller adds the layout, or refunds the bytes. */
bool grants_layout(struct state *state, struct connection *connection,
                   const struct segment *segment, size_t bytes, struct answer *answer);

#endif
