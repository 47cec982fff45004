/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that are cancelled (deferred) while they wait. No call that waits ends by
 * it: the thread goes on when the call returns, and whatever it took by then is given
 * back by its cleanup handlers, or by its end. */
#include <pthread.h>
#include <shmview/family.h>
#include <shmview/stream.h>
#include <stdatomic.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

#define MS 1000000

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg, *other;

static void open_segment(void)
{
    const struct shmview_view_spec spec = {.name = "A", .format = "i"};
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_define(seg, "l", &spec, 1));
}

static void close_segment(void)
{
    OK(shmview_detach(other));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static pthread_t start_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static void expect_cancelled(pthread_t thread)
{
    void *result;
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    if (result != PTHREAD_CANCELED)
        ck_abort_msg("a thread: %s", (char *)result);
}

/* The lock is free and in order, and nobody is thought to wait. */
static void expect_as_it_was(void)
{
    for (int i = 0; i < 2; i++) {
        OK(i ? shmview_trylock(seg) : shmview_trylock_shared(seg));
        OK(shmview_unlock(seg));
        OK(i ? shmview_trylock(other) : shmview_trylock_shared(other));
        OK(shmview_unlock(other));
    }
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS, NULL), 0);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS_TO_SHARE, NULL), 0);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS_SHARED, NULL), 0);
}

static void unlock(void *segment)
{
    shmview_unlock(segment);
}

/* --- The lock ------------------------------------------------------------ */

static void *wait_in_vain(void *arg)
{
    if (shmview_lock_until(arg, shmview_deadline(400 * MS)) != -SHMVIEW_ERR_TIMED_OUT)
        return "it was not held";
    pthread_testcancel();
    return "not cancelled";
}

static void *wait_in_vain_to_share(void *arg)
{
    if (shmview_lock_shared_until(arg, shmview_deadline(400 * MS)) != -SHMVIEW_ERR_TIMED_OUT)
        return "it was not held";
    pthread_testcancel();
    return "not cancelled";
}

START_TEST(cancelled_until_a_deadline)
{
    open_segment();
    OK(shmview_lock(other));
    pthread_t writer = start_thread(wait_in_vain, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    ck_assert_int_eq(pthread_cancel(writer), 0);
    expect_cancelled(writer);
    pthread_t reader = start_thread(wait_in_vain_to_share, seg);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 1);
    ck_assert_int_eq(pthread_cancel(reader), 0);
    expect_cancelled(reader);
    OK(shmview_unlock(other));
    expect_as_it_was();
    close_segment();
}
END_TEST

static void *give_back_when_cancelled(void *arg)
{
    if (shmview_lock(arg))
        return "lock failed";
    pthread_cleanup_push(unlock, arg);
    pthread_testcancel();
    pthread_cleanup_pop(1);
    return "not cancelled";
}

static void *give_share_back_when_cancelled(void *arg)
{
    if (shmview_lock_shared(arg))
        return "shared lock failed";
    pthread_cleanup_push(unlock, arg);
    pthread_testcancel();
    pthread_cleanup_pop(1);
    return "not cancelled";
}

START_TEST(cancelled_with_a_cleanup_handler)
{
    open_segment();
    for (int i = 0; i < 2; i++) {
        OK(shmview_lock(other));
        pthread_t thread =
            start_thread(i ? give_share_back_when_cancelled : give_back_when_cancelled, seg);
        parties_await(seg, i ? SHMVIEW_WAITS_TO_SHARE : SHMVIEW_WAITS, 1);
        ck_assert_int_eq(pthread_cancel(thread), 0);
        OK(shmview_unlock(other));
        expect_cancelled(thread);
        expect_as_it_was();
    }
    close_segment();
}
END_TEST

static void *die_when_cancelled(void *arg)
{
    if (shmview_lock(arg))
        return "lock failed";
    pthread_testcancel();
    return "not cancelled";
}

static void *die_sharing_when_cancelled(void *arg)
{
    if (shmview_lock_shared(arg))
        return "shared lock failed";
    pthread_testcancel();
    return "not cancelled";
}

START_TEST(cancelled_inside_has_died_inside)
{
    open_segment();
    OK(shmview_lock(other));
    pthread_t thread = start_thread(die_when_cancelled, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    OK(shmview_unlock(other));
    expect_cancelled(thread);
    ck_assert_int_eq(shmview_trylock(other), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(other));
    expect_as_it_was();
    OK(shmview_lock(other));
    thread = start_thread(die_sharing_when_cancelled, seg);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 1);
    ck_assert_int_eq(pthread_cancel(thread), 0);
    OK(shmview_unlock(other));
    expect_cancelled(thread);
    expect_as_it_was(); /* a reader leaves nothing half done */
    close_segment();
}
END_TEST

#define CROWD 6

