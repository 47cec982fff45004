/* SPDX-License-Identifier: Apache-2.0 */
/* This process: forks, cancellation, and mutexes that a forked child finds unlocked.
 *
 * A program may fork at any time, in any thread. The child then has copies of connections and
 * locks that belong to its parent. Each such object has an epoch, by which the child notices that
 * the object is its parent's, at its first call and at the cost of one comparison. */
#ifndef CLIENT_PROCESS_H
#define CLIENT_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The state of a process. It lies on a page that the kernel zeroes in a forked child.
 *
 * So epoch is 0 in a child until its first call here, and an object with another epoch belongs to
 * an ancestor. The mutexes are unlocked in a child, even if a thread of the parent held them at the
 * fork. No thread waits for the daemon or for another process while it has locks, details or
 * forks. */
struct process_page {
    _Atomic uint32_t epoch;
    _Atomic uint32_t n_threads; /* that use locks */
    pthread_mutex_t mutex;      /* a change of epoch, here and in a connection */
    pthread_mutex_t steps;      /* a child attaches a segment again, by a call of the daemon */
    pthread_mutex_t locks;      /* the list of locks; taken after a connection's mutex */
    pthread_mutex_t details;    /* layouts, slots, descriptors, attachments of connections */
    pthread_mutex_t forks;      /* for NOT_FORKED; taken last */
};
extern struct process_page *process;

/* Makes the page, unless that was done as the library was loaded. Returns 0 or an error. */
int process_init(void);
/* Returns the epoch of this process, which is never 0. */
uint32_t process_epoch(void);

/* The rooms that have something which a forked child must drop at once. They register a function,
 * because this room includes nothing of theirs. */
enum process_room {
    PROCESS_LOCK,
    PROCESS_LINK,
    N_PROCESS_ROOMS
};
/* Registers a function of a room, which each child calls right after its fork. The function must be
 * async-signal-safe. */
void process_at_fork(enum process_room room, void (*forget)(void));

/* NOT_CANCELLED: the thread cannot be cancelled until the end of the block. No call of the library
 * is a cancellation point, because one in the middle would leave half a message or a locked
 * mutex. */
static inline int cancel_off(void)
{
    int was;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    return was;
}
static inline void cancel_back(int *was)
{
    pthread_setcancelstate(*was, was);
}
/* NOT_FORKED: no other thread can fork until the end of the block. For a change of private state,
 * of which a child would otherwise inherit one half. The block must not wait. */
void fork_off(void);
void fork_back(const char *unused);
/* DETAILS: the thread has process->details until the end of the block. */
void details_lock(void);
void details_unlock(const char *unused);
#define DETAILS                                                                                    \
    __attribute__((cleanup(details_unlock), unused)) const char details_was = (details_lock(), 0)
#define NOT_FORKED    __attribute__((cleanup(fork_back), unused)) const char fork_was = (fork_off(), 0)
#define NOT_CANCELLED __attribute__((cleanup(cancel_back), unused)) int cancel_was = cancel_off()

#pragma GCC visibility pop

#endif
