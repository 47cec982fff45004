/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/discard.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/alarm.h"

/* How long small objects are collected, how many a thread gets at once, and how many may wait. The
 * daemon has few descriptors for them (server.c). */
#define COLLECT_MS   20
#define COLLECT_MOST 16
#define WAITING_MOST 32

/* A descriptor, a mapping, or both. */
struct small {
    int fd;
    void *map;
    size_t bytes;
};

/* What discard_soon() has collected. */
struct heap {
    unsigned n;
    struct small list[COLLECT_MOST];
};

/* One descriptor, or one heap, that waits for a thread. Only the loop adds and frees a job. fd and
 * the list are protected by `lock`, because a thread of the pool and discard_settle() compete for
 * the work. */
struct job {
    uv_work_t work;
    bool begun;        /* by a thread, or by discard_settle() */
    int fd;            /* -1: none */
    int64_t bytes;     /* the new size of the file; -1: only close it */
    struct heap *heap; /* owned; NULL: none */
    LIST_ENTRY(job) link;
};

/* Both are written by the loop's thread, while no other thread calls this module. */
static uv_loop_t *by_loop;
static pthread_t loop_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(, job) jobs = LIST_HEAD_INITIALIZER(jobs);
static unsigned n_busy; /* jobs that are being done now; protected by lock */

static struct alarm flush_alarm; /* of the loop: the heap goes to a thread */
static bool collects;            /* flush_alarm is initialised; written like by_loop */
static struct heap *collected;   /* owned; protected by lock */
static unsigned n_waiting;       /* in all heaps; protected by lock */

static void free_small(const struct small *s)
{
    if (s->fd >= 0)
        close(s->fd);
    if (s->map)
        munmap(s->map, s->bytes);
}

/* Frees a heap and all that is in it. heap may be NULL. Blocks. */
static void free_heap(struct heap *heap)
{
    if (!heap)
        return;
    for (unsigned i = 0; i < heap->n; i++)
        free_small(&heap->list[i]);
    pthread_mutex_lock(&lock);
    n_waiting -= heap->n;
    pthread_mutex_unlock(&lock);
    free(heap);
}

/* Does the work of one job. Blocks. */
static void finish(int fd, int64_t bytes, struct heap *heap)
{
    if (bytes >= 0 && ftruncate(fd, bytes) == 0)
        posix_fallocate(fd, 0, bytes);
    if (fd >= 0)
        close(fd);
    free_heap(heap);
}

/* Does a job, unless another thread has begun with it. The caller holds the lock; it is released
 * while the kernel frees the memory. */
static void do_job(struct job *job)
{
    int fd = job->fd;
    int64_t bytes = job->bytes;
    struct heap *heap = job->heap;
    if (job->begun)
        return;
    job->begun = true;
    n_busy++;
    pthread_mutex_unlock(&lock);
    finish(fd, bytes, heap); /* from here on the loop may free the job */
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
static void start(int fd, int64_t bytes, struct heap *heap)
{
    struct job *job =
        by_loop && pthread_equal(pthread_self(), loop_thread) ? calloc(1, sizeof *job) : NULL;
    if (!job) {
        finish(fd, bytes, heap);
        return;
    }
    job->fd = fd;
    job->bytes = bytes;
    job->heap = heap;
    job->work.data = job;
    pthread_mutex_lock(&lock);
    LIST_INSERT_HEAD(&jobs, job, link);
    pthread_mutex_unlock(&lock);
    uv_queue_work(by_loop, &job->work, work, done); /* fails only without a callback */
}

/* Returns the heap, which the caller owns; NULL if nothing was collected. Any thread. */
static struct heap *take_heap(void)
{
    pthread_mutex_lock(&lock);
    struct heap *heap = collected;
    collected = NULL;
    pthread_mutex_unlock(&lock);
    return heap;
}

static void on_alarm(struct alarm *a)
{
    struct heap *heap = take_heap();
    (void)a;
    if (heap)
        start(-1, -1, heap);
}

void discard_init(uv_loop_t *loop)
{
    if (collects)
        close_fdp(&flush_alarm.fd); /* the loop before has closed its handle */
    by_loop = loop;
    loop_thread = pthread_self();
    collects = false;
    free_heap(take_heap());
}

int discard_collect(void)
{
    int r = alarm_init(&flush_alarm, by_loop, on_alarm, NULL);
    collects = r == 0;
    return r;
}

/* Adds to the heap. Returns false if that is not possible. Loop only. */
static bool collect(struct small small, bool *ret_full)
{
    pthread_mutex_lock(&lock);
    if (!collected && n_waiting < WAITING_MOST)
        collected = calloc(1, sizeof *collected);
    bool added = collected && n_waiting < WAITING_MOST;
    if (added) {
        collected->list[collected->n++] = small;
        n_waiting++;
    }
    *ret_full = added && collected->n == COLLECT_MOST;
    pthread_mutex_unlock(&lock);
    return added;
}

void discard_soon(int fd, void *map, size_t bytes)
{
    const struct small small = {fd, map, bytes};
    bool full;
    bool is_loop = by_loop && pthread_equal(pthread_self(), loop_thread);
    if (!is_loop || !collects || !collect(small, &full)) {
        free_small(&small);
    } else if (full) {
        on_alarm(&flush_alarm);
    } else if (!flush_alarm.is_set) {
        alarm_set(&flush_alarm, COLLECT_MS, 0);
    }
}

void discard(int fd)
{
    start(fd, -1, NULL);
}

void discard_excess(int fd, uint64_t bytes)
{
    start(fd, (int64_t)bytes, NULL);
}

bool discard_settle(void)
{
    struct job *job;
    struct heap *heap = take_heap();
    bool any = heap != NULL;
    free_heap(heap);
    pthread_mutex_lock(&lock);
    any |= n_busy > 0;
    do {
        LIST_FOREACH (job, &jobs, link)
            if (!job->begun)
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
