/* SPDX-License-Identifier: Apache-2.0 */
/* Long work in steps, on the threads of libuv's pool. The users take turns.
 *
 *   added -> waiting -> running a step -> (waiting -> running)* -> done
 *
 * A step must be short, because a running step is never interrupted: only when one ends, this
 * module decides which task continues. As many tasks run at once as there are processors, three at
 * most. One user never gets the last of these places (unless there is only one), so that a task of
 * another user starts at once. Among users that wait, one that
 * has no task running comes first. The tasks of one user take turns.
 *
 * libuv's own queue is first-in first-out: a user with many creations would delay all others until
 * the last of them is done. All functions here run on the loop; only step() runs on a thread. */
#ifndef DAEMON_TASK_H
#define DAEMON_TASK_H

#include <stdbool.h>
#include <sys/queue.h>

#include <uv.h>

struct task_user;

/* Embedded in the object whose work it is. The owner keeps that object until done() is called or
 * task_take_back() returns true. */
struct task {
    uv_work_t work;
    uv_loop_t *loop;
    struct task_user *user;          /* must hold a charge until the task is done, see below */
    bool (*step)(struct task *task); /* runs on a thread; returns whether there is more to do */
    void (*done)(struct task *task); /* runs on the loop after the last step; may free the task */
    bool more;                       /* what the last step returned; passed to the loop */
    bool waits;                      /* in the list of its user; no thread uses it */
    TAILQ_ENTRY(task) link;
};
TAILQ_HEAD(task_list, task);

/* The tasks of one user; embedded in struct quota_user, which exists only while the user has a
 * charge. Start from zero and call task_user_init(). */
struct task_user {
    struct task_list waiting;
    unsigned n_running;
    TAILQ_ENTRY(task_user) link; /* in the list of users with waiting tasks */
};
void task_user_init(struct task_user *user);

/* Adds a task and starts it if there is room. The caller has set loop, user, step and done. */
void task_add(struct task *task);

/* Removes a waiting task: neither step() nor done() is called for it after that. Returns false if a
 * step is running; then done() will be called as usual. */
bool task_take_back(struct task *task);

#endif
