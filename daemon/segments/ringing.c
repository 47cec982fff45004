/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/ringing.h"

#include "common/base/util.h"
#include "daemon/rights/turns.h"
#include "daemon/segments/attachment.h"
#include "daemon/segments/use.h"

#define SLICE_NS 250000

static TAILQ_HEAD(, segment_use) due;
static struct turns *turns;
static struct turn turn;

static void serve(struct turn *unused)
{
    int64_t until = now_ns() + SLICE_NS;
    struct segment_use *use;
    (void)unused;
    do {
        use = TAILQ_FIRST(&due);
        ringing_forget(use);
        attachment_ring(use->segment);
    } while (!TAILQ_EMPTY(&due) && now_ns() < until);
    if (!TAILQ_EMPTY(&due))
        turns_again(turns, &turn);
}

void ringing_init(struct turns *of)
{
    TAILQ_INIT(&due);
    turns = of;
    turn = (struct turn){.serve = serve, .payer = &of->own};
}

void ringing_add(struct segment_use *use)
{
    if (use->rings)
        return;
    use->rings = true;
    TAILQ_INSERT_TAIL(&due, use, ringing);
    turns_again(turns, &turn);
}

void ringing_forget(struct segment_use *use)
{
    if (!use->rings)
        return;
    use->rings = false;
    TAILQ_REMOVE(&due, use, ringing);
    if (TAILQ_EMPTY(&due))
        turns_forget(turns, &turn);
}
