/* SPDX-License-Identifier: Apache-2.0 */
/* The declarations that the files of this room share: words, threads, waits.
 *
 *   park.c       waits for a word to change, or for a death
 *   word.c       takes and releases the lock word; drains readers
 *   slot.c       signs this client's slot
 *   thread.c     records what a thread holds; cleans up when it ends
 *   exclusive.c  the exclusive calls
 *   shared.c     the shared calls, and optimistic reads
 *
 * If two processes access a word, each access is a C11 atomic on its address in the mapping. The
 * accesses to lock, readers, reader_groups, drain, reader_gate and deaths are mostly seq_cst,
 * because each side writes one of them and then reads another: at least one side must see the
 * other. The accesses that name a weaker order do not take part in such a pair. */
#ifndef CLIENT_WORD_H
#define CLIENT_WORD_H

#include "client/base/error.h"
#include "client/lock/lock.h"

/* A place at which the stress test may kill the process; the product has no code for it. */
#ifdef SHMVIEW_STEPS
#include "client/lock/steps.h"
#define STEP(n) shmview_step(n)
#else
#define STEP(n) ((void)0)
#endif

#pragma GCC visibility push(hidden)

/* --- Words --------------------------------------------------------------- */

/* layout.h declares plain integers, because C++ includes it too. These three add the type. */
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

/* A seq_cst CAS. The library changes the lock word in no other way, so that a client never
 * overwrites a word that it has not seen. */
static inline bool swap(uint32_t *at, uint32_t *expected, uint32_t desired)
{
    return atomic_compare_exchange_strong(word(at), expected, desired);
}

/* Returns the id of the owner that went inside and has not left in order, or 0. */
static inline uint32_t who_inside(uint64_t inside)
{
    return (uint32_t)inside & SHMVIEW_LOCK_OWNER;
}

static inline uint64_t load_inside(const struct lock *l)
{
    return atomic_load_explicit(word64(&l->control->inside), memory_order_relaxed);
}

/* Stores the version of `version` together with `who` (0: nobody is inside). Only the owner of the
 * lock word may call it, so a plain store suffices. */
static inline void store_inside(struct shmview_control *control, uint64_t version, uint32_t who)
{
    uint64_t high = version & ~(uint64_t)SHMVIEW_LOCK_OWNER;
    atomic_store_explicit(word64(&control->inside), high | who, memory_order_release);
}

static inline uint32_t lock_word(const struct lock *l)
{
    return atomic_load_explicit(word(&l->control->lock), memory_order_relaxed);
}

/* Returns the entry of a slot in the control object; the entries follow the header. */
static inline struct shmview_slot *slot_at(const struct lock *l, uint32_t slot)
{
    return (struct shmview_slot *)(void *)(l->control + 1) + slot;
}

/* Whether the liveness object has this id (flags in it are ignored), although its slot may have
 * ended. An id that no client can have counts as dead, because any client with write access can
 * overwrite the lock word. */
bool is_alive(const struct lock *l, uint32_t id);

/* --- Waiting: park.c ----------------------------------------------------- */

/* Sleeps while *at is value and no death was published since *deaths was read, at most until the
 * deadline. deaths is NULL if no death can end the wait. It may return early for no reason, so
 * the caller must read the words again. Returns whether a signal has ended the sleep. */
bool park(const struct lock *l, const uint32_t *at, uint32_t value, const uint32_t *deaths,
          int64_t deadline);
/* Wakes up to n threads that are parked on at. Returns how many it woke. */
int wake(uint32_t *at, int n);

/* The wait of one call. It lies on the stack of the waiting thread, which alone uses it. */
struct wait {
    int64_t deadline;
    uint32_t what;     /* SHMVIEW_WAITS_*, for reports */
    uint32_t failures; /* of a reader, to share the lock */
    bool is_noted;     /* in this client's slot, for reports */
    bool is_due;       /* run the caller's function: a signal came, or WAIT_NS have passed */
    int64_t asked_ns;  /* when that function last ran, or when the wait began */
    uint32_t holder;   /* the id that it last waited for */
    uint32_t claim;    /* the value that it has stored in reporter */
    uint64_t turn;     /* inside as it was when the wait for holder began, at since_ns */
    int64_t since_ns;
    int64_t report_ns; /* when to report to the daemon next */
};

