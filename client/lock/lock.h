/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a segment, as this process sees it; the bytes are those of <shmview/layout.h>.
 *
 * A segment begins with its lock. The public calls of the lock are in this room and use nothing
 * else of the segment, so that the uncontended ones are one function each, without a jump. */
#ifndef CLIENT_LOCK_H
#define CLIENT_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include <shmview/layout.h>
#include <shmview/shmview.h>

#include "client/base/process.h"
#include "client/base/wait.h"
#include "common/base/spin.h"

#pragma GCC visibility push(hidden)

/* Epochs that no process has: of a lock that is not there, of one whose slot is
 * not signed yet, and of one whose attachment the daemon has ended. */
#define NO_LOCK_EPOCH  UINT32_MAX
#define UNSIGNED_EPOCH (UINT32_MAX - 1)
#define LOST_EPOCH     (UINT32_MAX - 2)

/* owner, nested, untidy and dead are written by the thread that holds the word for this process. */
struct lock {
    /* what every call reads comes first */
    _Atomic uint32_t epoch;          /* this process's, an ancestor's, or one of the above */
    uint32_t nested;                 /* times that it was taken again */
    _Atomic(const void *) owner;     /* the thread's own address, NULL: none */
    uint32_t untidy;                 /* UNTIDY_*: the way out is not the usual one */
    uint32_t dead;                   /* the id that died inside, from the report of it to unlock */
    struct shmview_control *control; /* NULL: no lock */
    const struct shmview_liveness *live;
    uint32_t *my_readers;     /* the count in my slot */
    const uint32_t *my_life;  /* the generation of my slot, as the daemon has it */
    uint32_t me;              /* my id in the lock word */
    _Atomic uint32_t process; /* the epoch of the one that has the attachment */

    int64_t attachment;                          /* as the daemon knows it, through connection */
    const struct shmview_connection *connection; /* NULL: of foreign memory */
    const char *name;                            /* of the segment */
    int (*prepare)(struct lock *l); /* makes it this process's. Returns 0 or an error */
    _Atomic(struct spin) spin;      /* for changes, until now */
    LIST_ENTRY(lock) link;
};

static inline struct lock *lock_of(struct shmview_segment *segment)
{
    return (struct lock *)(void *)segment;
}

/* --- Whose it is --------------------------------------------------------- */

extern __thread struct thread_state this_thread __attribute__((tls_model("initial-exec")));

static inline bool held_by_me(const struct lock *l)
{
    return atomic_load_explicit(&l->owner, memory_order_relaxed) == &this_thread;
}

/* Whether nothing is to be done before the word may be touched: one comparison
 * for "has a lock" and "is this process's own". */
static inline bool is_ready(const struct lock *l)
{
    return atomic_load_explicit(&l->epoch, memory_order_acquire) ==
           atomic_load_explicit(&process->epoch, memory_order_relaxed);
}

/* Whether the attachment is this process's, not an ancestor's. */
bool lock_is_of_this_process(const struct lock *l);
/* ... and is known to have ended. */
bool is_lost(const struct lock *l);

/* Whether the daemon still knows me by this slot. A process that was declared dead too
 * early must not count in its successor's: it looks here first, on a line that nobody
 * writes, since a look at the count itself would cost a third of the pair. (A process that is
 * stopped between this and the count for as long as a slot needs to change hands can
 * still do harm.) */
static inline bool slot_is_mine(const struct lock *l)
{
    return atomic_load_explicit((const _Atomic uint32_t *)l->my_life, memory_order_relaxed) ==
           l->me >> SHMVIEW_SLOT_BITS;
}

/* Whether the word names this process, and its slot is still its own. */
bool word_is_mine(const struct lock *l);

/* The slot or the word is not mine any more. If it is the slot, every later call that takes the
 * lock fails as well. Returns -SHMVIEW_ERR_LOST. */
int fail_lost(struct lock *l);
int fail_not_owner(const struct lock *l);
int fail_timed_out(const struct lock *l);

/* --- The handle: slot.c, thread.c ---------------------------------------- */

/* The first call that needs the slot writes whose it is: a process that attaches and never locks
 * never touches the control object. Returns 0 or an error. */
int lock_sign(struct lock *l);
/* What every call that needs the lock begins with. Returns 0 or an error. */
static inline int lock_enter(struct lock *l)
{
    return __builtin_expect(is_ready(l), 1) ? 0 : l->prepare(l);
}
/* It has this slot from now on. v is what the lock word was lately. */
void lock_take_slot(struct lock *l, uint32_t slot, uint32_t generation, uint32_t v);
/* The daemon has ended the attachment. */
void lock_lose(struct lock *l);

/* On the list of this process's locks, or off. */
void lock_enlist(struct lock *l);
void lock_delist(struct lock *l);
/* Calls visit for each of them. */
void locks_each(void (*visit)(struct lock *, void *), void *arg);

/* Whether any thread of this process holds it. */
bool lock_is_held(const struct lock *l);
/* Whether a thread of this process shares it, or may have shared it before the slot was lost. */
bool lock_may_be_shared(const struct lock *l);
/* The handle will not be used any more: this thread gives back what it holds; where another
 * is inside, it has died there. What others share is theirs until they end. */
void lock_give_up(struct lock *l);

/* --- Calls ---------------------------------------------------------------- */

/* The generation of the phase now; 0 without a lock. */
uint32_t phase_generation(const struct lock *l);

/* Adds one to the counter of changes and wakes up to n. Returns whether an event loop watches,
 * which the daemon wakes. */
bool change_notify(struct lock *l, int n);

#pragma GCC visibility pop

#endif
