/* SPDX-License-Identifier: Apache-2.0 */
/* The shared calls. A reader counts itself in its slot, then looks at the word; an
 * owner takes the word, then looks at the slots. Both are seq_cst, so at least one
 * of them sees the other. A reader that finds the word owned steps back and parks
 * on reader_gate; after a few failures, or to repair what a dead owner left, it
 * takes the word itself, as a writer does, and counts itself under it. */
#include <limits.h>

#include "client/lock/lock.h"
#include "common/base/util.h"

/* After so many attempts a reader takes its turn among the writers. */
#define FAILURES_FAIR 3

/* --- The slot ------------------------------------------------------------ */

static bool enter_slot(struct shmview_segment *s)
{
    struct shmview_control *c = s->control;
    if (__builtin_expect(!atomic_load(word(&c->readers_used)), 0))
        atomic_store(word(&c->readers_used), 1);
    STEP(AT_READERS_USED);
    if (!slot_is_mine(s))
        return false;
    atomic_fetch_add(word(s->my_readers), 1);
    return true;
}

__attribute__((noinline)) int wake_drain(struct shmview_segment *s)
{
    struct shmview_control *c = s->control;
    uint32_t v = atomic_load(word(s->my_readers));
    if (!(v & SHMVIEW_READER_COUNT_MASK)) { /* the last thread of this process */
        STEP(AT_DRAIN_OWED);
        atomic_fetch_add(word(&c->drain), 1);
        STEP(AT_DRAIN_TOLD);
        wake(&c->drain, INT_MAX);
    }
    return 0;
}

static void remember(struct shmview_segment *s)
{
    self.shared[self.n_shared].segment = s;
    self.shared[self.n_shared].depth = 1;
    self.n_shared++;
}

/* --- Taking -------------------------------------------------------------- */

/* Takes the word; then either inside exclusively, to repair, or counted as a
 * reader while no writer can come in between. */
static int lock_by_word(struct shmview_segment *s, int64_t deadline)
{
    int r = take_word(s, deadline, SHMVIEW_WAITS_SHARED);
    if (r)
        return r;
    STEP(AT_FAIR_TAKEN);
    if (who_inside(load_inside(s))) {
        STEP(AT_FAIR_REPAIRS);
        return finish_taking(s, deadline);
    }
    if (enter_slot(s))
        remember(s);
    else
        r = fail_lost(s);
    STEP(AT_FAIR_COUNTED);
    release_word(s, lock_word(s));
    return r;
}

static bool spin_until_free(struct shmview_segment *s)
{
    for (int i = spins_allowed(); i > 0; i--) {
        if (!owner_of(lock_word(s)))
            return true;
        relax();
    }
    return false;
}

/* Parks until the word is given back, if a living owner has it. */
static void wait_at_gate(struct shmview_segment *s, int64_t deadline, bool *waits)
{
    struct shmview_control *c = s->control;
    uint32_t deaths = atomic_load(const_word(&s->live->deaths));
    uint32_t gate = atomic_load(word(&c->reader_gate));
    uint32_t v = atomic_load(word(&c->lock));
    STEP(AT_GATE_SEEN);
    if (!owner_of(v) || !is_alive(s, v))
        return;
    if (!(v & SHMVIEW_LOCK_READERS) && !swap(&c->lock, &v, v | SHMVIEW_LOCK_READERS))
        return;
    STEP(AT_R_SET);
    if (!*waits) {
        wait_begins(s, SHMVIEW_WAITS_SHARED);
        *waits = true;
    }
    STEP(AT_GATE_PARKS);
    park(s, &c->reader_gate, gate, &deaths, deadline);
    STEP(AT_GATE_UNPARKED);
}

/* One attempt, my count being mine: returns 0 when inside, else the word as it was seen. */
static uint32_t try_slot(struct shmview_segment *s, bool *ret_dirty)
{
    STEP(AT_COUNTED);
    uint32_t v = atomic_load(word(&s->control->lock));
    *ret_dirty = !owner_of(v) && who_inside(load_inside(s));
    if (!owner_of(v) && !*ret_dirty) {
        remember(s);
        STEP(AT_SHARES);
        return 0;
    }
    leave_slot(s);
    return v;
}

