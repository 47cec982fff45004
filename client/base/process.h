/* SPDX-License-Identifier: Apache-2.0 */
/* This process: forks, cancellation, and the mutexes that a forked child finds unlocked. */
#ifndef CLIENT_PROCESS_H
#define CLIENT_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Lies on a page that a forked child finds zeroed. epoch is 0 in a child until
 * its first call here; an object of another epoch belongs to an ancestor. The
 * mutexes are unlocked in a child, even if a thread of the parent held them when it was forked. No
 * thread waits for the daemon, or for another process, inside locks, details and forks. */
struct process_page {
    _Atomic uint32_t epoch;
    _Atomic uint32_t n_threads; /* that use locks */
    pthread_mutex_t mutex;      /* epoch, and the connection's step into it */
    pthread_mutex_t steps;      /* a segment's step into a child, for which the daemon is asked */
    pthread_mutex_t locks;      /* the list of locks; after a connection's mutex */
    pthread_mutex_t details;    /* layouts, slots, descriptors, what connections hold */
    pthread_mutex_t forks;      /* NOT_FORKED; the last to be taken */
};
extern struct process_page *process;

/* Makes the page, once. Returns 0 or an error. */
int process_init(void);
/* The epoch of this process; never 0. */
uint32_t process_epoch(void);

/* Rooms above this one that keep something which a forked child must not have. */
enum process_room {
    PROCESS_LOCK,
    PROCESS_LINK,
    N_PROCESS_ROOMS
};
/* Has forget called in each child right after a fork. It must be async-signal-safe. */
void process_at_fork(enum process_room room, void (*forget)(void));

/* No call of the library is a cancellation point: one in the middle would leave half
 * a message, or a mutex. Holds until the end of the block. */
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
/* A change of private state that a fork in another thread must not cut in two: the
 * child would inherit half of it. Nothing may block until the end of the block. */
void fork_off(void);
void fork_back(const char *unused);
/* process->details until the end of the block. */
void details_lock(void);
void details_unlock(const char *unused);
#define DETAILS                                                                                    \
    __attribute__((cleanup(details_unlock), unused)) const char details_was = (details_lock(), 0)
#define NOT_FORKED    __attribute__((cleanup(fork_back), unused)) const char fork_was = (fork_off(), 0)
#define NOT_CANCELLED __attribute__((cleanup(cancel_back), unused)) int cancel_was = cancel_off()

#pragma GCC visibility pop

#endif
