/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/ringing.h"

#include "common/base/util.h"
#include "daemon/base/slice.h"
#include "daemon/segments/attachment.h"

#define SLICE_NS 250000

/* Wakes watchers for a quarter of a millisecond, of one segment at least. */
static void serve(struct turn *turn)
{
    struct ringing *all = CONTAINER_OF(turn, struct ringing, turn);
    int64_t until = slice_end(SLICE_NS);
    struct segment_use *use;
    do {
        use = TAILQ_FIRST(&all->due);
        ringing_cancel(use); /* first, so that a ring in the meantime is not lost */
        attachment_ring(use->segment);
    } while (!TAILQ_EMPTY(&all->due) && now_ns() < until);
    if (!TAILQ_EMPTY(&all->due)) /* ringing_cancel() has ended the turn otherwise */
        turns_again(all->turns, &all->turn);
}

void ringing_init(struct ringing *ringing, struct turns *turns)
{
    TAILQ_INIT(&ringing->due);
    ringing->turns = turns;
    ringing->turn = (struct turn){.serve = serve, .payer = &turns->own};
}

void ringing_add(struct segment_use *use)
{
    struct ringing *all = &use->segment->home->ringing;
    if (use->rings)
        return;
    use->rings = true;
    TAILQ_INSERT_TAIL(&all->due, use, ringing);
    turns_again(all->turns, &all->turn);
}

void ringing_cancel(struct segment_use *use)
{
    struct ringing *all = &use->segment->home->ringing;
    if (!use->rings)
        return;
    use->rings = false;
    TAILQ_REMOVE(&all->due, use, ringing);
    if (TAILQ_EMPTY(&all->due))
        turns_cancel(all->turns, &all->turn);
}
