/* SPDX-License-Identifier: Apache-2.0 */
/* Shared mode, reads without a lock, changes and phases between threads of one process. Runs under
 * TSan, so guarded data are plain variables: a missing order is a data race. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "support/await.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

#include "one_segment.h"

/* A thread returns NULL, or what went wrong. */
static pthread_t start_thread(void *(*run)(void *), void *arg)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
    return thread;
}

static void join_thread(pthread_t thread)
{
    void *failed;
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    if (failed)
        ck_abort_msg("a thread: %s", (char *)failed);
}

static void run_thread(void *(*run)(void *), void *arg)
{
    join_thread(start_thread(run, arg));
}

/* --- Readers and writers ------------------------------------------------- */

#define READERS 4
#define WRITERS 2
#define TURNS   2000

/* Equal whenever nobody writes. */
struct words {
    uint64_t a, b;
};

static void *write_words(void *arg)
{
    struct words *w = shmview_data(arg);
    for (int i = 0; i < TURNS; i++) {
        if (shmview_lock(arg))
            return "lock failed";
        if (i % 5 == 0 && (shmview_lock_shared(arg) || shmview_unlock(arg)))
            return "nested share failed";
        w->a++;
        w->b++;
        if (shmview_unlock(arg))
            return "unlock failed";
    }
    return NULL;
}

static void *read_words(void *arg)
{
    const struct words *w = shmview_data(arg);
    for (int i = 0; i < TURNS; i++) {
        if (i % 2 ? shmview_lock_shared(arg)
                  : shmview_lock_shared_until(arg, shmview_deadline(AWAIT_NS)))
            return "shared lock failed";
        if (i % 7 == 0 && (shmview_lock_shared(arg) || shmview_unlock(arg)))
            return "nested share failed";
        if (w->a != w->b)
            return "a writer was inside";
        if (shmview_unlock(arg))
            return "unlock failed";
    }
    return NULL;
}

START_TEST(readers_and_writers)
{
    pthread_t thread[READERS + WRITERS];
    open_segment();
    for (int i = 0; i < READERS + WRITERS; i++)
        thread[i] = start_thread(i < READERS ? read_words : write_words, seg);
    for (int i = 0; i < READERS + WRITERS; i++)
        join_thread(thread[i]);
    ck_assert_uint_eq(((struct words *)shmview_data(seg))->a, WRITERS * TURNS);
    close_segment();
}
END_TEST

static void *write_once(void *arg)
{
    struct words *w = shmview_data(arg);
    if (shmview_lock(arg))
        return "lock failed";
    w->a++;
    return shmview_unlock(arg) ? "unlock failed" : NULL;
}

START_TEST(nested_share_while_a_thread_waits_to_write)
{
    open_segment();
    const struct words *w = shmview_data(seg);
    OK(shmview_lock_shared(seg));
    pthread_t writer = start_thread(write_once, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    for (int i = 0; i < 3; i++)
        OK(shmview_lock_shared(seg));
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(w->a, 0);
        OK(shmview_unlock(seg));
    }
    join_thread(writer);
    OK(shmview_lock_shared(seg));
    ck_assert_uint_eq(w->a, 1);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void *share_beside(void *arg)
{
    if (shmview_unlock(arg) != -SHMVIEW_ERR_NOT_OWNER)
        return "another thread's share was given back";
    if (shmview_trylock(arg) != -SHMVIEW_ERR_TIMED_OUT)
        return "no reader was in the way";
    if (shmview_trylock_shared(arg) || shmview_lock(arg) != -SHMVIEW_ERR_DEADLOCK)
        return "sharing failed";
    return shmview_unlock(arg) ? "unlock failed" : NULL;
}

START_TEST(each_thread_has_its_own_share)
{
    open_segment();
    OK(shmview_lock_shared(seg));
    run_thread(share_beside, seg);
    REFUSED(shmview_detach(seg), BUSY, "");
    OK(shmview_unlock(seg));
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    close_segment();
}
END_TEST

#define SEGMENTS 5

static void *share_several(void *arg)
{
    struct shmview_segment **s = arg;
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < SEGMENTS; k++)
            if (shmview_lock_shared(s[(i + k) % SEGMENTS]))
                return "shared lock failed";
        for (int k = 0; k < SEGMENTS; k++)
            if (shmview_unlock(s[(i * 3 + k * 2) % SEGMENTS]))
                return "unlock failed";
    }
    return NULL;
}

