/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for locks, changes and phases that the caller ends, or goes on with. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include <shmview/view.h>

#include "support/await.h"
#include "support/parties.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

/* The same segment once more, as another client: what it holds is in the way of seg. */
static struct shmview_segment *other;

static void begin(void)
{
    open_segment();
    other = client_attach(conn, "s", SHMVIEW_WRITE);
}

static void end(void)
{
    shmview_on_wait(NULL, NULL);
    OK(shmview_detach(other));
    close_segment();
}

/* --- Each call ----------------------------------------------------------- */

static int end_at_third(void *arg)
{
    int *n = arg;
    return ++*n == 3;
}

static int lock_far(struct shmview_segment *s)
{
    return shmview_lock_until(s, shmview_deadline(AWAIT_NS));
}

static int lock_shared_far(struct shmview_segment *s)
{
    return shmview_lock_shared_until(s, shmview_deadline(AWAIT_NS));
}

static int lock_view(struct shmview_segment *s)
{
    struct shmview_view v;
    OK(shmview_view_cast(s, "B", 0, 16, &v));
    return shmview_view_lock(&v, SHMVIEW_SHARED, SHMVIEW_FOREVER);
}

static int wait_change(struct shmview_segment *s)
{
    uint32_t change;
    return shmview_wait_change(s, shmview_change(s), SHMVIEW_FOREVER, &change);
}

static int wait_phase(struct shmview_segment *s)
{
    struct shmview_phase phase;
    return shmview_wait_phase(s, NULL, 0, SHMVIEW_FOREVER, &phase);
}

typedef int (*segment_call)(struct shmview_segment *);

static const struct {
    const char *name;
    segment_call hold; /* by other, in the meantime */
    segment_call call;
} calls[] = {
    {"lock", shmview_lock, shmview_lock},
    {"lock until", shmview_lock, lock_far},
    {"lock, a reader inside", shmview_lock_shared, shmview_lock},
    {"shared", shmview_lock, shmview_lock_shared},
    {"shared until", shmview_lock, lock_shared_far},
    {"view", shmview_lock, lock_view},
    {"change", shmview_lock, wait_change},
    {"phase", shmview_lock, wait_phase},
};
#define N_CALLS      (sizeof calls / sizeof calls[0])
#define N_LOCK_CALLS 6

START_TEST(each_wait_can_be_ended)
{
    begin();
    for (size_t i = 0; i < N_CALLS; i++) {
        int n = 0;
        OK(calls[i].hold(other));
        shmview_on_wait(end_at_third, &n);
        client_expect(calls[i].call(seg), -SHMVIEW_ERR_INTERRUPTED, "ended the wait",
                      calls[i].name);
        ck_assert_int_eq(n, 3);
        ck_assert_uint_eq(status_of(seg).n_parties, 1); /* it no longer waits, and holds nothing */
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
        OK(shmview_unlock(other));
        OK(shmview_trylock(seg));
        OK(shmview_unlock(seg));
    }
    end();
}
END_TEST

/* --- Going on ------------------------------------------------------------ */

static int go_on(void *arg)
{
    ++*(int *)arg;
    return 0;
}

START_TEST(a_deadline_holds)
{
    begin();
    for (size_t i = 0; i < N_LOCK_CALLS; i++) {
        int n = 0;
        OK(calls[i].hold(other));
        shmview_on_wait(go_on, &n);
        REFUSED(shmview_lock_until(seg, shmview_deadline(250 * MS)), TIMED_OUT, "");
        ck_assert_int_ge(n, 1);
        OK(shmview_unlock(other));
    }
    end();
}
END_TEST

static int release_at_third(void *arg)
{
    if (end_at_third(arg))
        OK(shmview_unlock(other));
    return 0;
}

START_TEST(a_wait_goes_on)
{
    begin();
    for (size_t i = 0; i < N_LOCK_CALLS; i++) {
        int n = 0;
        OK(calls[i].hold(other));
        shmview_on_wait(release_at_third, &n);
        client_expect(calls[i].call(seg), 0, "", calls[i].name);
        ck_assert_int_eq(n, 3);
        OK(shmview_unlock(seg));
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    }
    end();
}
END_TEST

static void *lock_and_count(void *n)
{
    shmview_on_wait(go_on, n);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    return NULL;
}

/* A writer that waits for readers gives the lock back before the function runs. If each reader that
 * leaves let the function run, others would come in each time. */
START_TEST(a_wake_up_is_no_reason_to_run)
{
    struct shmview_segment *readers[8];
    begin();
    for (int round = 0; round < 5; round++) {
        int n = 0;
        pthread_t writer;
        for (size_t i = 0; i < 8; i++) {
            readers[i] = client_attach(conn, "s", SHMVIEW_READ);
            OK(shmview_lock_shared(readers[i]));
        }
        int64_t began = await_now_ns();
        ck_assert_int_eq(pthread_create(&writer, NULL, lock_and_count, &n), 0);
        parties_await(other, SHMVIEW_WAITS, 1);
        for (size_t i = 0; i < 8; i++) {
            await_again(INT64_MAX);
            OK(shmview_unlock(readers[i]));
            OK(shmview_detach(readers[i]));
        }
        ck_assert_int_eq(pthread_join(writer, NULL), 0);
        ck_assert_int_le(n, (await_now_ns() - began) / (100 * MS));
    }
    end();
}
END_TEST

