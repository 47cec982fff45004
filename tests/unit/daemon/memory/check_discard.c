/* SPDX-License-Identifier: Apache-2.0 */
/* Checks discard.c: descriptors are closed by a thread of the loop, or at once if no loop can do
 * it; those of small objects by a thread of the lowest priority. */
#include "unit/unit.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>

#include "daemon/memory/discard.h"

#define LARGE DISCARD_LARGE_BYTES

static uv_loop_t loop;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void begin(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    discard_init(&loop);
}

static void end(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    discard_init(NULL);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* Returns the write end of a pipe. *ret is its read end. */
static int pipe_end(int *ret)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    *ret = ends[0];
    return ends[1];
}

/* Returns whether the other end is closed. */
static bool ended(int fd)
{
    char byte;
    return read(fd, &byte, 1) == 0;
}

START_TEST(at_once_without_a_loop)
{
    int other, fd = pipe_end(&other);
    discard(fd, LARGE);
    ck_assert(!is_open(fd));
    ck_assert(ended(other));
    ck_assert(!discard_settle());
    close(other);
}
END_TEST

START_TEST(by_the_loop)
{
    int others[50];
    begin();
    for (int i = 0; i < 50; i++)
        discard(pipe_end(&others[i]), LARGE);
    end();
    for (int i = 0; i < 50; i++) {
        ck_assert(ended(others[i]));
        close(others[i]);
    }
}
END_TEST

/* The loop does not run and its threads may be busy, but everything must be closed. */
START_TEST(settle)
{
    int others[50];
    begin();
    for (int i = 0; i < 50; i++)
        discard(pipe_end(&others[i]), LARGE);
    discard_settle();
    for (int i = 0; i < 50; i++) {
        ck_assert(ended(others[i]));
        close(others[i]);
    }
    discard_settle();
    end();
}
END_TEST

static void *settle_too(void *arg)
{
    discard_settle();
    return arg;
}

START_TEST(many_settle)
{
    int others[200];
    pthread_t threads[4];
    begin();
    for (int i = 0; i < 200; i++)
        discard(pipe_end(&others[i]), LARGE);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, settle_too, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 200; i++) {
        ck_assert(ended(others[i]));
        close(others[i]);
    }
    end();
}
END_TEST

static void *discard_too(void *arg)
{
    discard(*(int *)arg, LARGE);
    return NULL;
}

/* A thread other than the loop's closes them itself. */
START_TEST(another_thread)
{
    int other, fd = pipe_end(&other);
    pthread_t thread;
    begin();
    ck_assert_int_eq(pthread_create(&thread, NULL, discard_too, &fd), 0);
    pthread_join(thread, NULL);
    ck_assert(ended(other));
    close(other);
    end();
}
END_TEST

static void begin_quiet(void)
{
    begin();
    ck_assert_int_eq(discard_start(), 0);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_close(handle, NULL);
}

/* Like end(), for a loop that collects small objects. */
static void end_all(void)
{
    uv_walk(&loop, close_handle, NULL);
    end();
}

/* Runs the loop until the other end is closed. */
static void await_end(int fd)
{
    while (!ended(fd)) {
        uv_run(&loop, UV_RUN_NOWAIT); /* nothing wakes the loop when the thread is ready */
        sched_yield();
    }
    close(fd);
}

/* Small ones are collected: none is closed before the loop runs. */
START_TEST(soon)
{
    int others[3];
    begin_quiet();
    for (int i = 0; i < 3; i++)
        discard_soon(pipe_end(&others[i]), NULL, 0);
    for (int i = 0; i < 3; i++)
        ck_assert(!ended(others[i]));
    for (int i = 0; i < 3; i++)
        await_end(others[i]);
    end_all();
}
END_TEST

/* Many are handed over before their time has come, and only some wait: all but 32, and one that the
 * thread closes, are closed without the loop. */
START_TEST(very_many_soon)
{
    int others[600];
    begin_quiet();
    for (int i = 0; i < 600; i++)
        discard_soon(pipe_end(&others[i]), NULL, 0);
    unsigned n_open = 0;
    for (int i = 0; i < 600; i++)
        n_open += !ended(others[i]);
    ck_assert_uint_le(n_open, 32 + 1);
    for (int i = 0; i < 600; i++)
        await_end(others[i]);
    end_all();
}
END_TEST

/* The nice value of a thread of this process other than this one; -1: there is none. */
static int other_nice(void)
{
    char path[64], line[512];
    int nice = -1;
    DIR *dir = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", e->d_name);
        FILE *f = atoi(e->d_name) == getpid() ? NULL : fopen(path, "re");
        if (f && fgets(line, sizeof line, f))
            sscanf(strrchr(line, ')'),
                   ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %d", &nice);
        if (f)
            fclose(f);
    }
    closedir(dir);
    return nice;
}

/* The thread closes a small object without the loop, and has the lowest priority. */
START_TEST(small_ones_by_the_quiet_thread)
{
    int others[3];
    begin_quiet();
    for (int i = 0; i < 3; i++) {
        discard(pipe_end(&others[i]), LARGE - 1);
        while (!ended(others[i]) || discard_is_busy())
            sched_yield();
        close(others[i]);
    }
    ck_assert_int_eq(other_nice(), 19);
    discard_soon(pipe_end(&others[0]), NULL, 0);
    ck_assert(!discard_is_busy());
    end_all();
    ck_assert(ended(others[0]));
    close(others[0]);
}
END_TEST

/* Memory that is wanted now, and the end of the loop, do not wait. */
START_TEST(soon_is_now)
{
    int others[2];
    const size_t page = 4096;
    begin_quiet();
    void *map = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    discard_soon(pipe_end(&others[0]), map, page);
    ck_assert_int_eq(msync(map, page, MS_ASYNC), 0);
    ck_assert(discard_settle());
    ck_assert_int_eq(msync(map, page, MS_ASYNC), -1);
    ck_assert(ended(others[0]));
    ck_assert(!discard_settle());
    discard_soon(pipe_end(&others[1]), NULL, 0);
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(!ended(others[1]));
    discard_init(NULL);
    ck_assert(ended(others[1]));
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    close(others[0]);
    close(others[1]);
}
END_TEST

UNIT_MAIN("discard", UNIT_TEST(at_once_without_a_loop), UNIT_TEST(by_the_loop), UNIT_TEST(settle),
          UNIT_TEST(many_settle), UNIT_TEST(another_thread), UNIT_TEST(soon),
          UNIT_TEST(very_many_soon), UNIT_TEST(soon_is_now),
          UNIT_TEST(small_ones_by_the_quiet_thread))
