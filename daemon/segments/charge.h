/* SPDX-License-Identifier: Apache-2.0 */
/* Charges the owner of a segment for it: one segment, its bytes, and the text of its layouts
 * (daemon/rights/quota.h). The owner is charged and not the creator, because an administrator may
 * create a segment for another user, and a segment may change its owner. Attachments are charged to
 * the users that attach. */
#ifndef DAEMON_CHARGE_H
#define DAEMON_CHARGE_H

#include "daemon/rights/quota.h"
#include "daemon/segments/segment.h"

/* Charges `owner` for the segment, and refunds its payer, if it has one. If is_admin, the limits of
 * one user do not apply. Returns 0; -EDQUOT with *ret_excess; or -ENOMEM. After an error the old
 * payer is still charged. */
int charge_segment(struct quota *quota, struct segment *segment, uid_t owner, bool is_admin,
                   struct quota_excess *ret_excess);

/* Charges the owner of the segment without comparing with the limits. This is for segments of an
 * earlier daemon and for declared ones. Returns 0 or -ENOMEM. */
int charge_restore(struct quota *quota, struct segment *segment);

/* Refunds everything that the payer is charged for the segment. The segment may have no payer. */
void charge_refund(const struct segment *segment);

/* Charges the payer, which must exist, for `bytes` of a layout. The caller then adds a layout with
 * these bytes, or refunds them. Returns as charge_segment() does. */
int charge_layout(const struct segment *segment, bool is_admin, size_t bytes,
                  struct quota_excess *ret_excess);

/* Like charge_layout(), but for a layout of the configuration: does not compare with the limits.
 * The segment may have no payer. */
void charge_declared_layout(const struct segment *segment, size_t bytes);

#endif