/* --- What the function may do -------------------------------------------- */

/* Has the very lock that is waited for, and asks the daemon. */
static int lock_it(void *arg)
{
    if (end_at_third(arg)) {
        OK(shmview_unlock(other));
        OK(shmview_ping(conn));
        OK(shmview_lock(seg));
    }
    return 0;
}

START_TEST(it_may_take_the_same_lock)
{
    begin();
    for (size_t i = 0; i < N_LOCK_CALLS; i++) {
        int n = 0;
        OK(calls[i].hold(other));
        shmview_on_wait(lock_it, &n);
        client_expect(calls[i].call(seg), 0, "", calls[i].name);
        REFUSED(shmview_trylock(other), TIMED_OUT, "");
        OK(shmview_unlock(seg));
        OK(shmview_unlock(seg)); /* it was taken twice */
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    }
    end();
}
END_TEST

static pid_t forked;

static int fork_then_end(void *unused)
{
    (void)unused;
    forked = fork();
    return forked > 0;
}

START_TEST(it_may_fork)
{
    begin();
    for (size_t i = 0; i < N_CALLS; i++) {
        OK(calls[i].hold(other));
        shmview_on_wait(fork_then_end, NULL);
        client_expect(calls[i].call(seg), -SHMVIEW_ERR_INTERRUPTED, "", calls[i].name);
        if (forked == 0) {
            REFUSED(shmview_trylock(seg), TIMED_OUT, "");
            _exit(0);
        }
        ck_assert_int_eq(process_wait(forked), 0);
        OK(shmview_unlock(other));
    }
    end();
}
END_TEST

/* --- Others -------------------------------------------------------------- */

static void *write_once(void *unused)
{
    return shmview_lock(seg) || shmview_unlock(seg) ? "lock failed" : unused;
}

static void *read_once(void *unused)
{
    return shmview_lock_shared(seg) || shmview_unlock(seg) ? "shared lock failed" : unused;
}

/* Those that wait as well get the lock when it is given back. */
START_TEST(other_waits_go_on)
{
    void *(*const run[])(void *) = {write_once, read_once, write_once, read_once};
    pthread_t thread[4];
    void *failed;
    begin();
    for (size_t i = 0; i < N_LOCK_CALLS; i++) {
        OK(calls[i].hold(other));
        for (int k = 0; k < 4; k++)
            ck_assert_int_eq(pthread_create(&thread[k], NULL, run[k], NULL), 0);
        for (int times = 0; times < 3; times++) {
            int n = 2;
            shmview_on_wait(end_at_third, &n);
            REFUSED(calls[i].call(seg), INTERRUPTED, "");
        }
        shmview_on_wait(NULL, NULL);
        OK(shmview_unlock(other));
        for (int k = 0; k < 4; k++) {
            ck_assert_int_eq(pthread_join(thread[k], &failed), 0);
            ck_assert_ptr_null(failed);
        }
    }
    end();
}
END_TEST

/* --- Signals ------------------------------------------------------------- */

static volatile sig_atomic_t n_signals;

static void on_signal(int signal)
{
    (void)signal;
    n_signals = n_signals + 1;
}

static int end_after_signal(void *unused)
{
    (void)unused;
    return n_signals > 0;
}

/* One signal, which must find the wait or be noticed when the next part of it ends. */
static void *signal_main(void *main)
{
    AWAIT(status_of(other).n_parties >= 2); /* an owner that waits for readers is two */
    pthread_kill(*(pthread_t *)main, SIGUSR1);
    return NULL;
}

START_TEST(a_signal_is_heard)
{
    struct sigaction action = {.sa_handler = on_signal}, old;
    pthread_t thread, self = pthread_self();
    begin();
    ck_assert_int_eq(sigaction(SIGUSR1, &action, &old), 0);
    for (size_t i = 0; i < N_LOCK_CALLS; i++) {
        n_signals = 0;
        OK(calls[i].hold(other));
        shmview_on_wait(end_after_signal, NULL);
        ck_assert_int_eq(pthread_create(&thread, NULL, signal_main, &self), 0);
        client_expect(calls[i].call(seg), -SHMVIEW_ERR_INTERRUPTED, "", calls[i].name);
        ck_assert_int_eq(n_signals, 1);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        OK(shmview_unlock(other));
    }
    ck_assert_int_eq(sigaction(SIGUSR1, &old, NULL), 0);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(each_wait_can_be_ended),
        SUITE_TEST(a_deadline_holds),
        SUITE_TEST(a_wait_goes_on),
        SUITE_TEST(a_wake_up_is_no_reason_to_run),
        SUITE_TEST(it_may_take_the_same_lock),
        SUITE_TEST(it_may_fork),
        SUITE_TEST(other_waits_go_on),
        SUITE_TEST(a_signal_is_heard),
        SUITE_END,
    };
    return suite_main("wait_end", tests);
}
