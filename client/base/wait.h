/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: how long they last, how long to spin before, and how the caller's function ends them.
 *
 * A binding must be able to end a wait, for example when Python has a signal to handle. The library
 * has no signal handlers. So a thread gives a function to shmview_on_wait(). Each of its
 * waits is then cut into parts of at most WAIT_NS, and the function runs after each part. */
#ifndef CLIENT_WAIT_H
#define CLIENT_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* A deadline is a time of CLOCK_MONOTONIC in ns. NEVER does not pass; 0 has always passed. */
#define NEVER INT64_MAX

static inline bool has_passed(int64_t deadline, int64_t now)
{
    return deadline != NEVER && (deadline == 0 || now >= deadline);
}

/* Returns how often to read a word again before sleeping. 0 on a machine with one processor,
 * because the owner cannot run while this thread spins. */
int spins_allowed(void);
/* Lets the processor pause between two reads of a spin. */
void relax(void);

/* The longest part of a wait, except where no function of the caller runs and a death or a change
 * ends it (client/lock/park.c). It is bounded because a client with read access can take a wake-up
 * that was meant for another one, because the daemon can be down, and because a signal can come
 * just before the thread sleeps. The caller's function runs after each part and after a signal. */
#define WAIT_NS 100000000

/* The result of a wait; errors are negative. */
enum wait_outcome {
    WAIT_READY,   /* the event has happened */
    WAIT_EXPIRED, /* the deadline has passed */
};

/* Whether this thread has a function by shmview_on_wait(). */
bool wait_has_caller(void);
/* Runs the function. The calling thread must hold nothing that the function could wait for. Returns
 * 0 to go on, or -SHMVIEW_ERR_INTERRUPTED. */
int wait_ask(void);
/* Like wait_ask(), but for a wait for the daemon, in which this thread may have the mutex of a
 * connection. The function may still call the library, but these calls must not wait for a
 * connection: they fail instead of calling a daemon, and leave a Detach to the owner of the mutex.
 */
int wait_go_on(void);
/* Whether this thread is inside wait_go_on(). */
bool wait_is_asking(void);
/* Returns 0, or -SHMVIEW_ERR_DEADLOCK if this thread is inside wait_go_on(). */
int wait_refuse(void);
/* Locks the mutex. Returns 0, or -SHMVIEW_ERR_INTERRUPTED without the mutex. */
int wait_for_mutex(pthread_mutex_t *mutex);
/* Sleeps for ns, which is less than a second. Returns what wait_go_on() returns. */
int wait_a_moment(int64_t ns);
/* In a forked child: removes the function of the parent and the state of its wait. */
void wait_forget(void);

#pragma GCC visibility pop

#endif
