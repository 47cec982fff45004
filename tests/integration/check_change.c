/* SPDX-License-Identifier: Apache-2.0 */
/* The counter of changes, and waiting for it. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/raw.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

/* --- The counter --------------------------------------------------------- */

START_TEST(notify_adds_one)
{
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    ck_assert_uint_eq(shmview_change(seg), 0);
    OK(shmview_notify(seg));
    OK(shmview_notify_one(reader)); /* with any access that has the lock */
    ck_assert_uint_eq(shmview_change(seg), 2);
    ck_assert_uint_eq(shmview_change(reader), 2);
    OK(shmview_lock(reader)); /* holding or not */
    OK(shmview_notify(seg));
    OK(shmview_notify(reader));
    OK(shmview_unlock(reader));
    ck_assert_uint_eq(shmview_change(seg), 4);
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(no_lock)
{
    uint32_t change = 77;
    int fd = 77;
    open_segment();
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 10, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    OK(shmview_notify(seg));
    struct shmview_segment *none[] = {bare, peek};
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(shmview_change(none[i]), 0);
        REFUSED(shmview_notify(none[i]), NO_LOCK, "");
        REFUSED(shmview_notify_one(none[i]), NO_LOCK, "");
        REFUSED(shmview_wait_change(none[i], 1, SHMVIEW_FOREVER, &change), NO_LOCK, "");
        REFUSED(shmview_change_fd(none[i], &fd), NO_LOCK, "");
        ck_assert(change == 77 && fd == 77);
        OK(shmview_detach(none[i]));
    }
    close_segment();
}
END_TEST

START_TEST(what_was_not_seen_is_not_waited_for)
{
    uint32_t change = 77;
    open_segment();
    OK(shmview_wait_change(seg, 5, SHMVIEW_FOREVER, &change)); /* any other value */
    ck_assert_uint_eq(change, 0);
    OK(shmview_notify(seg));
    OK(shmview_notify(seg));
    OK(shmview_wait_change(seg, 0, SHMVIEW_FOREVER, &change));
    ck_assert_uint_eq(change, 2);
    OK(shmview_wait_change(seg, 1, 0, &change)); /* a deadline that passed tries once */
    OK(shmview_wait_change(seg, 1, -5, &change));
    ck_assert_uint_eq(change, 2);
    close_segment();
}
END_TEST

START_TEST(deadline)
{
    uint32_t change = 77;
    open_segment();
    int64_t before = await_now_ns();
    REFUSED(shmview_wait_change(seg, 0, shmview_deadline(20 * MS), &change), TIMED_OUT,
            "no change of 's'");
    ck_assert_int_ge(await_now_ns() - before, 20 * MS);
    before = await_now_ns(); /* longer than one park */
    REFUSED(shmview_wait_change(seg, 0, shmview_deadline(250 * MS), &change), TIMED_OUT, "");
    ck_assert_int_ge(await_now_ns() - before, 250 * MS);
    REFUSED(shmview_wait_change(seg, 0, shmview_deadline(-1), &change), TIMED_OUT, "");
    REFUSED(shmview_wait_change(seg, 0, shmview_deadline(1000), &change), TIMED_OUT, "");
    REFUSED(shmview_wait_change(seg, 0, 0, &change), TIMED_OUT, "");
    ck_assert_uint_eq(change, 77);
    close_segment();
}
END_TEST

