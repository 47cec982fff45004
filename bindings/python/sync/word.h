/* SPDX-License-Identifier: Apache-2.0 */
/* word.h - a lock in anonymous shared memory that survives its holder.
 *
 * The locks of multiprocessing's drop-ins belong to a family of processes that have nothing
 * but memory in common, inherited or passed as a descriptor. So no daemon is asked who is
 * alive: a waiter looks for himself. The holder's kernel id is in the word; whoever has
 * waited for a while asks the kernel whether that one still is, and is the same one by the
 * time of its birth. A stopped process is alive.
 *
 *     owner   birth:32 W:1 0:1 id:30    0: free; W: somebody may sleep
 *
 * The birth is that of the holder, in clock ticks since the machine started, modulo 2^32; 0:
 * it is not known. Because id and birth are one word, a process that gets the id of a dead
 * holder is never mistaken for that holder: the kernel does not give out one id twice within a
 * tick of 10 ms. Take: CAS(owner 0 -> holder). Give: owner = 0. Take over from a dead holder:
 * CAS(owner of the dead -> holder). */
#ifndef SYNC_WORD_H
#define SYNC_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WORD_BYTES 64

/* All zero: free. */
struct word {
    _Atomic uint64_t owner;
    _Atomic uint32_t died;  /* pid of the holder that died inside, until it is given back */
    _Atomic uint32_t pid;   /* of the holder; 0: not known yet */
    _Atomic uint32_t depth; /* of a recursive lock; only the holder's */
    uint32_t reserved[11];
};
_Static_assert(sizeof(struct word) == WORD_BYTES, "blocks of shared memory are made for it");

#define WORD_WAITERS 0x80000000u
#define WORD_ID      0x3fffffffu

/* The caller as the owner of a word: its thread for locks that threads own, its process for
 * the others. */
struct self {
    uint32_t tid, pid; /* 0: not looked up yet */
    uint64_t thread, process;
};
extern _Thread_local struct self self_of_thread __attribute__((tls_model("initial-exec")));
void self_look_up(void);
static inline const struct self *self_get(void)
{
    if (__builtin_expect(!self_of_thread.tid, 0))
        self_look_up();
    return &self_of_thread;
}
/* Has forked children look up who they are. Returns 0 or -errno. */
int self_init(void);

/* The fast way in; only that of a free word. */
static inline bool word_try(struct word *w, uint64_t owner, uint32_t pid)
{
    uint64_t free = 0;
    if (!atomic_compare_exchange_strong_explicit(&w->owner, &free, owner, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    atomic_store_explicit(&w->pid, pid, memory_order_relaxed);
    return true;
}

/* Waits until deadline, CLOCK_MONOTONIC, for a word that was not free; of_threads: threads own
 * it. Takes it over from a holder that is dead: then w->died is set. Returns 0, -ETIMEDOUT, or
 * -EINTR after a signal. */
int word_wait(struct word *w, const struct self *me, bool of_threads, int64_t deadline_ns);

/* The caller as the owner of a word that threads, or else processes, own. */
static inline uint64_t self_owner(const struct self *me, bool of_threads)
{
    return of_threads ? me->thread : me->process;
}

static inline bool word_is_of(const struct word *w, uint64_t owner)
{
    return (atomic_load_explicit(&w->owner, memory_order_relaxed) & ~(uint64_t)WORD_WAITERS) ==
           owner;
}

void word_wake(struct word *w);

/* Gives it back, whoever holds it; returns whether anybody did. */
static inline bool word_give(struct word *w)
{
    atomic_store_explicit(&w->pid, 0, memory_order_relaxed);
    uint64_t was = atomic_exchange_explicit(&w->owner, 0, memory_order_release);
    if (__builtin_expect(was & WORD_WAITERS, 0))
        word_wake(w);
    return was & WORD_ID;
}

int64_t word_now(void);
#endif
