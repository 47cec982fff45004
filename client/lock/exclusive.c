/* SPDX-License-Identifier: Apache-2.0 */
/* The exclusive calls. Which thread holds the word for this process, and how often, is
 * private; everything shared is in the control object. */
#include "client/lock/word.h"
#include "common/base/util.h"

/* --- Failing ------------------------------------------------------------- */

__attribute__((noinline)) int fail_not_owner(const struct lock *l)
{
    return fail(SHMVIEW_ERR_NOT_OWNER, "this thread does not hold the lock of '%s'", l->name);
}

__attribute__((noinline)) int fail_timed_out(const struct lock *l)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "the lock of '%s' is held by another", l->name);
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

/* Returns SHMVIEW_OWNER_DIED. */
__attribute__((noinline)) static int go_inside_after_death(struct lock *l, uint64_t inside)
{
    l->dead = who_inside(inside);
    l->untidy = UNTIDY_OWNER_DIED;
    store_inside(l->control, inside, l->me);
    atomic_thread_fence(memory_order_release); /* as in go_inside() */
    STEP(AT_INSIDE);
    return SHMVIEW_OWNER_DIED;
}

/* The word is mine and the readers are gone: goes inside. control and me are those of l: a
 * caller that has them in registers saves loads, which wait for its swap. Returns 0 or
 * SHMVIEW_OWNER_DIED. */
static inline int go_inside(struct lock *l, struct shmview_control *control, uint32_t me)
{
    uint64_t inside = atomic_load_explicit(word64(&control->inside), memory_order_relaxed);
    STEP(AT_GOES_INSIDE);
    atomic_store_explicit(&l->owner, &this_thread, memory_order_relaxed);
    if (__builtin_expect(who_inside(inside) != 0, 0))
        return go_inside_after_death(l, inside);
    atomic_store_explicit(word64(&control->inside), inside | me, memory_order_release);
    /* an optimistic reader that sees one of the caller's stores sees this one; and
     * the compiler keeps the caller's stores behind it */
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
    release_word(l, lock_word(l)); /* inside is as it was */
    return r == -SHMVIEW_ERR_LOST ? fail_lost(l) : r < 0 ? fail_timed_out(l) : r;
}

/* Takes it, once more where this thread has it. Returns what finish_taking() does. */
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

/* has_word: the word is mine, and readers may be left. */
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
    /* a thread that holds it already finds the word owned. The slot is looked at before the swap:
     * a look after it would exclude no more, since the slot may be lost until the lock is given
     * back, and would cost a twentieth of the pair (docs/LAYOUT.md, "Exclusive"). */
    if (__builtin_expect(
            !is_ready(l) || this_thread.held || !slot_is_mine(l) || !swap(&c->lock, &free, me), 0))
        return take_slowly(l, deadline, false);
    STEP(AT_TAKEN);
    if (__builtin_expect(atomic_load(word(&c->readers_used)) != 0, 0))
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

/* The bytes are not in order, or were not when the lock was taken. Whoever said
 * "not repaired" did not die: the next owner is told who did. */
__attribute__((noinline)) static void go_outside_untidy(struct lock *l)
{
    bool repaired = !(l->untidy & UNTIDY_NOT_REPAIRED);
    uint32_t who = l->dead ? l->dead : l->me;
    STEP(AT_GOES_OUTSIDE);
    store_inside(l->control, load_inside(l) + SHMVIEW_INSIDE_VERSION, repaired ? 0 : who);
    STEP(AT_OUTSIDE_UNTIDY);
    l->untidy = 0;
    l->dead = 0;
}

/* Nobody is inside now, and the version advances. The release of the word publishes both. */
static inline void go_outside(struct shmview_control *c)
{
    atomic_signal_fence(memory_order_seq_cst); /* behind the caller's stores */
    STEP(AT_GOES_OUTSIDE);
    uint64_t inside = atomic_load_explicit(word64(&c->inside), memory_order_relaxed);
    store_inside(c, inside + SHMVIEW_INSIDE_VERSION, 0);
    STEP(AT_OUTSIDE);
}

/* The word has changed since it was taken: others wait, or it is not mine. */
__attribute__((noinline)) static int give_word(struct lock *l)
{
    return release_word(l, lock_word(l)) ? fail_lost(l) : 0;
}

/* Where the lock is held more than once, the bytes are not in order, or the word has changed. */
__attribute__((noinline)) static int release_unusually(struct lock *l)
{
    if (l->nested) {
        l->nested--;
        return word_is_mine(l) ? 0 : fail_lost(l);
    }
    if (owner_of(lock_word(l)) == l->me) {
        if (l->untidy)
            go_outside_untidy(l);
        else
            go_outside(l->control);
    }
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

/* A lock that was lost has its next owner already. */
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
