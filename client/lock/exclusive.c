/* SPDX-License-Identifier: Apache-2.0 */
/* The exclusive calls.
 *
 * The lock word names a client, not a thread. Which thread of the client holds it, and how often,
 * is in struct lock, which no other process sees. Each uncontended call is one short function; the
 * rare cases are in functions that are not inlined, so that the short one saves no registers. */
#include "client/lock/word.h"
#include "common/base/util.h"

/* --- Failing ------------------------------------------------------------- */

__attribute__((noinline)) int fail_not_owner(const struct lock *l)
{
    return fail(SHMVIEW_ERR_NOT_OWNER, "this thread does not hold the lock of '%s'", l->name);
}

__attribute__((noinline)) int fail_timed_out(const struct lock *l)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "the lock of '%s' is held by another thread or process",
                l->name);
}

__attribute__((noinline)) int fail_lost(struct lock *l)
{
    if (!slot_is_mine(l))
        atomic_store(&l->epoch, LOST_EPOCH);
    else if (atomic_load(&l->epoch) != LOST_EPOCH)
        return fail(SHMVIEW_ERR_LOST,
                    "the lock of '%s' was taken away from this process by another one", l->name);
    return fail(SHMVIEW_ERR_LOST,
                "the daemon has ended this attachment of '%s', and its hold of the lock with it: "
                "detach it and attach again",
                l->name);
}

/* --- Taking -------------------------------------------------------------- */

int lock_again(struct lock *l)
{
    if (!word_is_mine(l))
        return fail_lost(l);
    if (l->nested == INT32_MAX)
        return fail(SHMVIEW_ERR_TOO_DEEP, "the lock of '%s' is held %u times", l->name, l->nested);
    l->nested++;
    return 0;
}

/* Goes inside although `inside` is set, and keeps the id of the dead owner for the report. The mark
 * stays set, now with this client's id: if this client dies too, the next one is also warned.
 * Returns SHMVIEW_OWNER_DIED. */
__attribute__((noinline)) static int go_inside_after_death(struct lock *l, uint64_t inside)
{
    l->dead = who_inside(inside);
    l->untidy = UNTIDY_OWNER_DIED;
    store_inside(l->control, inside, l->me);
    atomic_thread_fence(memory_order_release); /* as in go_inside() */
    STEP(AT_INSIDE);
    return SHMVIEW_OWNER_DIED;
}

/* Goes inside; the caller has the lock word, and no reader is left. control and me are those of l.
 * They are parameters because a caller that has them in registers saves two loads, which would
 * wait for its CAS. Returns 0 or SHMVIEW_OWNER_DIED. */
static inline int go_inside(struct lock *l, struct shmview_control *control, uint32_t me)
{
    uint64_t inside = atomic_load_explicit(word64(&control->inside), memory_order_relaxed);
    STEP(AT_GOES_INSIDE);
    atomic_store_explicit(&l->owner, &this_thread, memory_order_relaxed);
    if (__builtin_expect(who_inside(inside) != 0, 0))
        return go_inside_after_death(l, inside);
    atomic_store_explicit(word64(&control->inside), inside | me, memory_order_release);
    /* an optimistic reader that sees one of the caller's later stores also sees this one, and the
     * compiler moves none of them before it */
    atomic_thread_fence(memory_order_release);
    STEP(AT_INSIDE);
    return 0;
}

int finish_taking(struct lock *l, struct wait *w)
{
    int r = drain_readers(l, w);
    if (r == 0)
        return go_inside(l, l->control, l->me);
    STEP(AT_DRAIN_GIVES_UP);
    release_word(l, lock_word(l)); /* `inside` is unchanged: this call never went in */
    return r == -SHMVIEW_ERR_LOST ? fail_lost(l) : r < 0 ? fail_timed_out(l) : r;
}

/* Takes the lock in any state, and once more if this thread is inside already. A thread that
 * shares the lock gets an error, because it would wait for itself. Returns what finish_taking()
 * returns. */
static int take_anyhow(struct lock *l, struct wait *w)
{
    int r = lock_enter(l);
    if (r == 0)
        r = thread_open();
    if (r)
        return r;
    bool shared = thread_find(l) >= 0;
    thread_close(0);
    if (held_by_me(l))
        return lock_again(l);
    if (shared)
        return fail(SHMVIEW_ERR_DEADLOCK,
                    "this thread holds the lock of '%s' shared: it would wait for itself", l->name);
    r = take_word(l, w);
    return r ? r : finish_taking(l, w);
}

/* Takes the lock with waits. has_word: the caller has the lock word already, but readers may be
 * inside. */
__attribute__((noinline)) static int take_slowly(struct lock *l, int64_t deadline, bool has_word)
{
    struct wait w = {.deadline = deadline, .what = SHMVIEW_WAITS_EXCLUSIVE};
    int r = has_word ? finish_taking(l, &w) : take_anyhow(l, &w);
    while (r == WAIT_ASKS && (r = wait_goes_on(&w)) == 0)
        r = take_anyhow(l, &w);
    wait_over(l, &w);
    return r;
}

