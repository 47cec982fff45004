/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the lock share: words, threads, waiting.
 *
 *   park.c       waiting for a word to change, or for a death
 *   word.c       taking and giving back the lock word; draining readers
 *   slot.c       this process's slot
 *   thread.c     what a thread holds; its end
 *   exclusive.c  the exclusive calls
 *   shared.c     the shared calls, and optimistic reads
 *
 * Every access of two processes to one word is a C11 atomic on its address in the
 * mapping. The order of the words matters where it says seq_cst. */
#ifndef CLIENT_WORD_H
#define CLIENT_WORD_H

#include "client/base/error.h"
#include "client/lock/lock.h"

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

/* The owner that went inside and has not left in order: 0 for none. */
static inline uint32_t who_inside(uint64_t inside)
{
    return (uint32_t)inside & SHMVIEW_LOCK_OWNER;
}

static inline uint64_t load_inside(const struct lock *l)
{
    return atomic_load_explicit(word64(&l->control->inside), memory_order_relaxed);
}

static inline void store_inside(struct shmview_control *control, uint64_t version, uint32_t who)
{
    uint64_t high = version & ~(uint64_t)SHMVIEW_LOCK_OWNER;
    atomic_store_explicit(word64(&control->inside), high | who, memory_order_release);
}

static inline uint32_t lock_word(const struct lock *l)
{
    return atomic_load_explicit(word(&l->control->lock), memory_order_relaxed);
}

/* The slot's line in the control object. */
static inline struct shmview_slot *slot_at(const struct lock *l, uint32_t slot)
{
    return (struct shmview_slot *)(void *)(l->control + 1) + slot;
}

/* Whether the daemon knows the user with this id. Rubbish reads as dead. */
bool is_alive(const struct lock *l, uint32_t id);

/* --- Waiting: park.c ----------------------------------------------------- */

/* Waits while *at is value and no death was published since deaths was read, until the deadline at
 * the latest. May return for no reason: read the words again. deaths NULL: deaths do not matter.
 * Returns whether a signal has ended the wait. */
bool park(const struct lock *l, const uint32_t *at, uint32_t value, const uint32_t *deaths,
          int64_t deadline);
/* Wakes up to n that are parked on at. Returns how many were. */
int wake(uint32_t *at, int n);

/* A wait of one call. */
struct wait {
    int64_t deadline;
    uint32_t what;     /* SHMVIEW_WAITS_*, for people */
    uint32_t failures; /* a reader's */
    bool is_noted;     /* in my slot, for people */
    bool is_due;       /* the caller's function: a signal came, or WAIT_NS have passed */
    int64_t asked_ns;  /* when it last ran, or the wait began */
};

/* Notes in my slot that I wait, and parks as park() does. */
void wait_park(struct lock *l, struct wait *w, const uint32_t *at, uint32_t value,
               const uint32_t *deaths);
/* I wait no more. */
void wait_over(struct lock *l, const struct wait *w);

/* Whether the wait is over, as far as it knows: returns 0, -SHMVIEW_ERR_TIMED_OUT, or
 * WAIT_ASKS. A call that gets the latter gives back what it has taken, runs the caller's function
 * (wait_goes_on()) and begins again: that function may use the lock, and must not find this thread
 * in the middle. To leave then is as if the deadline had passed. */
int wait_ends(const struct wait *w);
#define WAIT_ASKS 2
/* Returns 0 to begin again, or -SHMVIEW_ERR_INTERRUPTED. */
int wait_goes_on(struct wait *w);

/* --- The word: word.c ---------------------------------------------------- */

/* Takes the word, unless the slot is not mine any more. Returns 0, WAIT_ASKS,
 * -SHMVIEW_ERR_TIMED_OUT or _LOST. */
int take_word(struct lock *l, struct wait *w);

/* Gives the word back; v is what it was a moment ago. Returns 0, or
 * -SHMVIEW_ERR_NOT_OWNER if it names another by now; then nothing is touched. */
int release_word(struct lock *l, uint32_t v);

/* I own the word: waits until no living reader is left. Returns what take_word() does. */
int drain_readers(struct lock *l, struct wait *w);

/* --- Threads: thread.c --------------------------------------------------- */

#define SHARED_MAX 64

/* What this thread holds shared. In the usual cases that is nothing (held NULL) or
 * one segment, once (held is that one). held is special until the thread's exit is
 * looked after, and while the table below is in use. */
struct thread_state {
    const void *held;
    uint32_t epoch; /* of the process that the entries belong to */
    uint32_t n_shared;
    uint32_t exit_rounds; /* of destructors, since the thread began to end */
    struct thread_share {
        struct lock *lock;
        uint32_t depth;
    } * shared; /* SHARED_MAX of them, or NULL */
};

/* Puts what is held into the table; registers the thread the first time; forgets
 * what an ancestor held. Returns 0 and owes thread_close(), or an error. */
int thread_open(void);
/* Back to the usual cases where they apply. Returns result. */
int thread_close(int result);

/* The entry of a lock in the table, or -1. */
int thread_find(const struct lock *l);

/* Like lock_enter(), for calls that give the lock back: a handle that is lost may do that. */
int enter_to_leave(struct lock *l);
/* This thread holds it exclusively. */
int release_exclusive(struct lock *l);
/* Gives back one shared hold, whichever way it is kept. */
int release_shared(struct lock *l);

/* --- Inside: exclusive.c, shared.c --------------------------------------- */

#define UNTIDY_OWNER_DIED   1u
#define UNTIDY_NOT_REPAIRED 2u

/* The word is mine: waits for the readers and goes inside. A client looks at its slot after each
 * sleep, as it has before it took the word: one whose attachment has ended would otherwise go
 * inside under an id that all others take for dead, and they would follow it. Returns 0,
 * SHMVIEW_OWNER_DIED, or WAIT_ASKS or an error without the word. */
int finish_taking(struct lock *l, struct wait *w);
/* Nested: once more. */
int lock_again(struct lock *l);
/* The thread that is inside has ended: it stays inside for the next one, as if it had died. */
void abandon(struct lock *l);

/* --- The slot ------------------------------------------------------------ */

/* Counts this thread as a reader. Returns false, and touches nothing, if the slot is not mine any
 * more. */
static inline bool enter_slot(struct lock *l)
{
    struct shmview_control *c = l->control;
    if (__builtin_expect(!atomic_load(word(&c->readers_used)), 0))
        atomic_store(word(&c->readers_used), 1);
    STEP(AT_READERS_USED);
    if (!slot_is_mine(l))
        return false;
    atomic_fetch_add(word(l->my_readers), 1);
    return true;
}

/* Wakes an owner that waits for readers. Returns 0. */
int wake_drain(struct lock *l);

/* The slot's count goes down by one; an owner that waits for it is woken. Returns 0, or
 * an error, and touches nothing, if the slot is not mine any more. */
static inline int leave_slot(struct lock *l)
{
    if (__builtin_expect(!slot_is_mine(l), 0))
        return fail_lost(l);
    STEP(AT_UNCOUNTS);
    atomic_fetch_sub(word(l->my_readers), 1);
    STEP(AT_UNCOUNTED);
    if (__builtin_expect(owner_of(atomic_load(word(&l->control->lock))) != 0, 0))
        return wake_drain(l);
    return 0;
}

#pragma GCC visibility pop

#endif
