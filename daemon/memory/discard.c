/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/discard.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/alarm.h"
#include "daemon/base/hurry.h"

/* How long what discard_soon() gets is collected, and how many; and how many may wait. The daemon
 * has few descriptors for them (server.c). */
#define COLLECT_MS   20
#define COLLECT_MOST 16
#define WAITING_MOST 32
#define STACK_BYTES  ((size_t)256 << 10)

/* A descriptor, a mapping, or both. */
struct small {
    int fd; /* -1: none */
    void *map;
    size_t bytes; /* of the map */
};

/* What else is done with a file before it is closed. */
struct excess {
    int64_t bytes; /* its new size; -1: it stays as it is */
    int64_t from;  /* memory is committed from this byte on */
};

static const struct excess no_excess = {.bytes = -1};

/* A descriptor that waits for a thread of libuv's pool. Only the loop adds and frees a job. */
struct job {
    uv_work_t work;
    bool begun; /* by a thread, or by discard_settle() */
    int fd;
    struct excess excess;
    void (*done)(void *arg); /* called on the loop after it; NULL: nothing */
    void *arg;
    LIST_ENTRY(job) link;
};

/* Written by the loop's thread, while no other thread calls this module. */
static uv_loop_t *by_loop;
static pthread_t loop_thread;
static uv_thread_t quiet_thread;
static bool has_quiet;           /* quiet_thread runs, and quiet_alarm is initialised */
static struct alarm quiet_alarm; /* of the loop: the thread gets what was collected */

/* The lock protects what follows, and `begun` of all jobs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static LIST_HEAD(, job) jobs = LIST_HEAD_INITIALIZER(jobs);
static struct small waiting[WAITING_MOST]; /* for the quiet thread */
static unsigned n_waiting;
static unsigned n_busy; /* descriptors and mappings that are being freed now, by any thread */
static bool is_wanted;  /* set by the loop; the quiet thread then empties `waiting` */
static bool is_ending;  /* set by the loop; the quiet thread then ends */

static bool on_loop(void)
{
    return by_loop && pthread_equal(pthread_self(), loop_thread);
}

/* Another process may have cut the file again since the work was queued. */
static void set_size(int fd, struct excess excess)
{
    struct stat st;
    int64_t from = fstat(fd, &st) == 0 && st.st_size < excess.from ? st.st_size : excess.from;
    if (ftruncate(fd, excess.bytes) == 0 && from < excess.bytes)
        posix_fallocate(fd, from, excess.bytes - from);
}

/* Does the work. Blocks. */
static void finish(const struct small *s, struct excess excess)
{
    if (excess.bytes >= 0)
        set_size(s->fd, excess);
    if (s->fd >= 0)
        close(s->fd);
    if (s->map)
        munmap(s->map, s->bytes);
}

/* Like finish(). The caller holds the lock; it is released while the kernel frees the memory. */
static void finish_unlocked(struct small small, struct excess excess)
{
    n_busy++;
    pthread_mutex_unlock(&lock);
    finish(&small, excess);
    pthread_mutex_lock(&lock);
    if (--n_busy == 0)
        pthread_cond_broadcast(&idle);
}

/* --- The quiet thread ---------------------------------------------------- */

/* Frees what waits for the thread. The caller holds the lock. Returns whether there was any. */
static bool empty(void)
{
    bool any = n_waiting > 0;
    while (n_waiting > 0)
        finish_unlocked(waiting[--n_waiting], no_excess);
    is_wanted = false;
    return any;
}

