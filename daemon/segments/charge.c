/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/charge.h"

#include <errno.h>

#include "common/base/util.h"

static const enum quota_kind kinds[] = {QUOTA_SEGMENTS, QUOTA_BYTES, QUOTA_LAYOUT_BYTES};

/* How much of one kind the segment costs. */
static uint64_t cost(const struct segment *segment, enum quota_kind kind)
{
    return kind == QUOTA_SEGMENTS ? 1
           : kind == QUOTA_BYTES  ? quota_bytes(segment->size)
                                  : segment->layouts.text_bytes;
}

/* Charges all kinds without comparing with the limits. */
static void restore(struct quota_user *payer, const struct segment *segment)
{
    for (size_t i = 0; payer && i < ARRAY_LEN(kinds); i++)
        quota_restore(payer->quota, payer->uid, kinds[i], cost(segment, kinds[i]));
}

/* Refunds the first n kinds of what a segment costs. */
static void refund(struct quota_user *payer, const struct segment *segment, size_t n)
{
    for (size_t i = 0; payer && i < n; i++)
        quota_refund(payer, kinds[i], cost(segment, kinds[i]));
}

int charge_segment(struct quota *quota, struct segment *segment, uid_t owner, bool is_admin,
                   struct quota_excess *ret_excess)
{
    struct quota_user *payer = NULL;
    size_t n = 0;
    int r = 0;
    /* Looking up the new owner may free users without charges. Do it before the refund, while the
     * payer still has its charge. */
    if (!quota_restore(quota, owner, QUOTA_SEGMENTS, 0))
        return -ENOMEM;
    charge_refund(segment); /* first, so that the limits of all users do not count it twice */
    while (r == 0 && n < ARRAY_LEN(kinds)) {
        uint64_t amount = cost(segment, kinds[n]);
        if (amount) /* a charge of 0 would fail under a limit that was lowered below the usage */
            r = quota_charge(quota, owner, is_admin, kinds[n], amount, &payer, ret_excess);
        n += r == 0;
    }
    if (r == 0) {
        segment->payer = payer;
        return 0;
    }
    refund(payer, segment, n);
    restore(segment->payer, segment);
    return r;
}

int charge_restore(struct quota *quota, struct segment *segment)
{
    segment->payer = quota_restore(quota, segment->access->uid, QUOTA_SEGMENTS, 0);
    restore(segment->payer, segment);
    return segment->payer ? 0 : -ENOMEM;
}

void charge_refund(const struct segment *segment)
{
    refund(segment->payer, segment, ARRAY_LEN(kinds));
}

int charge_layout(const struct segment *segment, bool is_admin, size_t bytes,
                  struct quota_excess *ret_excess)
{
    struct quota_user *payer = segment->payer;
    return quota_charge(payer->quota, payer->uid, is_admin, QUOTA_LAYOUT_BYTES, bytes, &payer,
                        ret_excess);
}

void charge_declared_layout(const struct segment *segment, size_t bytes)
{
    if (segment->payer)
        quota_restore(segment->payer->quota, segment->payer->uid, QUOTA_LAYOUT_BYTES, bytes);
}
