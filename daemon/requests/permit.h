/* SPDX-License-Identifier: Apache-2.0 */
/* Applies policy and quotas (daemon/rights) to one request, and refuses it if either of them does
 * not allow it. The modules of daemon/rights know users only; this one collects the facts from
 * connection, configuration and segment. */
#ifndef DAEMON_PERMIT_H
#define DAEMON_PERMIT_H

#include "daemon/requests/request.h"

/* Returns the user of the connection, as the kernel reported it when the client connected. Whether
 * that is an administrator follows from the configuration in force. *groups is borrowed from the
 * connection. */
struct who permit_who(const struct state *state, const struct connection *connection);

/* The functions that return a bool return true if the request is allowed; or false after refusing
 * the request, and then nothing is charged. */

/* Gives a new segment the access that the request wants, or its defaults, and charges its owner.
 * The caller has set the size of the segment. After a failure the caller must free the segment. */
bool permit_create(const struct request *request, const struct wire_create *create,
                   struct segment *segment);

/* Like permit_create(), but for a segment of the configuration: does not compare with quotas,
 * because the administrator has decided. Fails only if memory is short. */
bool permit_declare(const struct request *request, const struct access *access,
                    struct segment *segment);

/* Whether the configuration allows the user to create segments. */
bool permit_may_create(const struct request *request);

/* Charges the user of the client for one attachment; the caller owes the refund for *ret_payer. */
bool permit_attach(const struct request *request, struct quota_user **ret_payer);

/* Charges the payer of the segment for `bytes` of a layout that the client defines. The caller then
 * adds a layout with these bytes, or refunds them. */
bool permit_layout(const struct request *request, const struct segment *segment, size_t bytes);

/* The method SetAccess, for a segment that the client may see: changes owner, group, mode or
 * entries, moves the charge if the owner changes, and replies with the segment. Attachments that
 * exist stay, because a mapping cannot be taken back. */
void permit_set_access(const struct request *request, struct segment *segment,
                       const struct wire_grant *want);

#endif