static int lock_shared_waiting(struct shmview_segment *s, int64_t deadline, bool *waits)
{
    for (int failures = 0;; failures++) {
        bool dirty;
        if (!enter_slot(s))
            return fail_lost(s);
        uint32_t v = try_slot(s, &dirty);
        if (!dirty && !owner_of(v))
            return 0;
        if (dirty || !is_alive(s, v) || failures >= FAILURES_FAIR)
            return lock_by_word(s, deadline);
        if (has_passed(deadline, now_ns()))
            return fail_timed_out(s);
        if (failures > 0 || !spin_until_free(s))
            wait_at_gate(s, deadline, waits);
    }
}

/* The table of the thread is open. */
static int lock_shared_anyhow(struct shmview_segment *s, int64_t deadline)
{
    bool waits = false;
    if (held_by_me(s))
        return lock_again(s); /* the exclusive holder may read */
    int entry = thread_find(s);
    if (entry >= 0) {
        if (!slot_is_mine(s))
            return fail_lost(s);
        self.shared[entry].depth++; /* nested: never waits behind a writer */
        return 0;
    }
    if (self.n_shared == SHARED_MAX)
        return fail(SHMVIEW_ERR_LIMIT, "this thread holds %d segments shared, which is the limit",
                    SHARED_MAX);
    int r = lock_shared_waiting(s, deadline, &waits);
    if (waits)
        wait_ends(s, r < 0);
    return r;
}

int lock_shared(struct shmview_segment *s, int64_t deadline)
{
    int r = enter(s);
    if (r == 0)
        r = thread_open();
    return r ? r : thread_close(lock_shared_anyhow(s, deadline));
}

__attribute__((noinline)) static int lock_shared_again(struct shmview_segment *s, int64_t deadline)
{
    leave_slot(s);
    return lock_shared(s, deadline);
}

__attribute__((always_inline)) static inline int lock_shared_until(struct shmview_segment *s,
                                                                   int64_t deadline)
{
    struct shmview_control *c = s->control;
    if (__builtin_expect(!is_ready(s) || self.held || !atomic_load(word(&c->readers_used)) ||
                             !slot_is_mine(s),
                         0))
        return lock_shared(s, deadline);
    STEP(AT_COUNTS);
    atomic_fetch_add(word(s->my_readers), 1);
    STEP(AT_COUNTED);
    /* a thread that holds exclusively finds the word owned */
    if (__builtin_expect(owner_of(atomic_load(word(&c->lock))) || who_inside(load_inside(s)), 0))
        return lock_shared_again(s, deadline);
    self.held = s;
    STEP(AT_SHARES);
    return 0;
}

int shmview_lock_shared(struct shmview_segment *segment)
{
    return lock_shared_until(segment, NEVER);
}

int shmview_trylock_shared(struct shmview_segment *segment)
{
    return lock_shared_until(segment, 0);
}

int shmview_lock_shared_until(struct shmview_segment *segment, int64_t deadline_ns)
{
    return lock_shared_until(segment, deadline_ns > 0 ? deadline_ns : 0);
}

/* --- Giving back --------------------------------------------------------- */

int unlock_shared(struct shmview_segment *s)
{
    int r = thread_open();
    if (r)
        return r;
    int entry = thread_find(s);
    if (entry < 0)
        return thread_close(fail_not_owner(s));
    if (--self.shared[entry].depth)
        return thread_close(0);
    self.shared[entry] = self.shared[--self.n_shared];
    return thread_close(leave_slot(s));
}

/* --- Optimistic reads ---------------------------------------------------- */

int shmview_read_begin(struct shmview_segment *segment, uint64_t *ret_version)
{
    int r = enter(segment);
    if (r)
        return r;
    uint64_t *at = &segment->control->inside;
    uint64_t inside = atomic_load_explicit(word64(at), memory_order_acquire);
    for (int i = spins_allowed(); who_inside(inside) && i > 0; i--) {
        relax();
        inside = atomic_load_explicit(word64(at), memory_order_acquire);
    }
    if (who_inside(inside))
        return fail(SHMVIEW_ERR_BUSY, "an owner of the lock of '%s' is inside, or died there",
                    segment->name);
    *ret_version = inside;
    return 0;
}

int shmview_read_validate(const struct shmview_segment *segment, uint64_t version)
{
    if (!segment->control)
        return 0;
    atomic_thread_fence(memory_order_acquire); /* behind the reads that are judged */
    return load_inside(segment) == version;
}
