/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/discard.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

/* One descriptor that waits for a thread. Only the loop adds and frees a job. fd and the list are
 * protected by `lock`, because a thread of the pool and discard_settle() compete for the work. */
struct job {
    uv_work_t work;
    int fd;        /* -1: a thread has begun with it */
    int64_t bytes; /* the new size of the file; -1: only close it */
    LIST_ENTRY(job) link;
};

/* Both are written by the loop's thread, while no other thread calls this module. */
static uv_loop_t *by_loop;
static pthread_t loop_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(, job) jobs = LIST_HEAD_INITIALIZER(jobs);
static unsigned n_busy; /* descriptors that are being closed now; protected by lock */

void discard_init(uv_loop_t *loop)
{
    by_loop = loop;
    loop_thread = pthread_self();
}

/* Does the work of one job. Blocks. */
static void finish(int fd, int64_t bytes)
{
    if (bytes >= 0 && ftruncate(fd, bytes) == 0)
        posix_fallocate(fd, 0, bytes);
    close(fd);
}

/* Does a job, unless another thread has begun with it. The caller holds the lock; it is released
 * while the kernel frees the memory. */
static void do_job(struct job *job)
{
    int fd = job->fd;
    int64_t bytes = job->bytes;
    if (fd < 0)
        return;
    job->fd = -1;
    n_busy++;
    pthread_mutex_unlock(&lock);
    finish(fd, bytes); /* from here on the loop may free the job */
    pthread_mutex_lock(&lock);
    if (--n_busy == 0)
        pthread_cond_broadcast(&idle);
}

static void work(uv_work_t *work)
{
    pthread_mutex_lock(&lock);
    do_job(work->data);
    pthread_mutex_unlock(&lock);
}

static void done(uv_work_t *work, int status)
{
    struct job *job = work->data;
    (void)status;
    pthread_mutex_lock(&lock);
    LIST_REMOVE(job, link);
    pthread_mutex_unlock(&lock);
    free(job);
}

/* Queues a job. Does the work at once on a thread other than the loop's, because uv_queue_work()
 * may be called only there, and if there is no memory for the job. */
static void start(int fd, int64_t bytes)
{
    struct job *job =
        by_loop && pthread_equal(pthread_self(), loop_thread) ? calloc(1, sizeof *job) : NULL;
    if (!job) {
        finish(fd, bytes);
        return;
    }
    job->fd = fd;
    job->bytes = bytes;
    job->work.data = job;
    pthread_mutex_lock(&lock);
    LIST_INSERT_HEAD(&jobs, job, link);
    pthread_mutex_unlock(&lock);
    uv_queue_work(by_loop, &job->work, work, done); /* fails only without a callback */
}

void discard(int fd)
{
    start(fd, -1);
}

void discard_excess(int fd, uint64_t bytes)
{
    start(fd, (int64_t)bytes);
}

bool discard_settle(void)
{
    struct job *job;
    pthread_mutex_lock(&lock);
    bool any = n_busy > 0;
    do {
        LIST_FOREACH (job, &jobs, link)
            if (job->fd >= 0)
                break;
        any |= job != NULL;
        if (job)
            do_job(job);
    } while (job);
    while (n_busy)
        pthread_cond_wait(&idle, &lock);
    pthread_mutex_unlock(&lock);
    return any;
}
