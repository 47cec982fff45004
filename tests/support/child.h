/* SPDX-License-Identifier: Apache-2.0 */
/* Children that do one thing after the other on cue, and die on cue.
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
 *     child_kill(&child);         kill -9, and gone when this returns
 *
 * A check that fails in a child fails the test. A child dies with the test. */
#ifndef SUPPORT_CHILD_H
#define SUPPORT_CHILD_H

#include <sys/types.h>

struct child {
    pid_t pid; /* in the child: its own */
    int fd;    /* one end of a socket pair */
};

/* --- In the test --------------------------------------------------------- */

/* Forks a child that runs run(me, arg) and exits with 0 when that returns. Every
 * child that is started owes a child_wait(), child_wait_signal() or child_kill(). */
void child_start(struct child *child, void (*run)(struct child *me, void *arg), void *arg);

/* Waits until the child tells exactly this. */
void child_hear(struct child *child, int what);
/* Waits until the child tells anything. Returns it. */
int child_hear_any(struct child *child);
/* Lets the child go on behind its child_pause(). */
void child_cue(struct child *child);

/* Waits until the child has ended with status 0, or by that signal. */
void child_wait(struct child *child);
void child_wait_signal(struct child *child, int signal);
/* SIGKILL, and waits until it is gone. */
void child_kill(struct child *child);
/* SIGSTOP, and waits until it stands still; SIGCONT. */
void child_stop(struct child *child);
void child_continue(struct child *child);

/* --- In the child -------------------------------------------------------- */

/* Tells the test something; does not wait until it hears it. */
void child_tell(struct child *me, int what);
/* Waits for child_cue(). */
void child_pause(struct child *me);
/* From now on any system call but write and exit ends the child, with the call's number on
 * stderr. Sanitizers make calls of their own whenever they like: with them it does nothing. */
void child_forbid_system_calls(void);

/* --- Any process --------------------------------------------------------- */

#define PROCESS_HERE  -1
#define PROCESS_APART -2
/* The pid namespace of daemons and children that this process starts from now on: its own, a new
 * one for each, or one by a descriptor. Others than its own are for root. */
void process_namespace(int which);
/* fork() into that. In the child, handlers of pthread_atfork() may not have run. */
pid_t process_fork(void);

/* SIGKILL to a child of this process, and waits until it is gone. */
void process_kill(pid_t pid);
/* SIGSTOP to a child of this process, and waits until it stands still. */
void process_stop(pid_t pid);
/* Waits for the end of a child of this process, at most AWAIT_NS. Returns the
 * status of waitpid(). */
int process_wait(pid_t pid);
/* Waits until this process has no child any more, adopted orphans among them. */
void process_await_none(void);
/* Whether the process is there and no zombie; any process, not only a child. */
int process_lives(pid_t pid);
/* Processor time used so far, user and system, in milliseconds. */
long process_cpu_ms(pid_t pid);
/* Descriptors that it has open; any process of this user. */
unsigned process_descriptors(pid_t pid);

#endif