/* Like park(), but first records in this client's slot that it waits, and may report to the daemon
 * that it waits for holder, an id that owns the word or reads. */
void wait_park(struct lock *l, struct wait *w, const uint32_t *at, uint32_t value,
               const uint32_t *deaths, uint32_t holder);
/* Records in the slot that this client has stopped waiting, if the wait was recorded. */
void wait_over(struct lock *l, const struct wait *w);

/* Decides whether the call must stop waiting. Returns 0 to go on, -SHMVIEW_ERR_TIMED_OUT, or
 * WAIT_ASKS.
 *
 * After WAIT_ASKS the call releases what it has taken, runs the caller's function with
 * wait_goes_on(), and begins again. That function may use the lock itself, so it must not run
 * while this thread holds the word. A wait may end there because it may end there by its deadline
 * as well. */
int wait_ends(const struct wait *w);
#define WAIT_ASKS 2
/* Runs the caller's function. Returns 0 to begin again, or -SHMVIEW_ERR_INTERRUPTED. */
int wait_goes_on(struct wait *w);

/* --- The word: word.c ---------------------------------------------------- */

/* Takes the lock word, and waits while a living owner has it. Readers may still be inside after
 * that. Returns 0, WAIT_ASKS, or -SHMVIEW_ERR_TIMED_OUT or _LOST without the word. */
int take_word(struct lock *l, struct wait *w);

/* Releases the lock word and wakes waiters. v is a recent value of it. Returns 0, or
 * -SHMVIEW_ERR_NOT_OWNER, without any change, if the word names another client. */
int release_word(struct lock *l, uint32_t v);

/* Counts a takeover and sets all groups; the caller has the word of a dead client, which may have
 * cleared groups whose readers are inside. */
void distrust_groups(struct lock *l);

/* Waits until no living reader is left; the caller has the lock word and keeps it. Returns 0,
 * WAIT_ASKS, or -SHMVIEW_ERR_TIMED_OUT or _LOST without an error text. */
int drain_readers(struct lock *l, struct wait *w);

/* --- Threads: thread.c --------------------------------------------------- */

#define SHARED_MAX 64

/* The shared holds of one thread, which alone uses it.
 *
 * Most threads share no lock (held is NULL) or one lock once (held is its address). The calls test
 * these two cases with one comparison. In any other case held has an address at which no lock
 * lies: before the thread is registered for its exit, and while the table below is in use. */
struct thread_state {
    const void *held;
    uint32_t epoch; /* of the process to which the entries belong */
    uint32_t n_shared;
    uint32_t exit_rounds; /* rounds of destructors since the thread began to end */
    struct thread_share {
        struct lock *lock;
        uint32_t depth;
    } * shared; /* SHARED_MAX of them, or NULL */
};

/* Moves the shared holds of this thread into the table. In the first call it registers the thread
 * for its exit; in a forked child it drops the holds of the parent. Returns 0, after which the
 * caller must call thread_close(), or an error. */
int thread_open(void);
/* Ends the use of the table, and moves a single hold back to held. Returns result. */
int thread_close(int result);

/* Returns the index of a lock in the table, or -1. The table must be open. */
int thread_find(const struct lock *l);

/* Like lock_enter(), but succeeds for a lost handle, so that its holds can still be released. */
int enter_to_leave(struct lock *l);
/* Releases one exclusive hold of this thread. Returns 0 or an error. */
int release_exclusive(struct lock *l);
/* Releases one shared hold of this thread, from the table or from held. Returns 0 or an error. */
int release_shared(struct lock *l);

/* --- Inside: exclusive.c, shared.c --------------------------------------- */

#define UNTIDY_OWNER_DIED   1u
#define UNTIDY_NOT_REPAIRED 2u

/* Waits for the readers and goes inside; the caller has the lock word.
 *
 * It checks the slot after each sleep, as take_word() has done before. Otherwise a client whose
 * attachment has ended would go inside under a dead id, and the next client would take the lock
 * from it. Returns 0, SHMVIEW_OWNER_DIED, or WAIT_ASKS or an error without the word. */
