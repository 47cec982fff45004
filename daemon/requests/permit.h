/* SPDX-License-Identifier: Apache-2.0 */
/* What requests may do and what they cost: policy and quotas applied to a connection. */
#ifndef DAEMON_PERMIT_H
#define DAEMON_PERMIT_H

#include "daemon/requests/request.h"

/* Who is at the other end; borrows from the connection. */
struct who permit_who(const struct state *state, const struct connection *connection);

/* Each of these returns whether that may be; otherwise it has refused the request. */

/* Gives a new segment what create wants it to have, or its defaults, and charges its owner.
 * The segment has its size. */
bool permit_create(const struct request *request, const struct wire_create *create,
                   struct segment *segment);

/* Like permit_create(), for a segment that the administrator declares: whatever its owner may
 * have. */
bool permit_declare(const struct request *request, const struct access *access,
                    struct segment *segment);

/* Whether the client may create any segment. */
bool permit_may_create(const struct request *request);

/* Charges the client's user for one attachment more. */
bool permit_attach(const struct request *request, struct quota_user **ret_payer);

/* Charges the segment's payer for bytes of a layout that the client defines. The caller adds the
 * layout, or refunds the bytes. */
bool permit_layout(const struct request *request, const struct segment *segment, size_t bytes);

/* The method SetAccess, of a segment that the client may see. */
void permit_set_access(const struct request *request, struct segment *segment,
                       const struct wire_grant *want);

#endif
