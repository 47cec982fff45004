/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/base/log.h"

#define THREADS_USUAL    4
#define THREADS_MOST     64
#define LOOP_DESCRIPTORS 8 /* a loop of libuv 1.44 opens 6, one of 1.51 two more */
/* The least stack with which a thread is tried. stack_bytes() takes RLIMIT_STACK if that is larger,
 * because libuv may give the threads of its pool that much. */
#define STACK_BYTES ((size_t)8 << 20)

/* --- The pool ------------------------------------------------------------ */

static void wait_for_end(void *end)
{
    uv_sem_wait(end);
}

static size_t stack_bytes(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur < STACK_BYTES)
        return STACK_BYTES;
    return (size_t)limit.rlim_cur;
}

/* How many of n threads the process can have at once: starts them, and ends them. Trying is the
 * only way to know, because several limits of memory and of processes apply. libc keeps the stacks
 * for the threads that libuv starts next. */
static unsigned startable(unsigned n)
{
    uv_thread_t threads[THREADS_MOST];
    uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE, .stack_size = stack_bytes()};
    uv_sem_t end;
    unsigned started = 0;
    if (uv_sem_init(&end, 0))
        return 0;
    while (started < n && uv_thread_create_ex(&threads[started], &options, wait_for_end, &end) == 0)
        started++;
    for (unsigned i = 0; i < started; i++)
        uv_sem_post(&end);
    for (unsigned i = 0; i < started; i++)
        uv_thread_join(&threads[i]);
    uv_sem_destroy(&end);
    return started;
}

/* The number of threads that libuv would start. */
static unsigned wanted_threads(void)
{
    const char *set = getenv("UV_THREADPOOL_SIZE");
    int n = set ? atoi(set) : THREADS_USUAL;
    return n < 1 ? 1 : n > THREADS_MOST ? THREADS_MOST : (unsigned)n;
}

static void do_nothing(uv_work_t *work)
{
    (void)work;
}

/* Makes libuv start the threads of its pool, which it does at the first uv_queue_work(). libuv
 * reads their number from the environment. `first` is static because it must live until a thread
 * has finished it. */
static int start_pool(uv_loop_t *loop)
{
    static uv_work_t first;
    char n_threads[16];
    unsigned wanted = wanted_threads(), n = startable(wanted);
    if (n < wanted)
        log_warning("%u of %u threads can be started: memory or processes are limited", n, wanted);
    if (n == 0)
        return -EAGAIN;
    snprintf(n_threads, sizeof n_threads, "%u", n);
    if (setenv("UV_THREADPOOL_SIZE", n_threads, 1))
        return -errno;
    return uv_queue_work(loop, &first, do_nothing, NULL);
}

/* libuv aborts if it finds no descriptors for the pipe of its signals, which it opens after some of
 * its own. Opens as many, and closes them for libuv. Returns 0 or -errno. */
static int check_descriptors(void)
{
    int fds[LOOP_DESCRIPTORS];
    unsigned n = 0;
    while (n < LOOP_DESCRIPTORS && (fds[n] = open("/", O_PATH | O_CLOEXEC)) >= 0)
        n++;
    int r = n < LOOP_DESCRIPTORS ? -errno : 0;
    while (n > 0)
        close(fds[--n]);
    return r;
}

int loop_init(uv_loop_t *loop)
{
    int r = check_descriptors();
    if (r == 0)
        r = uv_loop_init(loop);
    return r ? r : start_pool(loop);
}

/* --- The table of descriptors -------------------------------------------- */

int loop_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    if (fd >= 0 && (unsigned)fd >= loop->nwatchers) {
        /* uv_poll_start() enlarges the table to the next power of two, and aborts if that fails:
         * allocate as much here, and free it for libuv */
        void *table = malloc(2 * sizeof(void *) * ((size_t)fd + 4));
        if (!table)
            return -ENOMEM;
        /* a compiler may leave out an allocation that nothing uses, as clang 19 does */
        __asm__ volatile("" : : "r"(table) : "memory");
        free(table);
    }
    return uv_poll_init(loop, poll, fd);
}
