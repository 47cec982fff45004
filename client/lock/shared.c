/* SPDX-License-Identifier: Apache-2.0 */
/* The shared calls, and optimistic reads.
 *
 * A reader counts itself in its slot, sets the bit of its group in reader_groups if it is clear,
 * and then reads the lock word. An owner takes the word, and then reads reader_groups and the slots
 * of the groups that are set. These steps are seq_cst, so at least one of the two sees the other.
 * The count is in the slot, not in the word, because the next owner must be able to remove the
 * share of a dead client.
 *
 * A reader that finds the word owned removes itself from the count and parks on reader_gate. After
 * a few failures it takes the word as a writer does and counts itself while it has it; otherwise a
 * stream of writers could keep it out. It does so too if an owner died inside, because only the
 * owner of the word can report and repair that. */
#include <limits.h>

#include "client/lock/word.h"

/* After so many failures a reader waits for the word among the writers. */
#define FAILURES_FAIR 3

/* --- The slot ------------------------------------------------------------ */

__attribute__((noinline)) int wake_drain(struct lock *l)
{
    struct shmview_control *c = l->control;
    uint32_t v = atomic_load(word(l->my_readers));
    if (!(v & SHMVIEW_READER_COUNT_MASK)) { /* the last thread of this process */
        STEP(AT_DRAIN_OWED);
        atomic_fetch_add(word(&c->drain), 1);
        STEP(AT_DRAIN_TOLD);
        wake(&c->drain, INT_MAX);
    }
    return 0;
}

/* Gives the word readers its generation back, with count 0. This drops what threads added to a word
 * without it: each of them has seen that, and counts itself again. The word is read before the
 * slot is checked. A CAS thus never replaces the word of the slot's next user. */
static void restore_readers(struct lock *l)
{
    uint32_t none = no_readers(l), v = atomic_load(word(l->my_readers));
    while (v >> SHMVIEW_READER_COUNT_BITS != none >> SHMVIEW_READER_COUNT_BITS && slot_is_mine(l) &&
           !swap(l->my_readers, &v, none))
        ;
}

__attribute__((noinline)) bool count_thread_again(struct lock *l)
{
    do {
        restore_readers(l);
        if (!slot_is_mine(l))
            return false;
    } while (!count_thread(l));
    return true;
}

/* If another thread has counted itself since the word lost its count, this thread has left in its
 * place, and that thread comes here. */
__attribute__((noinline)) int leave_uncounted(struct lock *l)
{
    restore_readers(l);
    if (owner_of(atomic_load(word(&l->control->lock))))
        wake_drain(l);
    return fail_lost(l);
}

/* A slot that has ended keeps its user, for whom owners wait as before. */
__attribute__((noinline)) int leave_lost_slot(struct lock *l)
{
    if (!is_alive(l, l->me))
        return fail_lost(l);
    if (atomic_fetch_sub(word(l->my_readers), 1) - no_readers(l) - 1 >= SHMVIEW_READER_COUNT_MASK)
        return leave_uncounted(l);
    return owner_of(atomic_load(word(&l->control->lock))) ? wake_drain(l) : 0;
}

/* Adds the lock to the table of this thread, which is open and has room. */
static void remember(struct lock *l)
{
    this_thread.shared[this_thread.n_shared].lock = l;
    this_thread.shared[this_thread.n_shared].depth = 1;
    this_thread.n_shared++;
}

/* --- Taking -------------------------------------------------------------- */

/* Takes the word as a writer does. If the last owner died inside, keeps the lock exclusively, so
 * that the caller can repair. Otherwise counts this thread as a reader, which no writer can
 * prevent now, and releases the word. Returns what finish_taking() returns. */
static int lock_by_word(struct lock *l, struct wait *w)
{
    int r = take_word(l, w);
    if (r)
        return r;
    STEP(AT_FAIR_TAKEN);
    if (who_inside(load_inside(l))) {
        STEP(AT_FAIR_REPAIRS);
        return finish_taking(l, w);
    }
    if (enter_slot(l))
        remember(l);
    else
        r = fail_lost(l);
    STEP(AT_FAIR_COUNTED);
    release_word(l, lock_word(l));
    return r;
}

