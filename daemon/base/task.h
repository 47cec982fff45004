/* SPDX-License-Identifier: Apache-2.0 */
/* Work in steps by threads of libuv's pool, users in turn:
 *
 *   added -> waiting -> running a step -> (waiting -> running)* -> done
 *
 * A user has at most one task fewer running than there may be, so that another user's begins at
 * once. Where more wait, a user that has none running comes first after the next step; the tasks
 * of one user take turns. */
#ifndef DAEMON_TASK_H
#define DAEMON_TASK_H

#include <stdbool.h>
#include <sys/queue.h>

#include <uv.h>

struct task_user;

struct task {
    uv_work_t work;
    uv_loop_t *loop;
    struct task_user *user;          /* who has something charged until the task is done */
    bool (*step)(struct task *task); /* in a thread; returns whether there is more to do */
    void (*done)(struct task *task); /* by the loop */
    bool more;
    bool waits;
    TAILQ_ENTRY(task) link;
};
TAILQ_HEAD(task_list, task);

/* What a user has of it. Zeroed and task_user_init(). */
struct task_user {
    struct task_list waiting;
    unsigned n_running;
    TAILQ_ENTRY(task_user) link; /* of those with tasks that wait */
};
void task_user_init(struct task_user *user);

/* Adds a task whose loop, user, step and done are set. */
void task_add(struct task *task);

/* Takes back a task that waits: its step will not be called any more, nor done. Returns false for
 * one that is running. */
bool task_take_back(struct task *task);

#endif