__attribute__((always_inline)) static inline int take(struct lock *l, int64_t deadline)
{
    uint32_t free = 0;
    struct shmview_control *c = l->control;
    uint32_t me = l->me;
    STEP(AT_TAKES);
    /* a thread that is inside already finds the word owned. The slot is checked before the CAS: a
     * check after it would exclude nothing else, because the slot may be lost at any time until
     * the release, and would cost a twentieth of the pair (docs/LAYOUT.md, "Exclusive"). */
    if (__builtin_expect(
            !is_ready(l) || this_thread.held || !slot_is_mine(l) || !swap(&c->lock, &free, me), 0))
        return take_slowly(l, deadline, false);
    STEP(AT_TAKEN);
    if (__builtin_expect(any_group(atomic_load(word64(&c->reader_groups))), 0))
        return take_slowly(l, deadline, true);
    return go_inside(l, c, me);
}

int shmview_lock(struct shmview_segment *segment)
{
    return take(lock_of(segment), NEVER);
}

int shmview_trylock(struct shmview_segment *segment)
{
    return take(lock_of(segment), 0);
}

int shmview_lock_until(struct shmview_segment *segment, int64_t deadline_ns)
{
    return take(lock_of(segment), deadline_ns > 0 ? deadline_ns : 0);
}

int64_t shmview_deadline(int64_t timeout_ns)
{
    int64_t deadline;
    return __builtin_add_overflow(now_ns(), timeout_ns, &deadline) ? NEVER : deadline;
}

/* --- Giving back --------------------------------------------------------- */

/* Leaves after the death of an earlier owner, or without a repair. If the bytes are repaired, the
 * mark is cleared. If not, it stays, with the id of the client that died, or with this client's id
 * if none did. */
__attribute__((noinline)) static void go_outside_untidy(struct lock *l)
{
    bool repaired = !(l->untidy & UNTIDY_NOT_REPAIRED);
    uint32_t who = l->dead ? l->dead : l->me;
    STEP(AT_GOES_OUTSIDE);
    store_inside(l->control, load_inside(l) + SHMVIEW_INSIDE_VERSION, repaired ? 0 : who);
    STEP(AT_OUTSIDE_UNTIDY);
}

/* Clears the mark and advances the version. The release of the word publishes both. */
static inline void go_outside(struct shmview_control *c)
{
    /* the compiler must not move the caller's stores to after this */
    atomic_signal_fence(memory_order_seq_cst);
    STEP(AT_GOES_OUTSIDE);
    uint64_t inside = atomic_load_explicit(word64(&c->inside), memory_order_relaxed);
    store_inside(c, inside + SHMVIEW_INSIDE_VERSION, 0);
    STEP(AT_OUTSIDE);
}

/* Releases a word that has changed since it was taken: W or R is set, or another client has it. */
__attribute__((noinline)) static int give_word(struct lock *l)
{
    return release_word(l, lock_word(l)) ? fail_lost(l) : 0;
}

/* Releases a lock that is held more than once, must leave untidily, or has a changed word. */
__attribute__((noinline)) static int release_unusually(struct lock *l)
{
    if (l->nested) {
        l->nested--;
        return word_is_safe(l) ? 0 : fail_lost(l);
    }
    if (owner_of(lock_word(l)) == l->me) {
        if (l->untidy)
            go_outside_untidy(l);
        else
            go_outside(l->control);
    }
    /* Also if another client has the word. Otherwise the next unlock of this handle would report a
     * death, or bytes that are not repaired, about what others have put in order since. */
    l->untidy = l->dead = 0;
    atomic_store_explicit(&l->owner, NULL, memory_order_relaxed);
    return give_word(l);
}

static inline int release(struct lock *l)
{
    struct shmview_control *c = l->control;
    uint32_t me = l->me, v = atomic_load_explicit(word(&c->lock), memory_order_relaxed);
    if (__builtin_expect((l->nested | l->untidy) != 0 || v != me, 0))
        return release_unusually(l);
    go_outside(c);
    atomic_store_explicit(&l->owner, NULL, memory_order_relaxed);
    if (__builtin_expect(!swap(&c->lock, &me, 0), 0))
        return give_word(l);
    STEP(AT_RELEASED_ALONE);
    return 0;
}

int release_exclusive(struct lock *l)
{
    return release(l);
}

__attribute__((noinline)) static int unlock_slowly(struct lock *l)
{
    int r = enter_to_leave(l);
    if (r)
        return r;
    return held_by_me(l) ? release(l) : release_shared(l);
}

int shmview_unlock(struct shmview_segment *segment)
{
    struct lock *l = lock_of(segment);
    if (__builtin_expect(!is_ready(l), 0))
        return unlock_slowly(l);
    if (held_by_me(l))
        return release(l);
    if (__builtin_expect(this_thread.held != l, 0))
        return unlock_slowly(l);
    this_thread.held = NULL;
    return leave_slot(l);
}

void shmview_unlock_scope(struct shmview_segment **segment)
{
    if (*segment)
        shmview_unlock(*segment);
}

int shmview_unlock_not_repaired(struct shmview_segment *segment)
{
    struct lock *l = lock_of(segment);
    int r = enter_to_leave(l);
    if (r)
        return r;
    if (!held_by_me(l))
        return fail_not_owner(l);
    l->untidy |= UNTIDY_NOT_REPAIRED;
    return release(l);
}

/* A lost lock is not marked, because it may have its next owner already. */
void abandon(struct lock *l)
{
    STEP(AT_THREAD_EXITS);
    if (word_is_mine(l))
        store_inside(l->control, load_inside(l) + SHMVIEW_INSIDE_VERSION, l->me);
    l->nested = 0;
    l->dead = 0;
    l->untidy = 0;
    atomic_store_explicit(&l->owner, NULL, memory_order_relaxed);
    STEP(AT_THREAD_MARKED);
    release_word(l, lock_word(l));
}