static void run_quiet(void *arg)
{
    (void)arg;
    hurry_least();
    pthread_mutex_lock(&lock);
    while (!is_ending) {
        if (is_wanted)
            empty();
        else
            pthread_cond_wait(&wanted, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void wake(void)
{
    pthread_mutex_lock(&lock);
    is_wanted = true;
    pthread_cond_signal(&wanted);
    pthread_mutex_unlock(&lock);
}

static void on_alarm(struct alarm *a)
{
    (void)a;
    wake();
}

/* Hands something to the thread. Loop only. Returns how many wait now, or 0 if there is no room. */
static unsigned add(struct small small)
{
    pthread_mutex_lock(&lock);
    unsigned n = n_waiting < WAITING_MOST ? n_waiting + 1 : 0;
    if (n > 0)
        waiting[n_waiting++] = small;
    pthread_mutex_unlock(&lock);
    return n;
}

int discard_start(void)
{
    const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                         .stack_size = STACK_BYTES};
    int r = alarm_init(&quiet_alarm, by_loop, on_alarm, NULL);
    if (r)
        return r;
    has_quiet = uv_thread_create_ex(&quiet_thread, &options, run_quiet, NULL) == 0;
    if (!has_quiet)
        alarm_close(&quiet_alarm, NULL);
    return 0;
}

static void end_quiet(void)
{
    if (!has_quiet)
        return;
    pthread_mutex_lock(&lock);
    is_ending = true;
    pthread_cond_signal(&wanted);
    pthread_mutex_unlock(&lock);
    uv_thread_join(&quiet_thread);
    close_fdp(&quiet_alarm.fd); /* the loop before has closed its handle */
    has_quiet = is_ending = false;
}

bool discard_is_busy(void)
{
    pthread_mutex_lock(&lock);
    bool busy = is_wanted;
    pthread_mutex_unlock(&lock);
    return busy;
}

/* --- libuv's pool -------------------------------------------------------- */

/* Does a job, unless another thread has begun with it. The caller holds the lock. */
static void do_job(struct job *job)
{
    if (job->begun)
        return;
    job->begun = true;
    finish_unlocked((struct small){.fd = job->fd},
                    job->excess); /* from here on the loop may free the job */
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
    if (job->done)
        job->done(job->arg);
    free(job);
}

/* Queues a job. Does the work at once on a thread other than the loop's, because uv_queue_work()
 * may be called only there, and if there is no memory for the job. */
static void start_job(int fd, struct excess excess, void (*then)(void *arg), void *arg)
{
    struct job *job = on_loop() ? calloc(1, sizeof *job) : NULL;
    if (!job) {
        finish(&(struct small){.fd = fd}, excess);
        if (then)
            then(arg);
        return;
    }
    job->fd = fd;
    job->excess = excess;
    job->done = then;
    job->arg = arg;
    job->work.data = job;
    pthread_mutex_lock(&lock);
    LIST_INSERT_HEAD(&jobs, job, link);
    pthread_mutex_unlock(&lock);
    uv_queue_work(by_loop, &job->work, work, done); /* fails only without a callback */
}

/* --- Both ---------------------------------------------------------------- */

void discard_init(uv_loop_t *loop)
{
    end_quiet();
    by_loop = loop;
    loop_thread = pthread_self();
    pthread_mutex_lock(&lock);
    empty();
    pthread_mutex_unlock(&lock);
}

void discard_soon(int fd, void *map, size_t bytes)
{
    const struct small small = {fd, map, bytes};
    unsigned n = has_quiet && on_loop() ? add(small) : 0;
    if (n == 0)
        finish(&small, no_excess);
    else if (n == COLLECT_MOST)
        wake();
    else if (!quiet_alarm.is_set)
        alarm_set(&quiet_alarm, COLLECT_MS, 0);
}

void discard(int fd, uint64_t bytes)
{
    bool is_small = bytes < DISCARD_LARGE_BYTES && has_quiet && on_loop();
    if (is_small && add((struct small){.fd = fd}) > 0)
        wake();
    else
        start_job(fd, no_excess, NULL, NULL);
}

void discard_excess(int fd, uint64_t bytes, uint64_t from, void (*then)(void *arg), void *arg)
{
    const struct excess excess = {(int64_t)bytes, (int64_t)from};
    start_job(fd, excess, then, arg);
}

bool discard_settle(void)
{
    struct job *job;
    pthread_mutex_lock(&lock);
    bool any = n_busy > 0;
    any |= empty();
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
