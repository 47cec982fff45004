/* SPDX-License-Identifier: Apache-2.0 */
/* Reading without a lock, and what a lock costs that nobody else wants. */
#include <stdatomic.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#include "one_segment.h"

/* --- One thread ---------------------------------------------------------- */

START_TEST(valid_while_nobody_is_inside)
{
    uint64_t version = 0, again = 0;
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_read_begin(seg, &version));
    ck_assert_int_eq(shmview_read_validate(seg, version), 1);
    OK(shmview_lock_shared(seg)); /* readers change nothing */
    OK(shmview_read_begin(reader, &again));
    ck_assert_uint_eq(again, version);
    ck_assert_int_eq(shmview_read_validate(reader, version), 1);
    OK(shmview_unlock(seg));
    ck_assert_int_eq(shmview_read_validate(seg, version), 1);
    ck_assert_int_eq(shmview_read_validate(reader, again), 1);
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(any_exclusive_pair_invalidates)
{
    uint64_t version, again;
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    for (int i = 0; i < 5; i++) {
        OK(shmview_read_begin(reader, &version));
        OK(i % 2 ? shmview_lock(seg) : shmview_lock(reader));
        ck_assert_int_eq(shmview_read_validate(reader, version), 0);
        OK(i % 2 ? shmview_unlock(seg) : shmview_unlock(reader));
        ck_assert_int_eq(shmview_read_validate(reader, version), 0);
        OK(shmview_read_begin(seg, &again));
        ck_assert_uint_ne(again, version);
        ck_assert_int_eq(shmview_read_validate(seg, again), 1);
    }
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(busy_while_an_owner_is_inside)
{
    uint64_t version = 77;
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock(seg));
    REFUSED(shmview_read_begin(reader, &version), BUSY, "'s' is inside, or died there");
    REFUSED(shmview_read_begin(seg, &version), BUSY, "");
    ck_assert_uint_eq(version, 77);
    OK(shmview_unlock_not_repaired(seg)); /* as if it had died */
    REFUSED(shmview_read_begin(reader, &version), BUSY, "");
    ck_assert_int_eq(shmview_lock(reader), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(reader));
    OK(shmview_read_begin(reader, &version));
    ck_assert_int_eq(shmview_read_validate(reader, version), 1);
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(never_valid_without_a_lock)
{
    open_segment();
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    ck_assert_int_eq(shmview_read_validate(peek, 0), 0);
    OK(shmview_detach(peek));
    close_segment();
}
END_TEST

/* --- Processes ----------------------------------------------------------- */

static void die_inside(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(busy_after_a_death_inside)
{
    struct child child;
    uint64_t version, before;
    open_segment();
    OK(shmview_read_begin(seg, &before));
    child_start(&child, die_inside, seg);
    child_hear(&child, 1);
    child_kill(&child);
    REFUSED(shmview_read_begin(seg, &version), BUSY, "");
    ck_assert_int_eq(shmview_read_validate(seg, before), 0);
    ck_assert_int_eq(shmview_lock_shared(seg), SHMVIEW_OWNER_DIED);
    REFUSED(shmview_read_begin(seg, &version), BUSY, "");
    OK(shmview_unlock(seg));
    OK(shmview_read_begin(seg, &version));
    ck_assert_int_eq(shmview_read_validate(seg, version), 1);
    ck_assert_int_eq(shmview_read_validate(seg, before), 0);
    close_segment();
}
END_TEST

/* Words that are equal whenever nobody is inside. */
struct words {
    _Atomic uint64_t a, b;
    _Atomic int stop;
};

static void tear(struct child *me, void *arg)
{
    struct words *w = shmview_data(arg);
    child_tell(me, 1);
    while (!atomic_load(&w->stop)) {
        OK(shmview_lock(arg));
        uint64_t next = atomic_load_explicit(&w->a, memory_order_relaxed) + 1;
        atomic_store_explicit(&w->a, next, memory_order_relaxed);
        for (unsigned k = 0; k < next % 64; k++)
            atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&w->b, next, memory_order_relaxed);
        OK(shmview_unlock(arg));
        for (unsigned k = 0; k < next % 512; k++)
            atomic_signal_fence(memory_order_seq_cst);
    }
}

#define READS 30000

START_TEST(no_torn_read_is_believed)
{
    struct child child;
    uint64_t version, believed = 0, rejected = 0, last = 0;
    open_segment();
    struct words *w = shmview_data(seg);
    child_start(&child, tear, seg);
    child_hear(&child, 1);
    int64_t deadline = await_now_ns() + AWAIT_NS;
    while (believed < READS || rejected == 0 || last == 0) {
        int r = shmview_read_begin(seg, &version);
        ck_assert(r == 0 || r == -SHMVIEW_ERR_BUSY);
        uint64_t a = atomic_load_explicit(&w->a, memory_order_relaxed);
        uint64_t b = atomic_load_explicit(&w->b, memory_order_relaxed);
        if (r == 0 && shmview_read_validate(seg, version)) {
            ck_assert_msg(a == b && a >= last, "torn: %ju %ju after %ju", (uintmax_t)a,
                          (uintmax_t)b, (uintmax_t)last);
            last = a;
            believed++;
        } else {
            rejected++;
        }
        ck_assert_msg(await_now_ns() < deadline, "%ju believed, %ju rejected", (uintmax_t)believed,
                      (uintmax_t)rejected);
    }
    atomic_store(&w->stop, 1);
    child_wait(&child);
    close_segment();
}
END_TEST

static void read_without_a_lock(struct child *me, void *arg)
{
    uint64_t version;
    OK(shmview_read_begin(arg, &version)); /* its own slot */
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_read_begin(arg, &version));
    child_tell(me, shmview_read_validate(arg, version));
    child_pause(me);
    child_tell(me, shmview_read_validate(arg, version));
}