START_TEST(some_of_a_crowd_are_cancelled)
{
    pthread_t thread[CROWD];
    open_segment();
    for (int round = 0; round < 20; round++) {
        OK(shmview_lock(other));
        for (int i = 0; i < CROWD; i++)
            thread[i] = start_thread(
                i % 2 ? give_share_back_when_cancelled : give_back_when_cancelled, seg);
        AWAIT(parties_in_role(seg, SHMVIEW_WAITS, NULL) +
                  parties_in_role(seg, SHMVIEW_WAITS_TO_SHARE, NULL) >
              0);
        for (int i = 0; i < CROWD; i++)
            ck_assert_int_eq(pthread_cancel(thread[i]), 0);
        OK(shmview_unlock(other));
        OK(shmview_lock_until(other, shmview_deadline(AWAIT_NS))); /* among them */
        OK(shmview_unlock(other));
        for (int i = 0; i < CROWD; i++)
            expect_cancelled(thread[i]);
        expect_as_it_was();
    }
    close_segment();
}
END_TEST

/* --- Changes and phases -------------------------------------------------- */

static _Atomic int started;

static void *wait_for_change(void *arg)
{
    uint32_t change;
    atomic_store(&started, 1);
    if (shmview_wait_change(arg, 0, SHMVIEW_FOREVER, &change))
        return "no change";
    pthread_testcancel();
    return "not cancelled";
}

static void *wait_for_phase(void *arg)
{
    struct shmview_phase phase;
    atomic_store(&started, 1);
    if (shmview_wait_phase(arg, "l", 0, SHMVIEW_FOREVER, &phase))
        return "no phase";
    pthread_testcancel();
    return "not cancelled";
}

START_TEST(cancelled_while_waiting_for_a_change)
{
    open_segment();
    for (int i = 0; i < 2; i++) {
        atomic_store(&started, 0);
        pthread_t thread = start_thread(i ? wait_for_phase : wait_for_change, seg);
        AWAIT(atomic_load(&started));
        ck_assert_int_eq(pthread_cancel(thread), 0);
        OK(shmview_lock(other));
        if (i)
            OK(shmview_switch(other, "l"));
        else
            OK(shmview_notify(other));
        OK(shmview_unlock(other));
        expect_cancelled(thread);
        expect_as_it_was();
    }
    close_segment();
}
END_TEST

/* --- Calls that reach the kernel in their own way ------------------------ */

/* Creates a segment for a user whose number must be looked up. */
static bool create_for_root(void)
{
    const struct shmview_access_entry root = {
        .kind = SHMVIEW_USER, .right = SHMVIEW_READ, .name = "root"};
    const struct shmview_access_change access = {.struct_bytes = sizeof access,
                                                 .set = SHMVIEW_SET_ENTRIES,
                                                 .n_entries = 1,
                                                 .entries = &root};
    const struct shmview_create_options o = {.struct_bytes = sizeof o, .access = &access};
    struct shmview_segment *made;
    return shmview_create(conn, "for-root", 100, &o, &made) == 0 && shmview_detach(made) == 0;
}

static void *call_cancelled(void *peek)
{
    struct shmview_frame frame;
    uint64_t name;
    pthread_cancel(pthread_self()); /* takes effect at the next chance */
    shmview_process_name(&name);
    shmview_process_has_ended(name ^ 1);
    atomic_store(&started, 1);
    if (shmview_stream_take(peek, shmview_deadline(5 * MS), &frame) == -SHMVIEW_ERR_TIMED_OUT &&
        create_for_root())
        atomic_store(&started, 2);
    pthread_testcancel();
    return "not cancelled";
}

START_TEST(no_call_is_a_cancellation_point)
{
    const struct shmview_view_spec view = {.name = "A", .format = "i"};
    const struct shmview_stream_spec spec = {.struct_bytes = sizeof spec,
                                             .mode = SHMVIEW_LATEST,
                                             .n_slots = 2,
                                             .views = &view,
                                             .n_views = 1};
    struct shmview_stream *stream, *peek;
    open_segment();
    OK(shmview_stream_create(conn, "frames", &spec, &stream));
    OK(shmview_stream_open(conn, "frames", SHMVIEW_PEEK, &peek));
    atomic_store(&started, 0);
    expect_cancelled(start_thread(call_cancelled, peek));
    ck_assert_int_eq(atomic_load(&started), 2);
    OK(shmview_stream_close(peek));
    OK(shmview_stream_close(stream));
    close_segment();
}
END_TEST

/* --- First use in a child ------------------------------------------------ */

static void *use_cancelled(void *arg)
{
    pthread_cancel(pthread_self()); /* takes effect at the next chance */
    if (shmview_lock(arg) || shmview_unlock(arg))
        return "lock failed";
    pthread_testcancel();
    return "not cancelled";
}

static void use_after_a_cancelled_thread(struct child *me, void *arg)
{
    (void)arg;
    expect_cancelled(start_thread(use_cancelled, seg));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    child_tell(me, 1);
}

START_TEST(first_use_in_a_child_by_a_cancelled_thread)
{
    struct child child;
    open_segment();
    child_start(&child, use_after_a_cancelled_thread, NULL);
    child_hear(&child, 1);
    child_wait(&child);
    expect_as_it_was();
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(cancelled_until_a_deadline),
        SUITE_TEST(cancelled_with_a_cleanup_handler),
        SUITE_TEST(cancelled_inside_has_died_inside),
        SUITE_TEST(some_of_a_crowd_are_cancelled),
        SUITE_TEST(cancelled_while_waiting_for_a_change),
        SUITE_TEST(no_call_is_a_cancellation_point),
        SUITE_TEST(first_use_in_a_child_by_a_cancelled_thread),
        SUITE_END,
    };
    return suite_main("cancel", tests);
}
