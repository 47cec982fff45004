/* SPDX-License-Identifier: Apache-2.0 */
/* The lock between threads of one process. Runs under TSan: the data that it
 * guards is plain. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "support/await.h"
#include "support/client.h"
#include "support/suite.h"

#include "one_segment.h"

#define THREADS   4
#define ADDITIONS 3000

static void *add(void *arg)
{
    uint64_t *sum = shmview_data(arg);
    for (int i = 0; i < ADDITIONS; i++) {
        int r = i % 2 ? shmview_lock(arg) : shmview_lock_until(arg, shmview_deadline(AWAIT_NS));
        if (r)
            return "lock failed";
        if (i % 7 == 0 && (shmview_lock(arg) || shmview_unlock(arg)))
            return "nested lock failed";
        ++*sum;
        if (shmview_unlock(arg))
            return "unlock failed";
    }
    return NULL;
}

static void run_threads(void *(*run)(void *), void *arg, int n)
{
    pthread_t thread[THREADS * 2];
    void *failed;
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, run, arg), 0);
    for (int i = 0; i < n; i++) {
        ck_assert_int_eq(pthread_join(thread[i], &failed), 0);
        if (failed)
            ck_abort_msg("%s: %s", (char *)failed, shmview_error_text());
    }
}

START_TEST(threads_exclude_each_other)
{
    open_segment();
    run_threads(add, seg, THREADS);
    ck_assert_uint_eq(*(uint64_t *)shmview_data(seg), THREADS * ADDITIONS);
    close_segment();
}
END_TEST

static void *not_mine(void *arg)
{
    if (shmview_unlock(arg) != -SHMVIEW_ERR_NOT_OWNER)
        return "another thread gave the lock back";
    if (shmview_trylock(arg) != -SHMVIEW_ERR_TIMED_OUT)
        return "recursion went to another thread";
    return NULL;
}

START_TEST(a_thread_owns_it_not_the_process)
{
    open_segment();
    OK(shmview_lock(seg));
    run_threads(not_mine, seg, 1);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void *exit_inside(void *arg)
{
    ++*(uint64_t *)shmview_data(arg);
    return shmview_lock(arg) < 0 || shmview_lock(arg) < 0 ? "lock failed" : NULL;
}

START_TEST(thread_that_exits_inside_has_died)
{
    open_segment();
    run_threads(exit_inside, seg, 1);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    run_threads(exit_inside, seg, 1);
    ck_assert_int_eq(shmview_trylock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

/* Threads that use one connection for all calls at the same time. */
static void *all_calls(void *arg)
{
    static _Atomic int last;
    char name[16];
    struct shmview_segment *mine;
    struct shmview_view view;
    const int64_t shape[] = {4};
    int number = ++last;
    const struct shmview_view_spec spec = {.name = "A", .format = "i", .ndim = 1, .shape = shape};
    (void)arg;
    snprintf(name, sizeof name, "t%d", number);
    for (int i = 0; i < 30; i++) {
        if (shmview_create(conn, name, 16, NULL, &mine))
            return "create failed";
        if (shmview_define(mine, "l", &spec, 1) || shmview_view_open(mine, "l", "A", &view))
            return "layout failed";
        SHMVIEW_AT1(int, &view, 3) = i;
        if (shmview_ping(conn) || shmview_detach(mine))
            return "ping or detach failed";
        if (shmview_attach(conn, "no", SHMVIEW_READ, 0, &mine) != -SHMVIEW_ERR_NOT_FOUND ||
            !strstr(shmview_error_text(), "'no'"))
            return "wrong error";
    }
    return NULL;
}

START_TEST(one_connection_for_all_threads)
{
    open_segment();
    run_threads(all_calls, NULL, THREADS);
    close_segment();
}
END_TEST

/* Many openers of one view that is declared later: the layouts are refreshed. */
static void *open_view(void *arg)
{
    struct shmview_view view;
    for (int i = 0; i < 200; i++)
        if (shmview_view_open(arg, "l", "A", &view) || view.shape[0] != 4)
            return "view_open failed";
    return NULL;
}

START_TEST(views_opened_by_many_threads)
{
    const int64_t shape[] = {4};
    const struct shmview_view_spec spec = {.name = "A", .format = "i", .ndim = 1, .shape = shape};
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_define(other, "l", &spec, 1));
    run_threads(open_view, seg, THREADS);
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(threads_exclude_each_other),        SUITE_TEST(a_thread_owns_it_not_the_process),
        SUITE_TEST(thread_that_exits_inside_has_died), SUITE_TEST(one_connection_for_all_threads),
        SUITE_TEST(views_opened_by_many_threads),      SUITE_END,
    };
    return suite_main("lock_threads", tests);
}
