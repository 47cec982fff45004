/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that take one step after another, and end, when the test lets them.
 *
 *     static void holder(struct child *me, void *segment)
 *     {
 *         ck_assert_int_eq(shmview_lock(segment), 0);
 *         child_tell(me, 1);
 *         child_pause(me);
 *         ck_assert_int_eq(shmview_unlock(segment), 0);
 *     }
 *
 *     child_start(&child, holder, segment);
 *     child_hear(&child, 1);      it holds the lock now
 *     child_kill(&child);         kill -9; the child is gone when this returns
 *
 * A check that fails in a child fails the test. The kernel kills a child whose test ends. */
#ifndef SUPPORT_CHILD_H
#define SUPPORT_CHILD_H

#include <sys/types.h>

struct child {
    pid_t pid; /* in the child: its own */
    int fd;    /* one end of a socket pair */
};

/* --- In the test --------------------------------------------------------- */

/* Forks a child that runs run(me, arg) and exits with 0 when run() returns. The test must end
 * each child with child_wait(), child_wait_signal() or child_kill(). */
void child_start(struct child *child, void (*run)(struct child *me, void *arg), void *arg);

/* Waits for the child's next report, which must be what. */
void child_hear(struct child *child, int what);
/* Waits for the child's next report. Returns it. */
int child_hear_any(struct child *child);
/* Lets the child return from child_pause(). */
void child_cue(struct child *child);

/* Wait until the child has ended: with status 0, or by the signal. Any other end fails the test. */
void child_wait(struct child *child);
void child_wait_signal(struct child *child, int signal);
/* Sends SIGKILL and waits until the child is gone. */
void child_kill(struct child *child);
/* Sends SIGSTOP and waits until the child has stopped; sends SIGCONT. */
void child_stop(struct child *child);
void child_continue(struct child *child);

/* --- In the child -------------------------------------------------------- */

/* Reports what to the test; does not wait until the test reads it. */
void child_tell(struct child *me, int what);
/* Waits for child_cue(). */
void child_pause(struct child *me);
/* From now on any system call but write and exit ends the child, which prints the call's number
 * on stderr. Does nothing under a sanitizer, because sanitizers make system calls themselves. */
void child_forbid_system_calls(void);

/* --- Any process --------------------------------------------------------- */

#define PROCESS_HERE  -1
#define PROCESS_APART -2
/* Selects the pid namespace of daemons and children that this process starts from now on: its own
 * (PROCESS_HERE), a new one for each (PROCESS_APART), or the one of a descriptor. Only root may
 * select another one than its own. */
void process_namespace(int which);
/* Forks into the selected namespace. In the child, handlers of pthread_atfork() may not have run.
 * Returns what fork() returns. */
pid_t process_fork(void);

/* Sends SIGKILL to a child of this process and waits until it is gone. */
void process_kill(pid_t pid);
/* Sends SIGSTOP to a child of this process and waits until it has stopped. */
void process_stop(pid_t pid);
/* Waits for the end of a child of this process, at most AWAIT_NS. Returns the
 * status of waitpid(). */
int process_wait(pid_t pid);
/* Waits until this process has no children left, adopted orphans included. */
void process_await_none(void);
/* Returns whether the process exists and is not a zombie. It need not be a child. */
int process_lives(pid_t pid);
/* Returns the processor time that the process has used, user and system, in milliseconds. */
long process_cpu_ms(pid_t pid);
/* Returns how many descriptors the process has open. It may be any process of this user. */
unsigned process_descriptors(pid_t pid);

#endif
