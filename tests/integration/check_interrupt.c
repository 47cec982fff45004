/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a daemon that does not answer, which the caller ends, or goes on with. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <shmview/access.h>
#include <shmview/describe.h>
#include <shmview/monitor.h>
#include <shmview/stats.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg, *late;

static void begin(void)
{
    const ptrdiff_t shape = 4;
    const struct shmview_view_spec view = {.name = "v", .format = "i", .ndim = 1, .shape = &shape};
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    late = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_define(seg, "one", &view, 1)); /* late does not know it */
}

static void end(void)
{
    OK(shmview_detach(late));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void stop_daemon(void)
{
    ck_assert_int_eq(kill(d.pid, SIGSTOP), 0);
}

static void continue_daemon(void)
{
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
}

static int64_t attachments(void)
{
    const struct shmview_description *told;
    OK(shmview_describe(conn, "s", &told));
    int64_t n = told->attachments;
    shmview_description_free(told);
    return n;
}

/* --- Each call ----------------------------------------------------------- */

static int end_at_third(void *arg)
{
    int *n = arg;
    return ++*n == 3;
}

static int connect_again(void)
{
    struct shmview_connection *c;
    return shmview_connect(d.socket, 0, &c);
}

static int attach(void)
{
    struct shmview_segment *s;
    return shmview_attach(conn, "s", SHMVIEW_WRITE, 0, &s);
}

static int create(void)
{
    struct shmview_segment *s;
    return shmview_create(conn, "t", 4096, NULL, &s);
}

static int remove_unknown(void)
{
    return shmview_remove(conn, "u");
}

static int ping(void)
{
    return shmview_ping(conn);
}

static int entrust(void)
{
    return shmview_entrust(seg, 1);
}

static int open_view(void)
{
    struct shmview_view v;
    return shmview_view_open(late, "one", "v", &v);
}

static int define(void)
{
    const ptrdiff_t shape = 4;
    const struct shmview_view_spec view = {.name = "v", .format = "i", .ndim = 1, .shape = &shape};
    return shmview_define(seg, "two", &view, 1);
}

static int change_fd(void)
{
    int fd;
    return shmview_change_fd(late, &fd);
}

static int describe(void)
{
    const struct shmview_description *told;
    return shmview_describe(conn, "s", &told);
}

static int stats(void)
{
    const struct shmview_stats *told;
    return shmview_stats_get(conn, NULL, &told);
}

static int monitor(void)
{
    struct shmview_monitor *m;
    return shmview_monitor_open(conn, NULL, &m);
}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    {"connect", connect_again}, {"attach", attach}, {"create", create},
    {"remove", remove_unknown}, {"ping", ping},     {"entrust", entrust},
    {"open a view", open_view}, {"define", define}, {"watch", change_fd},
    {"describe", describe},     {"stats", stats},   {"monitor", monitor},
};

/* The lock is held all the time: nothing of this costs the process what it has. */
START_TEST(each_call_can_be_ended)
{
    begin();
    OK(shmview_lock(seg));
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        int n = 0;
        stop_daemon();
        shmview_on_wait(end_at_third, &n);
        client_expect(calls[i].call(), -SHMVIEW_ERR_INTERRUPTED, "ended the wait", calls[i].name);
        ck_assert_int_eq(n, 3);
        shmview_on_wait(NULL, NULL);
        continue_daemon();
        OK(shmview_ping(conn));
        AWAIT(attachments() == 2); /* what the daemon has made is given back */
        REFUSED(shmview_trylock(late), TIMED_OUT, "");
    }
    OK(shmview_unlock(seg));
    OK(shmview_detach(client_create(conn, "t", 4096))); /* there is none of that name */
    end();
}
END_TEST

/* --- Behind another thread ----------------------------------------------- */

static void *ping_in_thread(void *unused)
{
    return shmview_ping(conn) ? "ping failed" : unused;
}

START_TEST(a_wait_for_another_threads_call)
{
    pthread_t thread;
    void *failed;
    int n = 0;
    begin();
    stop_daemon();
    ck_assert_int_eq(pthread_create(&thread, NULL, ping_in_thread, NULL), 0);
    usleep(20000); /* it has the connection */
    shmview_on_wait(end_at_third, &n);
    REFUSED(shmview_ping(conn), INTERRUPTED, "");
    shmview_on_wait(NULL, NULL);
    continue_daemon();
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed); /* whose call goes on */
    end();
}
END_TEST