/* Returns whether the word was seen free. */
static bool spin_until_free(struct lock *l)
{
    for (int i = spins_allowed(); i > 0; i--) {
        if (!owner_of(lock_word(l)))
            return true;
        relax();
    }
    return false;
}

/* Parks until the word is released, if a living owner has it. The gate is read before the word: a
 * release in between changes the gate, and the park ends at once. A loss of the slot after `deaths`
 * was read ends it, too. */
static void wait_at_gate(struct lock *l, struct wait *w)
{
    struct shmview_control *c = l->control;
    uint32_t deaths = atomic_load(const_word(&l->live->deaths));
    uint32_t gate = atomic_load(word(&c->reader_gate));
    uint32_t v = atomic_load(word(&c->lock));
    STEP(AT_GATE_SEEN);
    if (!owner_of(v) || !is_alive(l, v) || !slot_is_mine(l))
        return;
    if (!(v & SHMVIEW_LOCK_READERS) && !swap(&c->lock, &v, v | SHMVIEW_LOCK_READERS))
        return;
    STEP(AT_R_SET);
    STEP(AT_GATE_PARKS);
    wait_park(l, w, &c->reader_gate, gate, &deaths, v);
    STEP(AT_GATE_UNPARKED);
}

/* Reads the word after this thread was counted. If it is free, the thread shares the lock from now
 * on. If it is not, or if an owner died inside (*ret_dirty), the thread is removed from the count.
 * Returns the word, whose owner is 0 in the first case. */
static uint32_t try_slot(struct lock *l, bool *ret_dirty)
{
    uint32_t v = atomic_load(word(&l->control->lock));
    *ret_dirty = !owner_of(v) && who_inside(load_inside(l));
    if (!owner_of(v) && !*ret_dirty) {
        remember(l);
        STEP(AT_SHARES);
        return 0;
    }
    leave_slot(l);
    return v;
}

/* Shares the lock, and waits while it has a living owner. Returns 0, SHMVIEW_OWNER_DIED (then the
 * lock is held exclusively), WAIT_ASKS or an error. */
static int lock_shared_waiting(struct lock *l, struct wait *w)
{
    for (;; w->failures++) {
        bool dirty;
        if (!enter_slot(l))
            return fail_lost(l);
        uint32_t v = try_slot(l, &dirty);
        if (!dirty && !owner_of(v))
            return 0;
        if (dirty || !is_alive(l, v) || w->failures >= FAILURES_FAIR)
            return lock_by_word(l, w);
        int over = wait_ends(w);
        if (over)
            return over < 0 ? fail_timed_out(l) : over;
        if (w->failures > 0 || !spin_until_free(l))
            wait_at_gate(l, w);
    }
}

/* Takes the lock shared in any state of this thread, whose table is open. Returns what
 * lock_shared_waiting() returns. */
static int lock_shared_anyhow(struct lock *l, struct wait *w)
{
    if (held_by_me(l))
        return lock_again(l); /* the exclusive holder may read */
    int entry = thread_find(l);
    if (entry >= 0) {
        if (!slot_is_mine(l))
            return fail_lost(l);
        uint32_t *depth = &this_thread.shared[entry].depth;
        if (*depth > INT32_MAX)
            return fail(SHMVIEW_ERR_TOO_DEEP, "the lock of '%s' is held %u times", l->name, *depth);
        /* without a wait: a writer that waits for this thread would otherwise block it */
        ++*depth;
        return 0;
    }
    if (this_thread.n_shared == SHARED_MAX)
        return fail(SHMVIEW_ERR_LIMIT, "this thread holds %d segments shared, which is the limit",
                    SHARED_MAX);
    return lock_shared_waiting(l, w);
}

