/* SPDX-License-Identifier: Apache-2.0 */
/* Phases: which layout is current, switching to another one, and waiting for a switch.
 *
 * A phase is one 64-bit word in the control object: the index of the layout plus 1, and a
 * generation that each switch advances. One store is the whole switch. Therefore a program that
 * dies during a switch leaves the old phase or the new one, and no reader sees half of each.
 *
 * A switch needs the exclusive lock, so it must not call the daemon: other programs would wait for
 * the lock as long. Instead the daemon publishes the hash of each layout's name in the control
 * object, at the index of the layout. Reading the phase needs no lock. */
#include <inttypes.h>
#include <limits.h>

#include "client/lock/word.h"
#include "client/views/handle.h"
#include "common/base/layout_hash.h"
#include "common/base/util.h"

/* Returns the phase word, or 0 (no phase yet) for a segment without a lock. Acquire: a program that
 * sees a phase also sees what the switching program wrote before. */
static uint64_t load_phase(const struct shmview_segment *s)
{
    struct shmview_control *c = s->lock.control;
    return c ? atomic_load_explicit(word64(&c->phase), memory_order_acquire) : 0;
}

static uint32_t generation_of(uint64_t phase)
{
    return (uint32_t)phase;
}

static uint32_t layout_of(uint64_t phase)
{
    return (uint32_t)(phase >> 32) - 1; /* UINT32_MAX: no phase yet */
}

/* Fills *ret from a phase word. Asks the daemon for the name of a layout that the handle does not
 * know. Returns 0 or an error. */
static int describe(struct shmview_segment *s, uint64_t phase, struct shmview_phase *ret)
{
    struct shmview_phase p = {.generation = generation_of(phase), .layout = layout_of(phase)};
    int r = p.generation ? layout_name(s, p.layout, p.name, sizeof p.name) : 0;
    if (r == 0)
        *ret = p;
    return r;
}

int shmview_phase_get(struct shmview_segment *segment, struct shmview_phase *ret_phase)
{
    int r = lock_enter(&segment->lock);
    return r ? r : describe(segment, load_phase(segment), ret_phase);
}

/* Like shmview_phase_get(), but never calls the daemon. Therefore a forked child may call it before
 * it attaches, and the name may be missing. */
int shmview_phase_read(struct shmview_segment *segment, struct shmview_phase *ret_phase)
{
    if (!segment->lock.control)
        return fail_no_lock(segment);
    uint64_t phase = load_phase(segment);
    struct shmview_phase p = {.generation = generation_of(phase), .layout = layout_of(phase)};
    if (p.generation)
        layout_known_name(segment, p.layout, p.name, sizeof p.name);
    *ret_phase = p;
    return 0;
}

/* Finds a layout by the hash of its name in the control object. Does not call the daemon, because
 * the caller has the lock. Returns the index or an error. */
static int find_published(struct shmview_segment *s, const char *layout)
{
    uint64_t hash = layout_hash(layout);
    for (int i = 0; i < (int)SHMVIEW_LAYOUTS_MAX; i++)
        if (atomic_load_explicit(word64(&s->lock.control->layouts[i]), memory_order_relaxed) ==
            hash)
            return i;
    return fail_no_layout(s, layout);
}

int shmview_switch(struct shmview_segment *segment, const char *layout)
{
    int r = lock_enter(&segment->lock);
    if (r)
        return r;
    if (!held_by_me(&segment->lock))
        return fail_not_owner(&segment->lock);
    if (!word_is_mine(&segment->lock))
        return fail_lost(&segment->lock);
    if (segment->access != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_READ_ONLY, "segment '%s' is attached with access read",
                    segment->name);
    int index = find_published(segment, layout);
    if (index < 0)
        return index;
    struct shmview_control *c = segment->lock.control;
    uint32_t generation = generation_of(load_phase(segment)) + 1;
    if (generation == 0)
        generation = 1; /* because 0 means that there was no phase yet */
    uint64_t phase = (uint64_t)(uint32_t)(index + 1) << 32 | generation;
    STEP(AT_SWITCHES);
    atomic_store(word64(&c->phase), phase);
    STEP(AT_SWITCHED);
    wake(phase_word(c), INT_MAX);
    STEP(AT_SWITCH_WOKEN);
    return shmview_notify(segment);
}

/* Whether a wait for a phase is over. layout < 0: any layout is wanted. after 0: any generation is.
 * Generations wrap, so they are compared by their difference. */
static bool is_wanted(uint64_t phase, int layout, uint32_t after)
{
    bool past = after == 0 || (int32_t)(generation_of(phase) - after) > 0;
    return generation_of(phase) != 0 && past &&
           (layout < 0 || layout_of(phase) == (uint32_t)layout);
}

int shmview_wait_phase(struct shmview_segment *segment, const char *layout, uint32_t after,
                       int64_t deadline_ns, struct shmview_phase *ret_phase)
{
    int r = lock_enter(&segment->lock);
    int index = -1;
    if (r == 0 && layout)
        r = index = layout_find(segment, layout);
    if (r < 0)
        return r;
    int64_t deadline = deadline_ns > 0 ? deadline_ns : 0;
    /* The caller's function (shmview_on_wait()) runs after a sleep only, not before the first look.
     * park() compares the generation, so a switch between the look and the sleep is not missed. */
    for (bool has_parked = false;; has_parked = true) {
        uint64_t phase = load_phase(segment);
        if (is_wanted(phase, index, after))
            return describe(segment, phase, ret_phase);
        if (has_ended(&segment->lock))
            return fail_lost(&segment->lock);
        if (has_passed(deadline, now_ns()))
            return fail(SHMVIEW_ERR_TIMED_OUT, "'%s' has not switched to %s%s before the deadline",
                        segment->name, layout ? "layout " : "another phase", layout ? layout : "");
        if (has_parked && (r = wait_ask()))
            return r;
        park(&segment->lock, phase_word(segment->lock.control), generation_of(phase), NULL,
             deadline);
    }
}

/* --- Views --------------------------------------------------------------- */

int shmview_view_is_stale(const struct shmview_view *view)
{
    if (view->layout == UINT32_MAX || !view->segment->lock.control)
        return 0;
    uint64_t phase = load_phase(view->segment);
    return generation_of(phase) != 0 &&
           (generation_of(phase) != view->generation || layout_of(phase) != view->layout);
}

/* Takes the lock and then looks whether the view is stale. Nobody can switch while this thread has
 * the lock, so a view that is current then stays so until unlock. */
int shmview_view_lock(const struct shmview_view *view, int mode, int64_t deadline_ns)
{
    struct shmview_segment *s = view->segment;
    int r = mode == SHMVIEW_EXCLUSIVE ? shmview_lock_until(s, deadline_ns)
            : mode == SHMVIEW_SHARED  ? shmview_lock_shared_until(s, deadline_ns)
                                      : fail(SHMVIEW_ERR_INVALID, "lock mode %d", mode);
    if (r < 0 || !shmview_view_is_stale(view))
        return r;
    if (r == SHMVIEW_OWNER_DIED)
        shmview_unlock_not_repaired(s); /* so that the next owner gets the report too */
    else
        shmview_unlock(s);
    return fail(SHMVIEW_ERR_STALE, "the view is of phase %" PRIu32 ", '%s' is in phase %" PRIu32,
                view->generation, s->name, generation_of(load_phase(s)));
}
