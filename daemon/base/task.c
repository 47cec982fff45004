/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/task.h"

#include <sys/resource.h>
#include <unistd.h>

/* libuv's pool usually has four threads. At least one is left for short work. */
#define RUNNING_MAX 3
/* The threads run at a lower priority than the loop, because other clients wait for the loop. */
#define NICENESS 5

/* Users with waiting tasks. A user goes to the end whenever one of its tasks is queued or started,
 * so the list is in the order of turns. */
static TAILQ_HEAD(, task_user) users = TAILQ_HEAD_INITIALIZER(users);
static unsigned n_running;

void task_user_init(struct task_user *user)
{
    TAILQ_INIT(&user->waiting);
}

static unsigned most_running(void)
{
    static unsigned n;
    if (n == 0)
        n = uv_available_parallelism();
    return n < RUNNING_MAX ? n : RUNNING_MAX;
}

/* A user is in the list of users only while it has waiting tasks. Each change of a user's tasks
 * therefore lies between unlink_user() and link_user(). */
static void link_user(struct task_user *u)
{
    if (!TAILQ_EMPTY(&u->waiting))
        TAILQ_INSERT_TAIL(&users, u, link);
}

static void unlink_user(struct task_user *u)
{
    if (!TAILQ_EMPTY(&u->waiting))
        TAILQ_REMOVE(&users, u, link);
}

static void enqueue(struct task *task)
{
    struct task_user *u = task->user;
    unlink_user(u);
    TAILQ_INSERT_TAIL(&u->waiting, task, link);
    task->waits = true;
    link_user(u);
}

static void dequeue(struct task *task)
{
    struct task_user *u = task->user;
    unlink_user(u);
    TAILQ_REMOVE(&u->waiting, task, link);
    task->waits = false;
    link_user(u);
}

/* Runs one step on a thread of the pool. In Linux setpriority() affects only the calling thread. */
static void run(uv_work_t *work)
{
    static _Thread_local bool is_nice;
    struct task *task = work->data;
    if (!is_nice)
        setpriority(PRIO_PROCESS, (id_t)gettid(), NICENESS);
    is_nice = true;
    task->more = task->step(task);
}

/* The user whose task starts now: the first one without a running task, or else the first one that
 * leaves a place for another user. NULL if all users must wait. */
static struct task_user *next_user(void)
{
    unsigned most = most_running();
    struct task_user *u;
    TAILQ_FOREACH (u, &users, link)
        if (u->n_running == 0)
            return u;
    TAILQ_FOREACH (u, &users, link)
        if (u->n_running + 1 < most)
            return u;
    return NULL;
}

static void run_more(void);

/* Runs on the loop after a step. Starts the next tasks before done(), which may take long. */
static void on_step(uv_work_t *work, int status)
{
    struct task *task = work->data;
    bool more = task->more;
    (void)status;
    n_running--;
    task->user->n_running--;
    if (more)
        enqueue(task);
    run_more();
    if (!more)
        task->done(task);
}

/* Hands tasks to the pool until all places are taken. */
static void run_more(void)
{
    struct task_user *u;
    while (n_running < most_running() && (u = next_user())) {
        struct task *task = TAILQ_FIRST(&u->waiting);
        dequeue(task);
        n_running++;
        u->n_running++;
        task->work.data = task;
        /* fails only without a callback */
        uv_queue_work(task->loop, &task->work, run, on_step);
    }
}

void task_add(struct task *task)
{
    enqueue(task);
    run_more();
}

bool task_take_back(struct task *task)
{
    if (!task->waits)
        return false;
    dequeue(task);
    return true;
}
