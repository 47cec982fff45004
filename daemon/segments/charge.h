/* SPDX-License-Identifier: Apache-2.0 */
/* What a segment costs its owner: itself, its bytes, and the text of its layouts. */
#ifndef DAEMON_CHARGE_H
#define DAEMON_CHARGE_H

#include "daemon/rights/quota.h"
#include "daemon/segments/segment.h"

/* Charges owner for the segment, in place of its payer, if it has one. is_admin: without the limits
 * of one user. Returns 0; -EDQUOT with *ret_excess; or -ENOMEM. Then the payer is as it was. */
int charge_segment(struct quota *quota, struct segment *segment, uid_t owner, bool is_admin,
                   struct quota_excess *ret_excess);

/* Charges the owner of a segment that was there before this daemon, whatever the limits are.
 * Returns 0 or -ENOMEM. */
int charge_restore(struct quota *quota, struct segment *segment);

/* Refunds all that the segment costs. */
void charge_refund(const struct segment *segment);

/* Charges the payer for bytes of a layout. The caller adds the layout, or refunds the bytes.
 * Returns what charge_segment() does. */
int charge_layout(const struct segment *segment, bool is_admin, size_t bytes,
                  struct quota_excess *ret_excess);

/* The same for a layout that the administrator declares: whatever the limits are. */
void charge_declared_layout(const struct segment *segment, size_t bytes);

#endif
