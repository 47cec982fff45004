/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the lock share: words, threads, waiting.
 *
 *   park.c     waiting for a word to change, or for a death
 *   word.c     taking and giving back the lock word; draining readers
 *   thread.c   what a thread holds; its end; slots
 *   lock.c     the exclusive calls, and unlock
 *   shared.c   the shared calls, and optimistic reads
 *
 * Every access of two processes to one word is a C11 atomic on its address in the
 * mapping. The order of the words matters where it says seq_cst. */
#ifndef CLIENT_LOCK_H
#define CLIENT_LOCK_H

#include <signal.h>

#include "client/base/private.h"

/* Places where the stress test lets a process die; nothing in the product. */
#ifdef SHMVIEW_STEPS
#include "client/lock/steps.h"
#define STEP(n) shmview_step(n)
#else
#define STEP(n) ((void)0)
#endif

#pragma GCC visibility push(hidden)

/* --- Words --------------------------------------------------------------- */

static inline _Atomic uint32_t *word(uint32_t *p)
{
    return (_Atomic uint32_t *)p;
}

static inline const _Atomic uint32_t *const_word(const uint32_t *p)
{
    return (const _Atomic uint32_t *)p;
}

static inline _Atomic uint64_t *word64(uint64_t *p)
{
    return (_Atomic uint64_t *)p;
}

static inline uint32_t owner_of(uint32_t v)
{
    return v & SHMVIEW_LOCK_OWNER;
}

/* A seq_cst CAS, the only way in which the lock word ever changes. */
static inline bool swap(uint32_t *at, uint32_t *expected, uint32_t desired)
{
    return atomic_compare_exchange_strong(word(at), expected, desired);
}

/* Who went inside and has not left in order: 0 for nobody. */
static inline uint32_t who_inside(uint64_t inside)
{
    return (uint32_t)inside & SHMVIEW_LOCK_OWNER;
}

static inline uint64_t load_inside(const struct shmview_segment *s)
{
    return atomic_load_explicit(word64(&s->control->inside), memory_order_relaxed);
}

static inline void store_inside(struct shmview_control *control, uint64_t version, uint32_t who)
{
    uint64_t high = version & ~(uint64_t)SHMVIEW_LOCK_OWNER;
    atomic_store_explicit(word64(&control->inside), high | who, memory_order_release);
}

/* Whether the daemon knows the user with this id. Rubbish reads as dead. */
bool is_alive(const struct shmview_segment *s, uint32_t id);

/* --- Waiting: park.c ----------------------------------------------------- */

/* Deadlines are absolute, CLOCK_MONOTONIC. NEVER waits for ever, 0 not at all. */
#define NEVER INT64_MAX

static inline bool has_passed(int64_t deadline, int64_t now)
{
    return deadline != NEVER && (deadline == 0 || now >= deadline);
}

/* How often to look again before parking: 0 where the other cannot run meanwhile. */
int spins_allowed(void);
void relax(void);

/* Waits while *at is value and no death was published since deaths was read, until
 * the deadline at the latest. May return for no reason: look again. deaths NULL:
 * deaths do not matter. */
void park(const struct shmview_segment *s, const uint32_t *at, uint32_t value,
          const uint32_t *deaths, int64_t deadline);
/* Wakes up to n who are parked on at. Returns how many were. */
int wake(uint32_t *at, int n);

/* Notes in my slot that I wait, for people; and that I wait no more, be it in vain: who tries
 * again at once has waited all the while. */
void wait_begins(struct shmview_segment *s, uint32_t what);
void wait_ends(struct shmview_segment *s, bool in_vain);

/* --- The word: word.c ---------------------------------------------------- */

/* Takes the word, unless the slot is not mine any more; what is wanted, SHMVIEW_WAITS_*, is for
 * people. Returns 0, -SHMVIEW_ERR_TIMED_OUT or _LOST. */
int take_word(struct shmview_segment *s, int64_t deadline, uint32_t what);

/* Wakes whom a word that was v owes a wake-up, now that it is given back. */
void wake_waiters(struct shmview_segment *s, uint32_t v);

/* Gives the word back; v is what it was a moment ago. Returns 0, or
 * -SHMVIEW_ERR_NOT_OWNER if it names another by now; then nothing is touched. */
static inline int release_word(struct shmview_segment *s, uint32_t v)
{
    STEP(AT_RELEASES);
    do
        if (__builtin_expect(owner_of(v) != s->me, 0))
            return -SHMVIEW_ERR_NOT_OWNER;
    while (__builtin_expect(!swap(&s->control->lock, &v, 0), 0));
    if (__builtin_expect((v & (SHMVIEW_LOCK_WRITERS | SHMVIEW_LOCK_READERS)) != 0, 0))
        wake_waiters(s, v);
    return 0;
}

static inline uint32_t lock_word(const struct shmview_segment *s)
{
    return atomic_load_explicit(word(&s->control->lock), memory_order_relaxed);
}

/* I own the word: waits until no living reader is left. Returns 0, -SHMVIEW_ERR_TIMED_OUT or
 * _LOST. */
int drain_readers(struct shmview_segment *s, int64_t deadline);

/* --- Threads: thread.c --------------------------------------------------- */

#define SHARED_MAX 64

/* What this thread holds shared. In the usual cases that is nothing (held NULL) or
 * one segment, once (held is that one). held is special until the thread's exit is
 * looked after, and while the table below is in use. */
