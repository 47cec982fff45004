/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/action.h"

#include <sched.h>
#include <unistd.h>

#include "common/base/util.h"
#include "stress/arena.h"
#include "stress/block.h"
#include "stress/fate.h"
#include "stress/worker.h"

/* How long a guest waits at most. Otherwise it would remain when all other parties have gone. */
#define GUEST_PATIENCE_NS 8000000000

/* --- Taking -------------------------------------------------------------- */

typedef int take_fn(struct shmview_segment *, int64_t deadline_ns);

/* Waits without a deadline; a guest waits for GUEST_PATIENCE_NS. watch.c sees the wait in
 * waits_since, and counts a stall if it takes too long. Returns the result of the call. */
static int take_forever(struct shmview_segment *segment, take_fn *call)
{
    bool guest = me.patience >= 0;
    me.forever = true;
    atomic_store(&me.actor->waits_since, me.waits_from);
    int r = call(segment, guest ? shmview_deadline(GUEST_PATIENCE_NS) : SHMVIEW_FOREVER);
    atomic_store(&me.actor->waits_since, 0);
    me.forever = false;
    if (r < 0)
        report(VIOLATION_CALL, "taking, with patience: %d %s", r, shmview_error_text());
    return r;
}

static int take(struct shmview_segment *segment, take_fn *call)
{
    /* when each thread acts once, more of them give up, because such a thread may leave others
     * asleep */
    uint32_t how = me_random() % (atomic_load(&arena->one_each) ? 8 : 16);
    me.waits_from = now_ns();
    if (how >= 4)
        return take_forever(segment, call);
    int64_t deadline = how < 2 ? 0 : me.waits_from + me_random() % (1000u << me_random() % 12);
    int r = call(segment, deadline);
    if (r == -SHMVIEW_ERR_TIMED_OUT)
        me_count(COUNT_TIMED_OUT);
    else if (r < 0)
        report(VIOLATION_CALL, "taking: %d %s", r, shmview_error_text());
    return r;
}

static void give_back(struct shmview_segment *segment)
{
    int r = shmview_unlock(segment);
    if (r)
        report(VIOLATION_UNLOCK, "%d %s", r, shmview_error_text());
}

static void give_back_not_repaired(struct shmview_segment *segment)
{
    block_leave(segment);
    me_count(COUNT_NOT_REPAIRED);
    int r = shmview_unlock_not_repaired(segment);
    if (r)
        report(VIOLATION_UNLOCK, "not repaired: %d %s", r, shmview_error_text());
}

/* --- Holding ------------------------------------------------------------- */

static void linger(void)
{
    uint32_t r = me_random() % 256;
    if (r == 0) {
        usleep(50 + me_random() % 300);
    } else if (r < 6) {
        sched_yield();
    } else {
        for (volatile uint32_t i = 0; i < r; i++)
            continue;
    }
}

static bool is_restless(void)
{
    return !me.borrowed && !atomic_load_explicit(&arena->quiet, memory_order_relaxed);
}

/* Sometimes ends this process in order while it holds the lock. Otherwise returns whether this
 * thread must end without releasing; the first thread of a process never does so. */
static bool leaves_holding(void)
{
    if (is_restless() && me_chance(1000))
        worker_exit();
    me.leaving = me.index > 0 && !me.borrowed && me_chance(60);
    if (me.leaving)
        me_count(COUNT_THREAD_EXITS);
    return me.leaving;
}

static void forks_holding(struct shmview_segment *segment)
{
    if (is_restless() && me_chance(100)) {
        worker_fork(segment, true);
        fate_place(AT_FORKED_HOLDING);
    }
}

static void nests(struct shmview_segment *segment)
{
    int r = me_chance(2) ? shmview_lock(segment) : shmview_trylock_shared(segment);
    if (r) {
        report(VIOLATION_CALL, "nested: %d %s", r, shmview_error_text());
        return;
    }
    fate_place(AT_NESTS);
    give_back(segment);
}

static void inside(struct shmview_segment *segment, int result)
{
    me_count(COUNT_EXCLUSIVE);
    block_enter(segment, result);
    fate_place(AT_HOLDS);
    if (result == SHMVIEW_OWNER_DIED) {
        if (me_chance(8)) {
            give_back_not_repaired(segment);
            return;
        }
        block_repair(segment);
    }
    if (me_chance(6))
        nests(segment);
    if (me_chance(6))
        block_switch(segment);
    else
        block_write(segment);
    forks_holding(segment);
    linger();
    bool tears = me_chance(40);
    if (tears)
        block_tear(segment);
    if (leaves_holding())
        return;
    if (tears || me_chance(100)) {
        give_back_not_repaired(segment);
        return;
    }
    block_leave(segment);
    give_back(segment);
}

static void nests_reading(struct shmview_segment *segment)
{
    int r = shmview_lock_shared(segment);
    if (r) {
        report(VIOLATION_CALL, "nested, shared: %d %s", r, shmview_error_text());
        return;
    }
    fate_place(AT_NEST_READS);
    block_read(segment);
    give_back(segment);
}

static void reading(struct shmview_segment *segment)
{
    me_count(COUNT_SHARED);
    block_read(segment);
    if (me_chance(5))
        nests_reading(segment);
    if (me_chance(50) && shmview_lock(segment) != -SHMVIEW_ERR_DEADLOCK)
        report(VIOLATION_CALL, "an upgrade is not refused");
    forks_holding(segment);
    linger();
    block_read(segment);
    if (!leaves_holding())
        give_back(segment);
}

