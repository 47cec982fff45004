/* SPDX-License-Identifier: Apache-2.0 */
/* word.h - a lock in anonymous shared memory that survives its holder.
 *
 * The locks of multiprocessing's drop-ins belong to a family of processes that have nothing
 * but memory in common, inherited or passed as a descriptor. So no daemon is asked who is
 * alive: a waiter looks for himself. The holder's kernel id is in the word; whoever has
 * waited for a while asks the kernel whether that one still is, and is the same one by the
 * time of its birth. A stopped process is alive.
 *
 *     owner   W:1 0:1 id:30       0 in id: free; W: somebody may sleep
 *     birth   of the holder       0: not known (yet, or any more)
 *
 * Take: CAS(owner 0 -> id), then birth. Give: birth = 0, then owner = 0. Take over from one
 * that is dead: CAS(birth -> 0), then CAS(owner of the dead -> id). So a birth other than 0
 * belongs to the owner that was seen before and after it. */
#ifndef SYNC_WORD_H
#define SYNC_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WORD_BYTES 64

/* All zero: free. */
struct word {
    _Atomic uint32_t owner;
    _Atomic uint32_t died;  /* pid of the holder that died inside, until it is given back */
    _Atomic uint32_t pid;   /* of the holder */
    _Atomic uint32_t depth; /* of a recursive lock; only the holder's */
    _Atomic uint64_t birth;
    uint64_t reserved[5];
};
_Static_assert(sizeof(struct word) == WORD_BYTES, "blocks of shared memory are made for it");

#define WORD_WAITERS 0x80000000u
#define WORD_ID      0x3fffffffu

/* Who asks: a thread for locks that threads own, a process for others. */
struct self {
    uint32_t tid, pid; /* 0: not looked up yet */
    uint64_t tid_birth, pid_birth;
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
static inline bool word_try(struct word *w, uint32_t id, uint64_t birth, uint32_t pid)
{
    uint32_t free = 0;
    if (!atomic_compare_exchange_strong_explicit(&w->owner, &free, id, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    atomic_store_explicit(&w->birth, birth, memory_order_relaxed);
    atomic_store_explicit(&w->pid, pid, memory_order_relaxed);
    return true;
}

/* Waits until deadline, CLOCK_MONOTONIC, for a word that was not free. Takes it over from a
 * holder that is dead: then w->died is set. Returns 0, -ETIMEDOUT, or -EINTR after a signal. */
int word_wait(struct word *w, uint32_t id, uint64_t birth, uint32_t pid, int64_t deadline_ns);

void word_wake(struct word *w);

/* Gives it back, whoever holds it; returns whether anybody did. */
static inline bool word_give(struct word *w)
{
    atomic_store_explicit(&w->birth, 0, memory_order_relaxed);
    uint32_t was = atomic_exchange_explicit(&w->owner, 0, memory_order_release);
    if (__builtin_expect(was & WORD_WAITERS, 0))
        word_wake(w);
    return was & WORD_ID;
}

int64_t word_now(void);
#endif