START_TEST(several_segments_in_any_order)
{
    struct shmview_segment *s[SEGMENTS];
    pthread_t thread[READERS], writer;
    char name[] = "a";
    open_segment();
    for (int i = 0; i < SEGMENTS; i++, name[0]++)
        s[i] = client_create(conn, name, 4096);
    for (int i = 0; i < READERS; i++)
        thread[i] = start_thread(share_several, s);
    writer = start_thread(write_words, s[2]);
    for (int i = 0; i < READERS; i++)
        join_thread(thread[i]);
    join_thread(writer);
    for (int i = 0; i < SEGMENTS; i++)
        OK(shmview_detach(s[i]));
    close_segment();
}
END_TEST

static void *exit_while_sharing(void *arg)
{
    struct shmview_segment **s = arg;
    return shmview_lock_shared(s[0]) || shmview_lock_shared(s[0]) || shmview_lock_shared(s[1])
               ? "shared lock failed"
               : NULL;
}

static void *exit_while_sharing_one(void *arg)
{
    return shmview_lock_shared(arg) ? "shared lock failed" : NULL;
}

START_TEST(thread_that_exits_gives_its_share_back)
{
    open_segment();
    struct shmview_segment *s[2] = {seg, client_create(conn, "more", 10)};
    run_thread(exit_while_sharing_one, seg);
    run_thread(exit_while_sharing, s);
    for (int i = 0; i < 2; i++) {
        OK(shmview_trylock(s[i])); /* nobody died inside: readers leave nothing half done */
        OK(shmview_unlock(s[i]));
    }
    OK(shmview_detach(s[1]));
    close_segment();
}
END_TEST