struct thread_state {
    const void *held;
    uint32_t epoch; /* of the process that the entries belong to */
    uint32_t n_shared;
    uint32_t exit_rounds;      /* of destructors, since the thread began to end */
    int (*is_over)(void *arg); /* of shmview_on_wait(); NULL: nothing ends a wait */
    void *is_over_arg;
    bool is_asking;                  /* is_over() runs in this thread */
    volatile sig_atomic_t forks_off; /* this thread is inside NOT_FORKED, or about to be */
    struct thread_share {
        struct shmview_segment *segment;
        uint32_t depth;
    } * shared; /* SHARED_MAX of them, or NULL */
};
extern __thread struct thread_state self __attribute__((tls_model("initial-exec")));
extern const char thread_special;

/* Puts what is held into the table; registers the thread the first time; forgets
 * what an ancestor held. Returns 0 and owes thread_close(), or an error. */
int thread_open(void);
/* Back to the usual cases where they apply. Returns result. */
int thread_close(int result);

/* The entry of a segment in the table, or -1. */
int thread_find(const struct shmview_segment *s);

/* The handle will not be used any more: this thread gives back what it holds; where another
 * is inside, it has died there. What others share is theirs until they end. */
void lock_give_up(struct shmview_segment *segment);

static inline bool held_by_me(const struct shmview_segment *s)
{
    return atomic_load_explicit(&s->lock.owner, memory_order_relaxed) == &self;
}

/* Whether nothing is to be done before the word may be touched: one comparison
 * for "has a lock" and "is this process's own". */
static inline bool is_ready(const struct shmview_segment *s)
{
    return atomic_load_explicit(&s->lock.epoch, memory_order_acquire) ==
           atomic_load_explicit(&process->epoch, memory_order_relaxed);
}

int fail_no_lock(const struct shmview_segment *s);

/* What every call begins with where is_ready() does not hold. Returns 0 or an error. */
int enter_slowly(struct shmview_segment *s);

static inline int enter(struct shmview_segment *s)
{
    return __builtin_expect(is_ready(s), 1) ? 0 : enter_slowly(s);
}

/* Whether this process's attachment, not an ancestor's, is known to have ended. */
bool is_lost(const struct shmview_segment *s);

/* Like enter(), for calls that give the lock back: a handle that is lost may do that. */
int enter_to_leave(struct shmview_segment *s);

/* --- Inside: lock.c, shared.c -------------------------------------------- */

/* The rest of go_inside() where the last owner died inside. Returns SHMVIEW_OWNER_DIED. */
int go_inside_after_death(struct shmview_segment *s, uint64_t inside);

/* The word is mine and the readers are gone: goes inside. control and me are the segment's: a
 * caller that has them in registers saves loads, which wait for its swap. Returns 0 or
 * SHMVIEW_OWNER_DIED. */
static inline int go_inside(struct shmview_segment *s, struct shmview_control *control, uint32_t me)
{
    uint64_t inside = atomic_load_explicit(word64(&control->inside), memory_order_relaxed);
    STEP(AT_GOES_INSIDE);
    atomic_store_explicit(&s->lock.owner, &self, memory_order_relaxed);
    if (__builtin_expect(who_inside(inside) != 0, 0))
        return go_inside_after_death(s, inside);
    atomic_store_explicit(word64(&control->inside), inside | me, memory_order_release);
    /* an optimistic reader that sees one of the caller's stores sees this one; and
     * the compiler keeps the caller's stores behind it */
    atomic_thread_fence(memory_order_release);
    STEP(AT_INSIDE);
    return 0;
}

/* The word is mine: waits for the readers and goes inside. A client looks at its slot after each
 * sleep, as it has before it took the word: one whose attachment has ended would otherwise go
 * inside under an id that all others take for dead, and they would follow it. */
int finish_taking(struct shmview_segment *s, int64_t deadline);
/* Takes the lock exclusively, the thread holding nothing of this segment. */
int lock_exclusive(struct shmview_segment *s, int64_t deadline);
/* Nested: once more. */
int lock_again(struct shmview_segment *s);
/* Takes it shared; the whole of shmview_lock_shared_until(). */
int lock_shared(struct shmview_segment *s, int64_t deadline);
/* Gives back one shared hold, whichever way it is kept. */
int unlock_shared(struct shmview_segment *s);
/* Wakes an owner that waits for readers. Returns 0. */
int wake_drain(struct shmview_segment *s);

/* Whether the daemon still knows me by this slot. A process that was declared dead too
 * early must not count in its successor's: it looks here first, on a line that nobody
 * writes, since a look at the count itself would cost a third of the pair. (Whoever is
 * stopped between this and the count for as long as a slot needs to change hands can
 * still do harm.) */
static inline bool slot_is_mine(const struct shmview_segment *s)
{
    return atomic_load_explicit(const_word(s->my_life), memory_order_relaxed) ==
           s->me >> SHMVIEW_SLOT_BITS;
}

/* Whether the word names this process, and its slot is still its own. */
static inline bool word_is_mine(const struct shmview_segment *s)
{
    return owner_of(lock_word(s)) == s->me && slot_is_mine(s);
}

/* The slot or the word is not mine any more. If it is the slot, every later call that takes the
 * lock fails as well. Returns -SHMVIEW_ERR_LOST. */
int fail_lost(struct shmview_segment *s);

/* The slot's count goes down by one; an owner that waits for it is woken. Returns 0, or
 * an error, and touches nothing, if the slot is not mine any more. */
static inline int leave_slot(struct shmview_segment *s)
{
    if (__builtin_expect(!slot_is_mine(s), 0))
        return fail_lost(s);
    STEP(AT_UNCOUNTS);
    atomic_fetch_sub(word(s->my_readers), 1);
    STEP(AT_UNCOUNTED);
    if (__builtin_expect(owner_of(atomic_load(word(&s->control->lock))) != 0, 0))
        return wake_drain(s);
    return 0;
}

int fail_not_owner(const struct shmview_segment *s);
int fail_timed_out(const struct shmview_segment *s);

#pragma GCC visibility pop

#endif
