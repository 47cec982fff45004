/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting: how long, how often to look before that, and how the caller ends it. */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Deadlines are absolute, CLOCK_MONOTONIC. NEVER waits for ever, 0 not at all. */
#define NEVER INT64_MAX

static inline bool has_passed(int64_t deadline, int64_t now)
{
    return deadline != NEVER && (deadline == 0 || now >= deadline);
}

/* How often to look again before sleeping: 0 where the other cannot run in the meantime. */
int spins_allowed(void);
/* Between two looks. */
void relax(void);

/* A wait ends for a moment after this time, whatever happens: a client that may only read can take
 * a wake-up away, a daemon can be down, and a signal can come just before a wait begins. Then, and
 * after a signal, the function runs that the caller has given to shmview_on_wait(). */
#define WAIT_NS 100000000

/* How a wait for something ends, unless it fails. */
enum wait_outcome {
    WAIT_READY,   /* what was awaited is there */
    WAIT_EXPIRED, /* the deadline has passed */
};

/* Whether there is such a function. */
bool wait_has_caller(void);
/* Runs it, where this thread has nothing that the function could wait for. Returns 0 to go on, or
 * -SHMVIEW_ERR_INTERRUPTED. */
int wait_ask(void);
/* Like wait_ask(), in a wait for the daemon. This thread may have the mutex of a connection then.
 * So what the function calls in turn must wait for no connection: it fails where it would ask a
 * daemon, and leaves a Detach to the owner of the mutex. */
int wait_go_on(void);
/* Whether this thread is in wait_go_on(). */
bool wait_is_asking(void);
/* Returns 0, or -SHMVIEW_ERR_DEADLOCK if it is. */
int wait_refuse(void);
/* Locks the mutex. Returns 0, or -SHMVIEW_ERR_INTERRUPTED without it. */
int wait_for_mutex(pthread_mutex_t *mutex);
/* Sleeps. Returns what wait_go_on() returns. */
int wait_a_moment(int64_t ns);
/* In a forked child: no wait of its parent's goes on. */
void wait_forget(void);

#pragma GCC visibility pop

#endif