START_TEST(thread_that_exits_lets_a_writer_in)
{
    open_segment();
    OK(shmview_lock_shared(seg));
    pthread_t writer = start_thread(write_once, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    OK(shmview_unlock(seg));
    join_thread(writer);
    run_thread(exit_while_sharing_one, seg);
    run_thread(write_once, seg);
    close_segment();
}
END_TEST

/* --- Without a lock ------------------------------------------------------ */

struct atomic_words {
    _Atomic uint64_t a, b;
    _Atomic int stop;
};

static void *write_atomics(void *arg)
{
    struct atomic_words *w = shmview_data(arg);
    for (uint64_t i = 1; !atomic_load(&w->stop); i++) {
        if (shmview_lock(arg))
            return "lock failed";
        atomic_store_explicit(&w->a, i, memory_order_relaxed);
        atomic_store_explicit(&w->b, i, memory_order_relaxed);
        if (shmview_unlock(arg))
            return "unlock failed";
        for (unsigned k = 0; k < 200; k++)
            atomic_signal_fence(memory_order_seq_cst);
    }
    return NULL;
}

static void *read_optimistically(void *arg)
{
    const struct atomic_words *w = shmview_data(arg);
    int64_t deadline = await_now_ns() + AWAIT_NS;
    uint64_t version;
    for (int believed = 0; believed < TURNS;) {
        if (await_now_ns() > deadline)
            return "hardly a read is believed";
        if (shmview_read_begin(arg, &version))
            continue;
        uint64_t a = atomic_load_explicit(&w->a, memory_order_relaxed);
        uint64_t b = atomic_load_explicit(&w->b, memory_order_relaxed);
        if (!shmview_read_validate(arg, version))
            continue;
        if (a != b)
            return "a torn read was believed";
        believed++;
    }
    return NULL;
}

START_TEST(optimistic_reads)
{
    pthread_t reader[2];
    open_segment();
    struct atomic_words *w = shmview_data(seg);
    pthread_t writer = start_thread(write_atomics, seg);
    for (int i = 0; i < 2; i++)
        reader[i] = start_thread(read_optimistically, seg);
    for (int i = 0; i < 2; i++)
        join_thread(reader[i]);
    atomic_store(&w->stop, 1);
    join_thread(writer);
    close_segment();
}
END_TEST

/* A reader that begins after a writer sees what the writer stored. No thread writes during the
 * read, so plain words must suffice. */
static void *read_what_was_written(void *arg)
{
    const struct words *w = shmview_data(arg);
    int64_t deadline = await_now_ns() + AWAIT_NS;
    uint64_t first, version;
    if (shmview_read_begin(arg, &first))
        return "busy before anybody wrote";
    ((_Atomic uint64_t *)shmview_data(arg))[8] = 1; /* the writer may begin */
    do
        if (await_now_ns() > deadline)
            return "the version does not change";
    while (shmview_read_begin(arg, &version) || version == first);
    if (w->a != 7 || w->b != 7)
        return "the version changed before the bytes";
    return shmview_read_validate(arg, version) ? NULL : "not valid";
}

START_TEST(begin_sees_what_the_last_owner_wrote)
{
    open_segment();
    struct words *w = shmview_data(seg);
    _Atomic uint64_t *ready = (_Atomic uint64_t *)shmview_data(seg) + 8;
    pthread_t reader = start_thread(read_what_was_written, seg);
    AWAIT(atomic_load_explicit(ready, memory_order_relaxed));
    OK(shmview_lock(seg));
    w->a = w->b = 7;
    OK(shmview_unlock(seg));
    join_thread(reader);
    close_segment();
}
END_TEST

/* --- Changes and phases -------------------------------------------------- */

#define ROUNDS 1000

/* The counter says whose turn it is: odd and even. */
static void *answer(void *arg)
{
    struct words *w = shmview_data(arg);
    uint32_t seen = 0;
    for (int i = 0; i < ROUNDS; i++) {
        if (shmview_wait_change(arg, seen, shmview_deadline(AWAIT_NS), &seen))
            return "no change came";
        w->a++;
        if (shmview_notify(arg))
            return "notify failed";
        seen++;
    }
    return NULL;
}

START_TEST(changes_carry_plain_data)
{
    uint32_t seen = 0;
    open_segment();
    struct words *w = shmview_data(seg);
    pthread_t thread = start_thread(answer, seg);
    for (uint64_t i = 0; i < ROUNDS; i++) {
        ck_assert_uint_eq(w->a++, 2 * i);
        OK(shmview_notify(seg));
        OK(shmview_wait_change(seg, seen + 1, shmview_deadline(AWAIT_NS), &seen));
        ck_assert_uint_eq(seen, 2 * i + 2);
    }
    join_thread(thread);
    close_segment();
}
END_TEST

static void *follow_phases(void *arg)
{
    const struct words *w = shmview_data(arg);
    struct shmview_phase phase = {0};
    while (phase.generation < ROUNDS) {
        if (shmview_wait_phase(arg, NULL, phase.generation, shmview_deadline(AWAIT_NS), &phase))
            return "no phase came";
        if (shmview_lock_shared(arg) || shmview_phase_get(arg, &phase))
            return "shared lock failed";
        if (w->a != phase.generation || phase.layout != phase.generation % 2)
            return "the phase changed under the lock";
        if (shmview_unlock(arg))
            return "unlock failed";
    }
    return NULL;
}

START_TEST(phases_between_threads)
{
    const int64_t shape[] = {4};
    const struct shmview_view_spec spec = {.name = "A", .format = "i", .ndim = 1, .shape = shape};
    pthread_t thread[READERS];
    open_segment();
    struct words *w = shmview_data(seg);
    OK(shmview_define(seg, "even", &spec, 1));
    OK(shmview_define(seg, "odd", &spec, 1));
    for (int i = 0; i < READERS; i++)
        thread[i] = start_thread(follow_phases, seg);
    for (int i = 1; i <= ROUNDS; i++) {
        OK(shmview_lock(seg));
        w->a++;
        OK(shmview_switch(seg, i % 2 ? "odd" : "even"));
        OK(shmview_unlock(seg));
    }
    for (int i = 0; i < READERS; i++)
        join_thread(thread[i]);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(readers_and_writers),
        SUITE_TEST(nested_share_while_a_thread_waits_to_write),
        SUITE_TEST(each_thread_has_its_own_share),
        SUITE_TEST(several_segments_in_any_order),
        SUITE_TEST(thread_that_exits_gives_its_share_back),
        SUITE_TEST(thread_that_exits_lets_a_writer_in),
        SUITE_TEST(optimistic_reads),
        SUITE_TEST(begin_sees_what_the_last_owner_wrote),
        SUITE_TEST(changes_carry_plain_data),
        SUITE_TEST(phases_between_threads),
        SUITE_END,
    };
    return suite_main("shared_threads", tests);
}