static struct shmview_control *map_control(struct raw *raw)
{
    json_decref(raw_call(raw, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(raw->n_fds, 3);
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw->fds[1], 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

START_TEST(it_wraps)
{
    uint32_t change, last;
    struct raw raw;
    open_segment();
    raw_connect(&raw, d.socket);
    struct shmview_control *c = map_control(&raw);
    atomic_store((_Atomic uint32_t *)&c->change, UINT32_MAX);
    last = shmview_change(seg);
    OK(shmview_notify(seg));
    OK(shmview_wait_change(seg, last, SHMVIEW_FOREVER, &change));
    ck_assert_uint_eq(change, 0);
    munmap(c, 4096);
    raw_close(&raw);
    close_segment();
}
END_TEST

/* --- Waking -------------------------------------------------------------- */

static void wait_and_tell(struct child *me, void *arg)
{
    uint32_t change = shmview_change(arg);
    OK(shmview_lock(arg)); /* its own slot */
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    OK(shmview_wait_change(arg, change, SHMVIEW_FOREVER, &change));
    child_tell(me, 10 + (int)change);
}

#define WAITERS 4

static void start_waiters(struct child child[WAITERS])
{
    for (int i = 0; i < WAITERS; i++) {
        child_start(&child[i], wait_and_tell, seg);
        child_hear(&child[i], 1);
        parties_await_sleep(child[i].pid);
    }
}

START_TEST(notify_wakes_all)
{
    struct child child[WAITERS];
    open_segment();
    start_waiters(child);
    OK(shmview_notify(seg));
    for (int i = 0; i < WAITERS; i++) {
        child_hear(&child[i], 11);
        child_wait(&child[i]);
    }
    close_segment();
}
END_TEST

START_TEST(notify_one_wakes_one)
{
    struct child child[WAITERS];
    open_segment();
    start_waiters(child);
    OK(shmview_notify_one(seg));
    for (int i = 0; i < WAITERS; i++) { /* the others look for themselves some time */
        child_hear(&child[i], 11);
        child_wait(&child[i]);
    }
    close_segment();
}
END_TEST

START_TEST(dead_waiters_are_no_hindrance)
{
    struct child child[WAITERS];
    open_segment();
    start_waiters(child);
    child_kill(&child[0]);
    child_kill(&child[2]);
    OK(shmview_notify(seg));
    for (int i = 1; i < WAITERS; i += 2) {
        child_hear(&child[i], 11);
        child_wait(&child[i]);
    }
    close_segment();
}
END_TEST

START_TEST(waiting_costs_no_processor)
{
    struct child child[WAITERS];
    long before[WAITERS];
    open_segment();
    start_waiters(child);
    for (int i = 0; i < WAITERS; i++)
        before[i] = process_cpu_ms(child[i].pid);
    int64_t until = await_now_ns() + 300 * MS;
    while (await_again(until))
        continue;
    for (int i = 0; i < WAITERS; i++)
        ck_assert_int_le(process_cpu_ms(child[i].pid) - before[i], 30);
    OK(shmview_notify(seg));
    for (int i = 0; i < WAITERS; i++)
        child_wait(&child[i]);
    close_segment();
}
END_TEST

START_TEST(waiting_and_telling_without_the_daemon)
{
    struct child child[WAITERS];
    open_segment();
    start_waiters(child);
    daemon_kill(&d);
    OK(shmview_notify(seg));
    for (int i = 0; i < WAITERS; i++) {
        child_hear(&child[i], 11);
        child_wait(&child[i]);
    }
    daemon_restart(&d);
    close_segment();
}
END_TEST

/* --- No change is lost --------------------------------------------------- */

#define ROUNDS 2000

/* Odd values are the child's to answer, even ones the test's. */
static void answer(struct child *me, void *arg)
{
    uint32_t seen = 0;
    (void)me;
    for (int i = 0; i < ROUNDS; i++) {
        OK(shmview_wait_change(arg, seen, shmview_deadline(AWAIT_NS), &seen));
        ck_assert_uint_eq(seen, 2 * (unsigned)i + 1);
        OK(i % 2 ? shmview_notify(arg) : shmview_notify_one(arg));
        seen++;
    }
}

START_TEST(ping_pong)
{
    struct child child;
    uint32_t seen = 0;
    open_segment();
    child_start(&child, answer, seg);
    for (unsigned i = 0; i < ROUNDS; i++) {
        OK(shmview_notify(seg));
        OK(shmview_wait_change(seg, seen + 1, shmview_deadline(AWAIT_NS), &seen));
        ck_assert_uint_eq(seen, 2 * i + 2);
    }
    child_wait(&child);
    close_segment();
}
END_TEST

/* Waiters that see every value, and threads of one process among them. */
#define CHANGES 300

static void *follow(void *arg)
{
    uint32_t seen = 0;
    while (seen < CHANGES)
        if (shmview_wait_change(arg, seen, shmview_deadline(AWAIT_NS), &seen))
            return "no change came";
    return NULL;
}

static void follow_in_threads(struct child *me, void *arg)
{
    pthread_t thread[3];
    void *failed;
    child_tell(me, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, follow, arg), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(pthread_join(thread[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
}

START_TEST(followed_by_threads_and_processes)
{
    struct child child[2];
    open_segment();
    for (int i = 0; i < 2; i++) {
        child_start(&child[i], follow_in_threads, seg);
        child_hear(&child[i], 1);
    }
    for (int i = 0; i < CHANGES; i++)
        OK(shmview_notify(seg));
    for (int i = 0; i < 2; i++)
        child_wait(&child[i]);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(notify_adds_one),
        SUITE_TEST(no_lock),
        SUITE_TEST(what_was_not_seen_is_not_waited_for),
        SUITE_TEST(deadline),
        SUITE_TEST(it_wraps),
        SUITE_TEST(notify_wakes_all),
        SUITE_TEST(notify_one_wakes_one),
        SUITE_TEST(dead_waiters_are_no_hindrance),
        SUITE_TEST(waiting_costs_no_processor),
        SUITE_TEST(waiting_and_telling_without_the_daemon),
        SUITE_TEST(ping_pong),
        SUITE_TEST(followed_by_threads_and_processes),
        SUITE_END,
    };
    return suite_main("change", tests);
}
