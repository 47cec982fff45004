/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of changes, and waits for it.
 *
 * Threads park on change_waits and not on the counter. Its low bit is set while a thread may be
 * parked, so that a notification without waiters makes no system call. */
#include <limits.h>
#include <sched.h>
#include <string.h>

#include "client/lock/word.h"
#include "common/base/util.h"

uint32_t shmview_change(const struct shmview_segment *segment)
{
    struct shmview_control *c = ((const struct lock *)(const void *)segment)->control;
    return c ? atomic_load_explicit(word(&c->change), memory_order_acquire) : 0;
}

/* Looks n times whether the counter has changed from seen. */
static bool look_for_change(const struct shmview_control *c, uint32_t seen, unsigned n)
{
    for (; n > 0; n--) {
        if (atomic_load_explicit(const_word(&c->change), memory_order_acquire) != seen)
            return true;
        relax();
    }
    return false;
}

/* Goes on after the first looks, until the counter has changed from seen or the time is over.
 * Returns whether it has changed. */
static bool spin_longer(const struct shmview_control *c, uint32_t seen, struct spin *spin,
                        unsigned looks, int64_t until)
{
    unsigned n_yields = 0;
    for (unsigned n = looks; now_ns() < until;) {
        n_yields += spin->looks > 0;
        if (spin->looks)
            sched_yield();
        if (n < SPIN_LOOKS_MOST)
            n *= 2;
        if (look_for_change(c, seen, n)) {
            spin_yielded(spin, looks, n_yields);
            return true;
        }
    }
    return false;
}

/* Spins for a change for as long as that has helped in earlier waits (common/base/spin.h). The
 * first looks of a thread that need not yield need no clock, which costs as much as a change from
 * another processor. */
static void spin_for_change(struct lock *l, uint32_t seen, int64_t deadline)
{
    struct spin spin = atomic_load_explicit(&l->spin, memory_order_relaxed), before = spin;
    if (!spins_allowed() || atomic_load(word(&l->control->change)) != seen)
        return;
    uint32_t ns = spin_begin(&spin);
    unsigned looks = spin_looks(&spin, spin.looks ? now_ns() : 0);
    if (ns && look_for_change(l->control, seen, looks)) {
        spin_yielded(&spin, looks, 0);
        spin_hit(&spin, ns, 0);
    } else {
        int64_t began = now_ns(), until = began + ns;
        if (deadline < until)
            until = deadline;
        if (spin_longer(l->control, seen, &spin, looks, until))
            spin_hit(&spin, ns, now_ns() - began);
        else
            spin_missed(&spin, ns);
    }
    if (memcmp(&spin, &before, sizeof spin) != 0)
        atomic_store_explicit(&l->spin, spin, memory_order_relaxed);
}

int shmview_wait_change(struct shmview_segment *segment, uint32_t seen, int64_t deadline_ns,
                        uint32_t *ret_change)
{
    struct lock *l = lock_of(segment);
    int r = lock_enter(l);
    if (r)
        return r;
    struct shmview_control *c = l->control;
    int64_t deadline = deadline_ns > 0 ? deadline_ns : 0;
    if (deadline)
        spin_for_change(l, seen, deadline);
    for (bool has_parked = false;;) {
        uint32_t waits = atomic_load(word(&c->change_waits));
        uint32_t now = atomic_load(word(&c->change));
        if (now != seen) {
            *ret_change = now;
            return 0;
        }
        if (has_ended(l))
            return fail_lost(l);
        if (has_passed(deadline, now_ns()))
            return fail(SHMVIEW_ERR_TIMED_OUT, "no change of '%s' before the deadline", l->name);
        /* set the flag, look again, then park: a notifier in between changes change_waits */
        if (!(waits & CHANGE_WAITED)) {
            swap(&c->change_waits, &waits, waits | CHANGE_WAITED);
            STEP(AT_CHANGE_WAITS);
            continue;
        }
        /* after the look at the counter, so that a wait which was woken for a change returns it */
        if (has_parked && (r = wait_ask()))
            return r;
        park(l, &c->change_waits, waits, NULL, deadline);
        has_parked = true;
    }
}

bool change_notify(struct lock *l, int n)
{
    struct shmview_control *c = l->control;
    atomic_fetch_add(word(&c->change), 1);
    STEP(AT_CHANGED);
    uint32_t waits = atomic_load(word(&c->change_waits));
    while (waits & CHANGE_WAITED)
        /* + 1 clears the flag, because all waiters are woken; + 2 keeps it for the others */
        if (swap(&c->change_waits, &waits, waits + (n == INT_MAX ? 1 : 2))) {
            STEP(AT_CHANGE_CLEARED);
            wake(&c->change_waits, n);
            break;
        }
    /* after the counter has changed: a watch that exists now is woken, and one that begins later
     * sees the new counter */
    return atomic_load(const_word(&l->live->watches)) != 0;
}
