/* SPDX-License-Identifier: Apache-2.0 */
/* Checks loop.c: the threads that libuv gets, and a process whose descriptors or memory run out. */
#include "daemon/base/loop.h"

#include <sys/resource.h>

#include "unit/faults.h"
#include "unit/unit.h"

static uv_loop_t loop;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void end(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static unsigned n_threads(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* --- Threads ------------------------------------------------------------- */

START_TEST(as_many_threads_as_wanted)
{
    const struct {
        const char *wanted, *expected;
    } cases[] = {{"3", "3"},  {NULL, "4"}, {"1", "1"},   {"0", "1"},
                 {"-5", "1"}, {"x", "1"},  {"64", "64"}, {"1000", "64"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].wanted)
            setenv("UV_THREADPOOL_SIZE", cases[i].wanted, 1);
        else
            unsetenv("UV_THREADPOOL_SIZE");
        unsigned before = n_threads();
        ck_assert_int_eq(loop_init(&loop), 0);
        ck_assert_str_eq(getenv("UV_THREADPOOL_SIZE"), cases[i].expected);
        if (i == 0) /* libuv starts its threads once for a process */
            ck_assert_uint_eq(n_threads(), before + 3);
        end();
    }
}
END_TEST

/* The limit of the stack is also that of a thread. */
START_TEST(stacks_of_any_size)
{
    const rlim_t sizes[] = {1 << 20, 16 << 20, RLIM_INFINITY};
    struct rlimit before, limit;
    setenv("UV_THREADPOOL_SIZE", "2", 1);
    ck_assert_int_eq(getrlimit(RLIMIT_STACK, &before), 0);
    for (int i = 0; i < 3; i++) {
        limit = (struct rlimit){sizes[i] < before.rlim_max ? sizes[i] : before.rlim_max,
                                before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_STACK, &limit), 0);
        ck_assert_int_eq(loop_init(&loop), 0);
        ck_assert_str_eq(getenv("UV_THREADPOOL_SIZE"), "2");
        end();
    }
}
END_TEST

/* --- Descriptors --------------------------------------------------------- */

/* libuv would abort the process; loop_init() returns the error. */
START_TEST(no_descriptors)
{
    struct rlimit before, limit;
    int r = -EMFILE, next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlim_t most = (rlim_t)next;
    for (; r == -EMFILE && most < (rlim_t)next + 20; most++) {
        limit = (struct rlimit){most, before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        r = loop_init(&loop);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (r)
            ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
    ck_assert_int_eq(r, 0);
    ck_assert_uint_gt(most, (rlim_t)next + 1);
    end();
}
END_TEST

static void ring(uv_poll_t *poll, int status, int events)
{
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(events, UV_WRITABLE);
    *(bool *)poll->data = true;
    uv_close((uv_handle_t *)poll, NULL);
}

/* A descriptor for which the table cannot grow is refused. It can be watched when there is memory
 * again. */
START_TEST(table_that_cannot_grow)
{
    int ends[2], high;
    bool rung = false;
    uv_poll_t poll = {.data = &rung};
    ck_assert_int_eq(loop_init(&loop), 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_ge(high = fcntl(ends[1], F_DUPFD_CLOEXEC, 500), 500);
    faults_begin_call("malloc", 1, ENOMEM, true);
    int r = loop_poll_init(&loop, &poll, high);
    ck_assert(faults_end());
    ck_assert_int_eq(r, -ENOMEM);
    ck_assert_int_eq(loop_poll_init(&loop, &poll, high), 0);
    ck_assert_int_eq(uv_poll_start(&poll, UV_WRITABLE, ring), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(rung);
    /* now the table has room, so no memory is needed */
    poll = (uv_poll_t){.data = &rung};
    faults_begin_call("malloc", 1, ENOMEM, true);
    r = loop_poll_init(&loop, &poll, ends[1]);
    ck_assert(!faults_end());
    ck_assert_int_eq(r, 0);
    uv_close((uv_handle_t *)&poll, NULL);
    end();
    close(high);
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* The error of uv_poll_init(). */
START_TEST(what_cannot_be_watched)
{
    uv_poll_t poll;
    ck_assert_int_eq(loop_init(&loop), 0);
    faults_begin_call("malloc", 1, ENOMEM, true); /* it needs no room in the table */
    int r = loop_poll_init(&loop, &poll, -1);
    faults_end();
    ck_assert_int_eq(r, -EBADF);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(loop_poll_init(&loop, &poll, file), -EPERM);
    close(file);
    end();
}
END_TEST

UNIT_MAIN("loop", UNIT_TEST(as_many_threads_as_wanted), UNIT_TEST(stacks_of_any_size),
          UNIT_TEST(no_descriptors), UNIT_TEST(table_that_cannot_grow),
          UNIT_TEST(what_cannot_be_watched))
