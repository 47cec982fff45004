/* SPDX-License-Identifier: Apache-2.0 */
/* The exclusive calls. Who holds the word for this process, and how often, is
 * private and names a thread; everything shared is in the control object. */
#include "client/lock/lock.h"

#include "common/base/util.h"

/* --- Failing ------------------------------------------------------------- */

__attribute__((noinline)) int fail_not_owner(const struct shmview_segment *s)
{
    return fail(SHMVIEW_ERR_NOT_OWNER, "this thread does not hold the lock of '%s'", s->name);
}

__attribute__((noinline)) int fail_timed_out(const struct shmview_segment *s)
{
    return fail(SHMVIEW_ERR_TIMED_OUT, "the lock of '%s' is held by another", s->name);
}

__attribute__((noinline)) int fail_lost(struct shmview_segment *s)
{
    if (!slot_is_mine(s))
        atomic_store(&s->lock.epoch, LOST_EPOCH);
    else if (atomic_load(&s->lock.epoch) != LOST_EPOCH)
        return fail(SHMVIEW_ERR_LOST,
                    "the lock of '%s' was taken away from this process by another one", s->name);
    return fail(SHMVIEW_ERR_LOST,
                "the daemon has ended this attachment of '%s', and its hold of the lock with it: "
                "detach it and attach again",
                s->name);
}

/* --- Taking -------------------------------------------------------------- */

int lock_again(struct shmview_segment *s)
{
    if (!word_is_mine(s))
        return fail_lost(s);
    if (s->lock.nested == INT32_MAX)
        return fail(SHMVIEW_ERR_TOO_DEEP, "the lock of '%s' is held %u times", s->name,
                    s->lock.nested);
    s->lock.nested++;
    return 0;
}

__attribute__((noinline)) int go_inside_after_death(struct shmview_segment *s, uint64_t inside)
{
    s->lock.dead = who_inside(inside);
    s->lock.untidy = UNTIDY_OWNER_DIED;
    store_inside(s->control, inside, s->me);
    atomic_thread_fence(memory_order_release); /* as in go_inside() */
    STEP(AT_INSIDE);
    return SHMVIEW_OWNER_DIED;
}

int finish_taking(struct shmview_segment *s, int64_t deadline)
{
    int r = drain_readers(s, deadline);
    if (r == 0)
        return go_inside(s, s->control, s->me);
    STEP(AT_DRAIN_GIVES_UP);
    release_word(s, lock_word(s)); /* inside is as it was */
    return r == -SHMVIEW_ERR_LOST ? fail_lost(s) : fail_timed_out(s);
}

int lock_exclusive(struct shmview_segment *s, int64_t deadline)
{
    int r = take_word(s, deadline, SHMVIEW_WAITS_EXCLUSIVE);
    return r ? r : finish_taking(s, deadline);
}

__attribute__((noinline)) static int lock_slowly(struct shmview_segment *s, int64_t deadline)
{
    int r = enter(s);
    if (r == 0)
        r = thread_open();
    if (r)
        return r;
    bool shared = thread_find(s) >= 0;
    thread_close(0);
    if (held_by_me(s))
        return lock_again(s);
    if (shared)
        return fail(SHMVIEW_ERR_DEADLOCK,
                    "this thread holds the lock of '%s' shared: it would wait for itself", s->name);
    return lock_exclusive(s, deadline);
}

__attribute__((always_inline)) static inline int lock_until(struct shmview_segment *s,
                                                            int64_t deadline)
{
    uint32_t free = 0;
    struct shmview_control *c = s->control;
    uint32_t me = s->me;
    STEP(AT_TAKES);
    /* a thread that holds it already finds the word owned. The slot is looked at before the swap:
     * a look after it would exclude no more, since the slot may be lost until the lock is given
     * back, and would cost a twentieth of the pair (docs/LAYOUT.md, "Exclusive"). */
    if (__builtin_expect(
            !is_ready(s) || self.held || !slot_is_mine(s) || !swap(&c->lock, &free, me), 0))
        return lock_slowly(s, deadline);
    STEP(AT_TAKEN);
    if (__builtin_expect(atomic_load(word(&c->readers_used)) != 0, 0))
        return finish_taking(s, deadline);
    return go_inside(s, c, me);
}