START_TEST(forked_child_reads_without_a_lock)
{
    struct child child;
    open_segment();
    child_start(&child, read_without_a_lock, seg);
    child_hear(&child, 1);
    child_cue(&child);
    child_hear(&child, 1);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    child_cue(&child);
    child_hear(&child, 0);
    child_wait(&child);
    close_segment();
}
END_TEST

/* --- Cost ---------------------------------------------------------------- */

static int pairs(struct shmview_segment *segment)
{
    uint64_t version;
    return shmview_lock_shared(segment) || shmview_lock_shared(segment) ||
           shmview_unlock(segment) || shmview_unlock(segment) || shmview_trylock_shared(segment) ||
           shmview_unlock(segment) || shmview_lock(segment) || shmview_unlock(segment) ||
           shmview_read_begin(segment, &version) || shmview_read_validate(segment, version) != 1;
}

static void pairs_without_system_calls(struct child *me, void *arg)
{
    (void)me;
    ck_assert_int_eq(pairs(arg), 0); /* the child's own slot */
    child_forbid_system_calls();
    for (int i = 0; i < 100000; i++)
        if (pairs(arg))
            _exit(1);
    _exit(0);
}

START_TEST(uncontended_pair_makes_no_system_call)
{
    struct child child;
    open_segment();
    child_start(&child, pairs_without_system_calls, seg);
    child_wait(&child);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(valid_while_nobody_is_inside),
        SUITE_TEST(any_exclusive_pair_invalidates),
        SUITE_TEST(busy_while_an_owner_is_inside),
        SUITE_TEST(never_valid_without_a_lock),
        SUITE_TEST(busy_after_a_death_inside),
        SUITE_TEST(no_torn_read_is_believed),
        SUITE_TEST(forked_child_reads_without_a_lock),
        SUITE_TEST(uncontended_pair_makes_no_system_call),
        SUITE_END,
    };
    return suite_main("optimistic", tests);
}
