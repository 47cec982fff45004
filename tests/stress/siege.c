/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/siege.h"

#include <unistd.h>

#include "common/base/util.h"
#include "stress/block.h"
#include "stress/fate.h"
#include "stress/watch.h"

#define PATIENCE_NS 1000000000
#define LOOK_US     50

static void keep_exclusive(struct shmview_segment *segment, int result)
{
    block_enter(segment, result);
    if (me_chance(2))
        block_tear(segment);
}

void siege_join(struct shmview_segment *segment)
{
    bool shared = me_chance(2);
    if (me.index > 0 && atomic_load(&arena->duel))
        for (;;)
            pause();
    fate_draw_slow();
    me.forever = true;
    me.waits_from = now_ns();
    int r = shared ? shmview_lock_shared(segment) : shmview_lock(segment);
    int64_t killed = atomic_exchange(&arena->siege_killed_ns, 0);
    if (killed > me.waits_from)
        fate_note_latency(killed);
    if (r < 0)
        report(VIOLATION_CALL, "in a siege: %d %s", r, shmview_error_text());
    else if (r == 0 && shared)
        block_read(segment);
    else
        keep_exclusive(segment, r);
    atomic_store(&me.actor->holds, true);
    for (;;)
        pause();
}

struct party *siege_holder(void)
{
    for (int i = 0; i < PARTIES_MAX; i++)
        for (int t = 0; t < THREADS_MAX; t++)
            if (party_state(&arena->parties[i]) == PARTY_LIVING &&
                atomic_load(&arena->parties[i].actors[t].holds))
                return &arena->parties[i];
    return NULL;
}

struct party *siege_await_holder(const struct shmview_segment *segment)
{
    struct party *holder;
    for (int64_t until = now_ns() + PATIENCE_NS; !(holder = siege_holder()); usleep(LOOK_US))
        if (now_ns() > until) {
            watch_tell(segment, "a siege, and nobody has the lock");
            return NULL;
        }
    return holder;
}

unsigned siege_living(void)
{
    unsigned n = 0;
    for (int i = 0; i < PARTIES_MAX; i++)
        n += party_state(&arena->parties[i]) == PARTY_LIVING;
    return n;
}
