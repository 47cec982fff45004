/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a segment, as this process sees it. <shmview/layout.h> describes the shared bytes.
 *
 * A struct shmview_segment begins with its struct lock. The public calls of the lock are in this
 * room and use nothing else of the segment, so that each uncontended call is one function that
 * calls no other. */
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

/* Epochs that no process has. They mark a segment without a lock, a lock whose slot is not signed
 * yet, and a lock whose attachment the daemon has ended. */
#define NO_LOCK_EPOCH  UINT32_MAX
#define UNSIGNED_EPOCH (UINT32_MAX - 1)
#define LOST_EPOCH     (UINT32_MAX - 2)

/* One lock in this process; the memory belongs to the handle of the segment.
 *
 * Only the thread that holds the word writes owner, nested, untidy and dead while the lock is in
 * use. Other threads may read owner, which is atomic, at any time.
 * lock_take_slot() sets the members that depend on the slot, before any call uses them. */
struct lock {
    /* first the members that every call reads, because they then share one cache line */
    _Atomic uint32_t epoch;          /* this process's, an ancestor's, or one of the above */
    uint32_t nested;                 /* how often the owner has taken it again */
    _Atomic(const void *) owner;     /* the thread's own address, NULL: none */
    uint32_t untidy;                 /* UNTIDY_*: unlock needs more than the usual steps */
    uint32_t me;                     /* this client's id in the lock word */
    struct shmview_control *control; /* NULL: no lock */
    const struct shmview_liveness *live;
    uint32_t *my_readers;      /* the count of readers in this client's slot */
    const uint32_t *my_life;   /* the generation of that slot, which only the daemon writes */
    _Atomic uint64_t my_group; /* its bit in reader_groups; 0 until a thread shares the lock */

    uint32_t dead;            /* the owner that died inside, until this owner unlocks */
    _Atomic uint32_t process; /* the epoch of the process that has the attachment */
    int64_t attachment;       /* its id in the daemon, through connection */
    const struct shmview_connection *connection; /* NULL: foreign memory */
    const char *name;                            /* of the segment */
    int (*prepare)(struct lock *l); /* makes epoch this process's. Returns 0 or an error */
    /* lets the daemon look whether this holder's process is being ended; does not wait */
    void (*report_wait)(const struct lock *l, uint32_t holder);
    _Atomic(struct spin) spin; /* how long to spin for a change */
    LIST_ENTRY(lock) link;
};

static inline struct lock *lock_of(struct shmview_segment *segment)
{
    return (struct lock *)(void *)segment;
}

/* --- Ownership ----------------------------------------------------------- */

/* initial-exec, because the uncontended calls read it and another model would cost them a call. */
extern __thread struct thread_state this_thread __attribute__((tls_model("initial-exec")));

static inline bool held_by_me(const struct lock *l)
{
    return atomic_load_explicit(&l->owner, memory_order_relaxed) == &this_thread;
}

/* Whether a call may use the lock word without preparation. One comparison decides that the
 * segment has a lock, that the slot is signed, and that no fork has happened since. */
static inline bool is_ready(const struct lock *l)
{
    return atomic_load_explicit(&l->epoch, memory_order_acquire) ==
           atomic_load_explicit(&process->epoch, memory_order_relaxed);
}

/* Whether the attachment belongs to this process and not to an ancestor. */
bool lock_is_of_this_process(const struct lock *l);
/* Whether the attachment belongs to this process and is known to have ended. */
bool is_lost(const struct lock *l);

/* Whether the slot still belongs to this client.
 *
 * A client that was declared dead too early must not count itself in the slot of its successor.
 * It therefore reads the generation first. No client writes that cache line, so the read is
 * cheap; to check the count itself in one CAS would cost a third of a shared pair. One case
 * remains: a client that is stopped between this check and the count, until the slot has a new
 * user, still changes the count of that user. */
