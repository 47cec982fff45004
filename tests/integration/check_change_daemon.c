/* SPDX-License-Identifier: Apache-2.0 */
/* Changes while the daemon is gone, stopped or another one. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/await.h"
#include "support/change.h"
#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#include "one_segment.h"

/* --- Without the daemon -------------------------------------------------- */

/* Whether the socket has hung up: the daemon has gone. */
static bool has_ended(int fd)
{
    char byte;
    return recv(fd, &byte, sizeof byte, MSG_PEEK) == 0;
}

START_TEST(event_loops_hear_of_the_daemons_end)
{
    int late = 77;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    int fd = watch(seg);
    daemon_kill(&d);
    await_readable(fd);
    AWAIT(has_ended(fd));
    REFUSED(shmview_change_fd(seg, &late), DISCONNECTED, "");
    ck_assert_int_eq(late, 77);
    daemon_restart(&d);
    ck_assert_int_eq(watch(seg), fd); /* under the same number */
    drain(fd); /* it may have been woken for what this process did before it claimed */
    /* this process has asked the new daemon; a handle that only notifies is heard as well */
    OK(shmview_notify(other));
    AWAIT(is_readable(fd));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

static void notify_on_cue(struct child *me, void *arg)
{
    for (int i = 0; i < 3; i++)
        notify_and_stay(me, arg);
}

/* It makes no other call: notifying must find the new daemon. */
START_TEST(a_process_that_only_notifies_outlives_daemons)
{
    struct child child;
    open_segment();
    int fd = watch(seg);
    child_start(&child, notify_on_cue, seg);
    child_hear(&child, 1);
    for (int i = 0; i < 2; i++) {
        AWAIT(is_readable(fd));
        drain(fd);
        daemon_kill(&d);
        daemon_restart(&d);
        ck_assert_int_eq(watch(seg), fd);
        drain(fd);
        child_cue(&child);
        child_hear(&child, 1);
    }
    AWAIT(is_readable(fd));
    child_cue(&child);
    child_wait(&child);
    close_segment();
}
END_TEST

#define RINGS 3000 /* far more than fit into the queue */

START_TEST(rings_queue_while_the_daemon_is_stopped)
{
    struct child child[2];
    open_segment();
    struct shmview_segment *other = client_create(conn, "other", 4096);
    child_start(&child[0], watch_and_tell, seg);
    child_start(&child[1], watch_and_tell, other);
    child_hear(&child[0], 1);
    child_hear(&child[1], 1);
    ck_assert_int_eq(kill(d.pid, SIGSTOP), 0);
    for (int i = 0; i < RINGS; i++)
        OK(shmview_notify(seg));
    OK(shmview_notify(other)); /* finds the queue full */
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
    for (int i = 0; i < 2; i++) {
        child_hear(&child[i], 2);
        child_cue(&child[i]);
        child_wait(&child[i]);
    }
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

/* --- Time ---------------------------------------------------------------- */

#define CALLS 41

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Notifies, and switches, CALLS times, to layouts that the handle has never heard of. The machine
 * may be busy: the median counts. Without a bell each call would wait for the daemon. */
static void expect_quick(const char *when)
{
    int64_t took[2][CALLS];
    OK(shmview_lock(seg));
    for (int i = 0; i < CALLS; i++) {
        int64_t began = await_now_ns();
        OK(shmview_notify(seg));
        int64_t between = await_now_ns();
        OK(shmview_switch(seg, i % 2 ? "one" : "two"));
        took[0][i] = between - began;
        took[1][i] = await_now_ns() - between;
    }
    OK(shmview_unlock(seg));
    for (int i = 0; i < 2; i++) {
        qsort(took[i], CALLS, sizeof took[i][0], compare);
        ck_assert_msg(took[i][CALLS / 2] < 1000000 && took[i][CALLS - 1] < 500000000,
                      "%s while the daemon %s: %jd us, at worst %jd us", i ? "switch" : "notify",
                      when, (intmax_t)took[i][CALLS / 2] / 1000,
                      (intmax_t)took[i][CALLS - 1] / 1000);
    }
}

static void *ping(void *unused)
{
    return shmview_ping(conn) ? "ping failed" : unused;
}

static void define(const char *layout)
{
    const ptrdiff_t shape = 4;
    const struct shmview_view_spec view = {.name = "v", .format = "i", .ndim = 1, .shape = &shape};
    OK(shmview_define(seg, layout, &view, 1));
}

START_TEST(notify_and_switch_wait_for_nobody)
{
    struct child child;
    pthread_t thread;
    void *failed;
    open_segment();
    define("one");
    define("two");
    child_start(&child, watch_and_tell, seg);
    child_hear(&child, 1);
    expect_quick("serves");
    ck_assert_int_eq(kill(d.pid, SIGSTOP), 0);
    expect_quick("is stopped");
    ck_assert_int_eq(pthread_create(&thread, NULL, ping, NULL), 0);
    usleep(20000); /* it has the connection, and waits */
    expect_quick("is stopped, and another thread asks it");
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    child_hear(&child, 2);
    child_cue(&child);
    child_wait(&child);
    watch(seg);
    daemon_kill(&d);
    expect_quick("is gone");
    daemon_restart(&d);
    ck_assert_int_eq(kill(d.pid, SIGSTOP), 0);
    expect_quick("is another, and stopped");
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(event_loops_hear_of_the_daemons_end),
        SUITE_TEST(a_process_that_only_notifies_outlives_daemons),
        SUITE_TEST(rings_queue_while_the_daemon_is_stopped),
        SUITE_TEST(notify_and_switch_wait_for_nobody),
        SUITE_END,
    };
    return suite_main("change_daemon", tests);
}