/* --- Actions ------------------------------------------------------------- */

static void act_exclusive(struct shmview_segment *segment)
{
    int r = take(segment, shmview_lock_until);
    if (r >= 0)
        inside(segment, r);
}

static void act_shared(struct shmview_segment *segment)
{
    int r = take(segment, shmview_lock_shared_until);
    if (r == 0)
        reading(segment);
    else if (r > 0)
        inside(segment, r);
}

static void act_optimistic(struct shmview_segment *segment)
{
    if (block_read_unlocked(segment))
        me_count(COUNT_OPTIMISTIC);
}

/* A view that is locked must belong to the current phase. */
static void act_view(struct shmview_segment *segment)
{
    struct shmview_view view;
    struct shmview_phase phase;
    int mode = me_chance(2) ? SHMVIEW_EXCLUSIVE : SHMVIEW_SHARED;
    int r = shmview_view_open(segment, block_layouts[me_random() % N_LAYOUTS], "words", &view);
    if (r) {
        report(VIOLATION_CALL, "shmview_view_open: %d %s", r, shmview_error_text());
        return;
    }
    me.waits_from = now_ns();
    r = shmview_view_lock(&view, mode, shmview_deadline(GUEST_PATIENCE_NS));
    if (r == -SHMVIEW_ERR_STALE) {
        me_count(COUNT_STALE);
        return;
    }
    if (r < 0) {
        report(VIOLATION_CALL, "shmview_view_lock: %d %s", r, shmview_error_text());
        return;
    }
    int asked = shmview_phase_get(segment, &phase);
    if (asked || phase.generation != view.generation || phase.layout != view.layout)
        report(VIOLATION_PHASE, "a view of phase %u is locked in phase %u", view.generation,
               phase.generation);
    if (r > 0 || mode == SHMVIEW_EXCLUSIVE)
        inside(segment, r);
    else
        reading(segment);
}

static void act_notify(struct shmview_segment *segment)
{
    int r = me_chance(3) ? shmview_notify_one(segment) : shmview_notify(segment);
    if (r)
        report(VIOLATION_CALL, "shmview_notify: %d %s", r, shmview_error_text());
}

/* While all is quiet a worker waits without a deadline, and the supervisor notifies last. */
static void act_wait_change(struct shmview_segment *segment)
{
    uint32_t seen = shmview_change(segment), now;
    me.waits_from = now_ns();
    int64_t deadline = me.waits_from + me_random() % 1000000;
    if (me.patience < 0 && atomic_load(&arena->quiet)) {
        deadline = SHMVIEW_FOREVER;
        me.forever = true;
        atomic_store(&me.actor->waits_since, me.waits_from);
    }
    int r = shmview_wait_change(segment, seen, deadline, &now);
    atomic_store(&me.actor->waits_since, 0);
    me.forever = false;
    if (r == 0)
        me_count(COUNT_CHANGES);
    else if (r != -SHMVIEW_ERR_TIMED_OUT)
        report(VIOLATION_CALL, "shmview_wait_change: %d %s", r, shmview_error_text());
}

static void act_wait_phase(struct shmview_segment *segment)
{
    struct shmview_phase phase;
    int r = shmview_phase_get(segment, &phase);
    if (r == 0)
        r = shmview_wait_phase(segment, me_chance(2) ? block_layouts[0] : NULL, phase.generation,
                               now_ns() + me_random() % 1000000, &phase);
    if (r && r != -SHMVIEW_ERR_TIMED_OUT)
        report(VIOLATION_CALL, "shmview_wait_phase: %d %s", r, shmview_error_text());
}

static void act_status(struct shmview_segment *segment)
{
    struct shmview_lock_status status;
    struct shmview_lock_party parties[8];
    int r = shmview_lock_query(segment, &status, parties, ARRAY_LEN(parties));
    if (r)
        report(VIOLATION_CALL, "shmview_lock_status: %d %s", r, shmview_error_text());
}

/* Attaches once more for a moment. For the lock the end of that slot is a death too. */
static void act_attach(struct shmview_segment *segment)
{
    if (!is_restless())
        return;
    struct worker_handle own;
    if (worker_attach(&own, me_chance(2) ? segment->connection : NULL))
        return;
    me_count(COUNT_ATTACHES);
    me.borrowed = true;
    for (uint32_t n = me_random() % 3; n > 0; n--)
        action_any(own.segment);
    me.borrowed = false;
    worker_detach(&own);
}

static void act_fork(struct shmview_segment *segment)
{
    if (is_restless())
        worker_fork(segment, false);
}

static const struct {
    uint32_t share;
    void (*act)(struct shmview_segment *);
} actions[] = {
    {40, act_exclusive}, {30, act_shared},     {8, act_optimistic}, {4, act_view},
    {4, act_notify},     {4, act_wait_change}, {1, act_wait_phase}, {2, act_status},
    {1, act_attach},     {1, act_fork},
};

void action_any(struct shmview_segment *segment)
{
    uint32_t shares = 0, r;
    size_t i = 0;
    for (size_t a = 0; a < ARRAY_LEN(actions); a++)
        shares += actions[a].share;
    for (r = me_random() % shares; r >= actions[i].share; i++)
        r -= actions[i].share;
    if (me_chance(32))
        fate_draw_slow();
    actions[i].act(segment);
    if (me_chance(3))
        linger();
}