/* --- What the function may do -------------------------------------------- */

static struct shmview_segment *other;

static int use_the_library(void *arg)
{
    int *n = arg;
    struct shmview_view v;
    struct shmview_monitor *m;
    if ((*n)++ == 0) {
        OK(shmview_notify(seg));
        OK(shmview_lock(seg));
        OK(shmview_unlock(seg));
        OK(shmview_detach(other)); /* sent to the daemon afterwards */
        REFUSED(shmview_ping(conn), DEADLOCK, "waits for the daemon already");
        REFUSED(shmview_connect(d.socket, 0, &(struct shmview_connection *){NULL}), DEADLOCK, "");
        REFUSED(shmview_view_open(late, "one", "v", &v), DEADLOCK, "");
        REFUSED(shmview_monitor_open(conn, NULL, &m), DEADLOCK, "");
        continue_daemon();
    }
    return 0;
}

START_TEST(it_may_use_what_asks_nobody)
{
    int n = 0;
    begin();
    other = client_attach(conn, "s", SHMVIEW_READ);
    stop_daemon();
    shmview_on_wait(use_the_library, &n);
    OK(shmview_ping(conn)); /* goes on, and is answered */
    ck_assert_int_ge(n, 1);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(attachments(), 2);
    ck_assert_uint_eq(shmview_change(seg), 1);
    end();
}
END_TEST

/* --- Forks --------------------------------------------------------------- */

static pid_t forked = -1;

/* The child waits for nobody, and may ask. */
static int fork_once(void *arg)
{
    const bool *returns = arg;
    if (forked >= 0)
        return 0;
    forked = fork();
    if (forked == 0 && !*returns) {
        REFUSED(shmview_connect("/nonexistent/socket", 0, &(struct shmview_connection *){NULL}),
                NO_DAEMON, "/nonexistent/socket");
        _exit(0);
    }
    if (forked)
        continue_daemon();
    return 0;
}

START_TEST(it_may_fork)
{
    for (int returns = 0; returns < 2; returns++) {
        bool child_returns = returns;
        forked = -1;
        begin();
        stop_daemon();
        shmview_on_wait(fork_once, &child_returns);
        int r = shmview_ping(conn);
        if (forked == 0) { /* the call is its parent's, and so is the connection */
            client_expect(r, -SHMVIEW_ERR_INTERRUPTED, "forked", "ping in the child");
            OK(shmview_ping(conn));
            OK(shmview_lock(seg));
            OK(shmview_unlock(seg));
            _exit(0);
        }
        OK(r);
        shmview_on_wait(NULL, NULL);
        ck_assert_int_eq(process_wait(forked), 0);
        OK(shmview_lock(seg)); /* the parent has what it had */
        OK(shmview_unlock(seg));
        end();
    }
}
END_TEST

/* --- Signals ------------------------------------------------------------- */

static volatile sig_atomic_t n_signals;

static void on_signal(int signal)
{
    (void)signal;
    n_signals = n_signals + 1;
}

static int end_after_signal(void *arg)
{
    (void)arg;
    return n_signals > 0;
}

static void *signal_main(void *main)
{
    usleep(100000);
    pthread_kill(*(pthread_t *)main, SIGUSR1);
    return NULL;
}

START_TEST(a_signal_is_heard_at_once)
{
    struct sigaction action = {.sa_handler = on_signal}, old;
    pthread_t thread, self = pthread_self();
    begin();
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &old), 0);
    stop_daemon();
    shmview_on_wait(end_after_signal, NULL);
    ck_assert_int_eq(pthread_create(&thread, NULL, signal_main, &self), 0);
    REFUSED(shmview_ping(conn), INTERRUPTED, "");
    ck_assert_int_eq(n_signals, 1);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    continue_daemon();
    ck_assert_int_eq(sigaction(SIGUSR1, &old, NULL), 0);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(each_call_can_be_ended),      SUITE_TEST(a_wait_for_another_threads_call),
        SUITE_TEST(it_may_use_what_asks_nobody), SUITE_TEST(it_may_fork),
        SUITE_TEST(a_signal_is_heard_at_once),   SUITE_END,
    };
    return suite_main("interrupt", tests);
}