static inline bool slot_is_mine(const struct lock *l)
{
    return atomic_load_explicit((const _Atomic uint32_t *)l->my_life, memory_order_relaxed) ==
           l->me >> SHMVIEW_SLOT_BITS;
}

/* Whether the daemon has ended the attachment. A wait that no client needs to end must ask this
 * after each sleep. */
static inline bool has_ended(const struct lock *l)
{
    return !slot_is_mine(l) || is_lost(l);
}

/* Whether the lock word names this client, and the slot still belongs to it. */
bool word_is_mine(const struct lock *l);
/* Whether the lock word names this client, and no other client may take it: the slot is this
 * client's, or has ended (SHMVIEW_GENERATION_ENDED). */
bool word_is_safe(const struct lock *l);

/* Reports that this client has lost its slot or the lock word. After the loss of the slot, every
 * later call that takes the lock fails as well. Returns -SHMVIEW_ERR_LOST. */
int fail_lost(struct lock *l);
/* Reports that the calling thread does not hold the lock. Returns -SHMVIEW_ERR_NOT_OWNER. */
int fail_not_owner(const struct lock *l);
/* Reports that the deadline has passed. Returns -SHMVIEW_ERR_TIMED_OUT. */
int fail_timed_out(const struct lock *l);

/* --- The handle: slot.c, thread.c ---------------------------------------- */

/* Writes this client's id, pid and command into its slot, unless it has done so. The first call
 * that needs the slot signs it, so that a process which attaches and never locks touches no page
 * of the control object. Returns 0 or an error. */
int lock_sign(struct lock *l);
/* Prepares the lock for this process. Every call that needs the lock begins with it. Returns 0 or
 * an error. */
static inline int lock_enter(struct lock *l)
{
    return __builtin_expect(is_ready(l), 1) ? 0 : l->prepare(l);
}
/* Drops the record of this thread if it is that of an ancestor. A child that no handler of
 * pthread_atfork() has prepared must call it before a lock is ready: the short calls look only at
 * held, and would take the hold of the ancestor for this thread's. */
void thread_check_process(void);
/* Gives the lock a new slot, which is not signed yet. v is a recent value of the lock word. */
void lock_take_slot(struct lock *l, uint32_t slot, uint32_t generation, uint32_t v);
/* Marks the lock as lost, because the daemon has ended the attachment. */
void lock_lose(struct lock *l);

/* Add the lock to the list of this process's locks, and remove it. */
void lock_enlist(struct lock *l);
void lock_delist(struct lock *l);
/* Calls visit for each lock on the list, under process->locks. */
void locks_each(void (*visit)(struct lock *, void *), void *arg);

/* Whether any thread of this process holds the lock. */
bool lock_is_held(const struct lock *l);
/* Whether a thread of this process shares the lock, or may have shared it before the slot, or
 * its count, was lost. */
bool lock_may_be_shared(const struct lock *l);
/* Ends the use of the lock through this handle. Releases the holds of the calling thread. If
 * another thread is inside, leaves the lock as if that thread had died there. Shared holds of
 * other threads stay counted. */
void lock_give_up(struct lock *l);

/* --- Calls ---------------------------------------------------------------- */

/* Returns the half of the phase word with the generation. A futex compares 32 bits, and the
 * generation changes at each switch. */
static inline uint32_t *phase_word(struct shmview_control *c)
{
    return (uint32_t *)(void *)&c->phase + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

/* Returns the generation of the current phase, or 0 without a lock. */
uint32_t phase_generation(const struct lock *l);

/* The low bit of change_waits. The other bits count the notifications that found it set, so that
 * each of them changes the word and ends the parks that begin at that moment. */
#define CHANGE_WAITED 1u

/* Adds one to the counter of changes and wakes up to n threads that wait for one. Returns whether
 * an event loop watches the segment; the caller must then ring, because the daemon wakes loops. */
bool change_notify(struct lock *l, int n);

#pragma GCC visibility pop

#endif