int shmview_lock(struct shmview_segment *segment)
{
    return lock_until(segment, NEVER);
}

int shmview_trylock(struct shmview_segment *segment)
{
    return lock_until(segment, 0);
}

int shmview_lock_until(struct shmview_segment *segment, int64_t deadline_ns)
{
    return lock_until(segment, deadline_ns > 0 ? deadline_ns : 0);
}

int64_t shmview_deadline(int64_t timeout_ns)
{
    int64_t deadline;
    return __builtin_add_overflow(now_ns(), timeout_ns, &deadline) ? NEVER : deadline;
}

/* --- Giving back --------------------------------------------------------- */

/* The bytes are not in order, or were not when the lock was taken. Whoever said
 * "not repaired" did not die: the next owner is told who did. */
__attribute__((noinline)) static void go_outside_untidy(struct shmview_segment *s)
{
    bool repaired = !(s->lock.untidy & UNTIDY_NOT_REPAIRED);
    uint32_t who = s->lock.dead ? s->lock.dead : s->me;
    STEP(AT_GOES_OUTSIDE);
    store_inside(s->control, load_inside(s) + SHMVIEW_INSIDE_VERSION, repaired ? 0 : who);
    STEP(AT_OUTSIDE_UNTIDY);
    s->lock.untidy = 0;
    s->lock.dead = 0;
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
__attribute__((noinline)) static int give_word(struct shmview_segment *s)
{
    return release_word(s, lock_word(s)) ? fail_lost(s) : 0;
}

/* Where the lock is held more than once, the bytes are not in order, or the word has changed. */
__attribute__((noinline)) static int unlock_unusually(struct shmview_segment *s)
{
    if (s->lock.nested) {
        s->lock.nested--;
        return word_is_mine(s) ? 0 : fail_lost(s);
    }
    if (owner_of(lock_word(s)) == s->me) {
        if (s->lock.untidy)
            go_outside_untidy(s);
        else
            go_outside(s->control);
    }
    atomic_store_explicit(&s->lock.owner, NULL, memory_order_relaxed);
    return give_word(s);
}

static inline int unlock_exclusive(struct shmview_segment *s)
{
    struct shmview_control *c = s->control;
    uint32_t me = s->me, v = atomic_load_explicit(word(&c->lock), memory_order_relaxed);
    if (__builtin_expect((s->lock.nested | s->lock.untidy) != 0 || v != me, 0))
        return unlock_unusually(s);
    go_outside(c);
    atomic_store_explicit(&s->lock.owner, NULL, memory_order_relaxed);
    if (__builtin_expect(!swap(&c->lock, &me, 0), 0))
        return give_word(s);
    STEP(AT_RELEASED_ALONE);
    return 0;
}

__attribute__((noinline)) static int unlock_slowly(struct shmview_segment *s)
{
    int r = enter_to_leave(s);
    if (r)
        return r;
    return held_by_me(s) ? unlock_exclusive(s) : unlock_shared(s);
}

int shmview_unlock(struct shmview_segment *segment)
{
    if (__builtin_expect(!is_ready(segment), 0))
        return unlock_slowly(segment);
    if (held_by_me(segment))
        return unlock_exclusive(segment);
    if (__builtin_expect(self.held != segment, 0))
        return unlock_slowly(segment);
    self.held = NULL;
    return leave_slot(segment);
}

void shmview_unlock_scope(struct shmview_segment **segment)
{
    if (*segment)
        shmview_unlock(*segment);
}

int shmview_unlock_not_repaired(struct shmview_segment *segment)
{
    int r = enter_to_leave(segment);
    if (r)
        return r;
    if (!held_by_me(segment))
        return fail_not_owner(segment);
    segment->lock.untidy |= UNTIDY_NOT_REPAIRED;
    return unlock_exclusive(segment);
}