__attribute__((noinline)) static int take_shared_slowly(struct lock *l, int64_t deadline)
{
    struct wait w = {.deadline = deadline, .what = SHMVIEW_WAITS_SHARED};
    int r;
    do {
        r = lock_enter(l);
        if (r == 0)
            r = thread_open();
        if (r == 0)
            r = thread_close(lock_shared_anyhow(l, &w));
    } while (r == WAIT_ASKS && (r = wait_goes_on(&w)) == 0);
    wait_over(l, &w);
    return r;
}

__attribute__((noinline)) static int take_shared_again(struct lock *l, int64_t deadline)
{
    leave_slot(l);
    return take_shared_slowly(l, deadline);
}

__attribute__((always_inline)) static inline int take_shared(struct lock *l, int64_t deadline)
{
    struct shmview_control *c = l->control;
    if (__builtin_expect(!is_ready(l) || this_thread.held || !slot_is_mine(l), 0))
        return take_shared_slowly(l, deadline);
    uint64_t group = atomic_load_explicit(&l->my_group, memory_order_relaxed);
    STEP(AT_COUNTS);
    bool is_counted = count_thread(l);
    STEP(AT_COUNTED);
    if (__builtin_expect(!is_counted, 0))
        return take_shared_slowly(l, deadline); /* which counts this thread again */
    /* the slow function sets a group that is clear. A thread that is inside exclusively finds the
     * word owned, and nests there */
    if (__builtin_expect(
            !(atomic_load(word64(&c->reader_groups)) & group) ||
                owner_of(atomic_load(word(&c->lock))) ||
                who_inside(atomic_load_explicit(word64(&c->inside), memory_order_relaxed)),
            0))
        return take_shared_again(l, deadline);
    this_thread.held = l;
    STEP(AT_SHARES);
    return 0;
}

int shmview_lock_shared(struct shmview_segment *segment)
{
    return take_shared(lock_of(segment), NEVER);
}

int shmview_trylock_shared(struct shmview_segment *segment)
{
    return take_shared(lock_of(segment), 0);
}

int shmview_lock_shared_until(struct shmview_segment *segment, int64_t deadline_ns)
{
    return take_shared(lock_of(segment), deadline_ns > 0 ? deadline_ns : 0);
}

/* --- Giving back --------------------------------------------------------- */

int release_shared(struct lock *l)
{
    int r = thread_open();
    if (r)
        return r;
    int entry = thread_find(l);
    if (entry < 0)
        return thread_close(fail_not_owner(l));
    if (--this_thread.shared[entry].depth)
        return thread_close(0);
    this_thread.shared[entry] = this_thread.shared[--this_thread.n_shared];
    return thread_close(leave_slot(l));
}

/* --- Optimistic reads ---------------------------------------------------- */

__attribute__((noinline)) static int read_begin_slowly(struct lock *l, uint64_t *ret_version)
{
    int r = lock_enter(l);
    if (r)
        return r;
    uint64_t *at = &l->control->inside;
    uint64_t inside = atomic_load_explicit(word64(at), memory_order_acquire);
    for (int i = spins_allowed(); who_inside(inside) && i > 0; i--) {
        relax();
        inside = atomic_load_explicit(word64(at), memory_order_acquire);
    }
    if (who_inside(inside))
        return fail(SHMVIEW_ERR_BUSY, "an owner of the lock of '%s' is inside, or died there",
                    l->name);
    *ret_version = inside;
    return 0;
}

int shmview_read_begin(struct shmview_segment *segment, uint64_t *ret_version)
{
    struct lock *l = lock_of(segment);
    if (__builtin_expect(!is_ready(l), 0))
        return read_begin_slowly(l, ret_version);
    uint64_t inside = atomic_load_explicit(word64(&l->control->inside), memory_order_acquire);
    if (__builtin_expect(who_inside(inside) != 0, 0))
        return read_begin_slowly(l, ret_version);
    *ret_version = inside;
    return 0;
}

int shmview_read_validate(const struct shmview_segment *segment, uint64_t version)
{
    const struct lock *l = (const void *)segment;
    if (!l->control)
        return 0;
    atomic_thread_fence(memory_order_acquire); /* the caller's reads come before the next load */
    return load_inside(l) == version;
}