int finish_taking(struct lock *l, struct wait *w);
/* Takes the lock once more for the thread that is inside. Returns 0 or an error. */
int lock_again(struct lock *l);
/* Releases the lock of a thread that ended inside. The mark `inside` stays set, so that the next
 * owner gets SHMVIEW_OWNER_DIED as after the death of a process. */
void abandon(struct lock *l);

/* --- The slot ------------------------------------------------------------ */

/* Whether a group is set in this value of reader_groups. Each owner asks; a shift takes less than a
 * mask of 47 bits, which is an instruction of its own. */
static inline bool any_group(uint64_t groups)
{
    return groups << (64 - SHMVIEW_READER_GROUPS);
}

/* Whether this client's group is set; false if it has not shared the lock yet. */
static inline bool group_is_set(const struct lock *l)
{
    return atomic_load(word64(&l->control->reader_groups)) &
           atomic_load_explicit(&l->my_group, memory_order_relaxed);
}

/* The word readers of this client's slot while no thread of it shares the lock. */
static inline uint32_t no_readers(const struct lock *l)
{
    return l->me >> SHMVIEW_SLOT_BITS << SHMVIEW_READER_COUNT_BITS;
}

/* Adds 1 to the word readers of the slot. Returns whether that counts this thread: owners ignore a
 * word without this client's generation, which the word loses if another client overwrites it or
 * truncates the object. */
static inline bool count_thread(struct lock *l)
{
    return __builtin_expect(
        atomic_fetch_add(word(l->my_readers), 1) - no_readers(l) < SHMVIEW_READER_COUNT_MASK, 1);
}

/* Counts this thread after count_thread() did not. Returns false if this client has lost the slot.
 */
bool count_thread_again(struct lock *l);
/* Ends the leave of a thread that the word readers did not count. Returns -SHMVIEW_ERR_LOST,
 * because an owner may have been inside. */
int leave_uncounted(struct lock *l);

/* Counts this thread as a reader in the slot, and then sets its group if it is clear, because an
 * owner looks only at the slots of groups that are set. The count must come first: an owner clears
 * a group, and sets it again if it then finds a count. Returns whether the thread is counted; false
 * means that this client has lost the slot. */
static inline bool enter_slot(struct lock *l)
{
    if (!slot_is_mine(l))
        return false;
    uint64_t group = UINT64_C(1) << (l->me & SHMVIEW_SLOT_MASK) % SHMVIEW_READER_GROUPS;
    atomic_store_explicit(&l->my_group, group, memory_order_relaxed);
    STEP(AT_COUNTS);
    if (!count_thread(l) && !count_thread_again(l))
        return false;
    STEP(AT_COUNTED);
    if (!group_is_set(l))
        atomic_fetch_or(word64(&l->control->reader_groups), group);
    STEP(AT_GROUP_SET);
    return true;
}

/* Wakes the owner that waits for readers, if this client has none left. Returns 0. */
int wake_drain(struct lock *l);
/* Ends the leave of a thread whose slot is not its own. Returns what leave_slot() returns. */
int leave_lost_slot(struct lock *l);

/* Removes this thread from the count in the slot, and wakes an owner that waits for readers.
 * Returns 0; or -SHMVIEW_ERR_LOST if the count was lost, or, without any change, if the slot may
 * have another user. */
static inline int leave_slot(struct lock *l)
{
    if (__builtin_expect(!slot_is_mine(l), 0))
        return leave_lost_slot(l);
    STEP(AT_UNCOUNTS);
    uint32_t before = atomic_fetch_sub(word(l->my_readers), 1);
    STEP(AT_UNCOUNTED);
    if (__builtin_expect(before - no_readers(l) - 1 >= SHMVIEW_READER_COUNT_MASK, 0))
        return leave_uncounted(l);
    if (__builtin_expect(owner_of(atomic_load(word(&l->control->lock))) != 0, 0))
        return wake_drain(l);
    return 0;
}

#pragma GCC visibility pop

#endif
