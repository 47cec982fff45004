/* SPDX-License-Identifier: Apache-2.0 */
/* The exclusive lock between living threads and processes. */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/raw.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

/* --- One thread ---------------------------------------------------------- */

START_TEST(recursive)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock(seg));
    OK(shmview_lock(seg));
    OK(shmview_trylock(seg));
    OK(shmview_lock_until(seg, shmview_deadline(MS)));
    for (int i = 0; i < 3; i++) {
        OK(shmview_unlock(seg));
        REFUSED(shmview_trylock(other), TIMED_OUT, "'s' is held by another thread or process");
    }
    OK(shmview_unlock(seg));
    OK(shmview_trylock(other));
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(not_owner)
{
    struct shmview_death death = {.pid = 77};
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    REFUSED(shmview_unlock(seg), NOT_OWNER, "does not hold the lock of 's'");
    REFUSED(shmview_unlock_not_repaired(seg), NOT_OWNER, "");
    OK(shmview_lock(other));
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    REFUSED(shmview_owner_died(seg, &death), NOT_OWNER, "");
    ck_assert_uint_eq(death.pid, 77);
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(other));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(deadline)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(other));
    int64_t before = await_now_ns();
    REFUSED(shmview_lock_until(seg, shmview_deadline(20 * MS)), TIMED_OUT, "");
    ck_assert_int_ge(await_now_ns() - before, 20 * MS);
    REFUSED(shmview_lock_until(seg, shmview_deadline(-1)), TIMED_OUT, "");
    REFUSED(shmview_lock_until(seg, 0), TIMED_OUT, "");
    REFUSED(shmview_lock_until(seg, -5), TIMED_OUT, "");
    OK(shmview_unlock(other));
    OK(shmview_lock_until(seg, -5)); /* a deadline that passed: like try */
    OK(shmview_unlock(seg));
    ck_assert_int_eq(shmview_deadline(INT64_MAX), INT64_MAX);
    OK(shmview_lock_until(seg, INT64_MAX));
    OK(shmview_unlock(seg));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(no_lock)
{
    struct shmview_death death;
    open_segment();
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 10, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    REFUSED(shmview_lock(bare), NO_LOCK, "'bare' was created without a lock");
    REFUSED(shmview_trylock(bare), NO_LOCK, "");
    REFUSED(shmview_unlock(bare), NO_LOCK, "");
    REFUSED(shmview_owner_died(bare, &death), NO_LOCK, "");
    REFUSED(shmview_lock(peek), NO_LOCK, "'s' is attached with access peek");
    REFUSED(shmview_lock_until(peek, 1), NO_LOCK, "");
    OK(shmview_detach(bare));
    OK(shmview_detach(peek));
    close_segment();
}
END_TEST

static void forked_without_lock(struct child *me, void *arg)
{
    (void)me;
    REFUSED(shmview_lock(arg), NO_LOCK, "was created without a lock");
}

START_TEST(no_lock_in_a_forked_child)
{
    struct child child;
    open_segment();
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 10, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    child_start(&child, forked_without_lock, bare);
    child_wait(&child);
    OK(shmview_detach(bare));
    close_segment();
}
END_TEST

START_TEST(detach_while_held)
{
    open_segment();
    OK(shmview_lock(seg));
    REFUSED(shmview_detach(seg), BUSY, "holds the lock of 's'");
    REFUSED(shmview_disconnect(conn), BUSY, "1 segments");
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(readers_may_lock)
{
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock(reader));
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(reader));
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

static void pairs_without_system_calls(struct child *me, void *arg)
{
    (void)me;
    OK(shmview_lock(arg)); /* the child's own slot */
    OK(shmview_unlock(arg));
    child_forbid_system_calls();
    for (int i = 0; i < 100000; i++)
        if (shmview_lock(arg) || shmview_lock(arg) || shmview_unlock(arg) || shmview_unlock(arg) ||
            shmview_trylock(arg) || shmview_unlock(arg))
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

/* --- Processes ----------------------------------------------------------- */

#define ADDERS    4
#define ADDITIONS 5000

static void add(struct child *me, void *arg)
{
    uint64_t *sum = shmview_data(arg);
    (void)me;
    for (int i = 0; i < ADDITIONS; i++) {
        OK(i % 3 ? shmview_lock(arg) : shmview_lock_until(arg, shmview_deadline(AWAIT_NS)));
        uint64_t seen = atomic_load_explicit((_Atomic uint64_t *)sum, memory_order_relaxed);
        if (i % 64 == 0)
            sched_yield(); /* a peer that could get in would do so now */
        atomic_store_explicit((_Atomic uint64_t *)sum, seen + 1, memory_order_relaxed);
        OK(shmview_unlock(arg));
    }
}

START_TEST(processes_exclude_each_other)
{
    struct child child[ADDERS];
    open_segment();
    for (int i = 0; i < ADDERS; i++)
        child_start(&child[i], add, seg);
    for (int i = 0; i < ADDERS; i++)
        child_wait(&child[i]);
    ck_assert_uint_eq(*(uint64_t *)shmview_data(seg), ADDERS * ADDITIONS);
    close_segment();
}
END_TEST

static void wait_for_lock(struct child *me, void *arg)
{
    REFUSED(shmview_trylock(arg), TIMED_OUT, "");
    child_tell(me, 1);
    OK(shmview_lock(arg));
    child_tell(me, 2);
    OK(shmview_unlock(arg));
}

START_TEST(unlock_wakes_a_waiter)
{
    struct child child;
    open_segment();
    OK(shmview_lock(seg));
    child_start(&child, wait_for_lock, seg);
    child_hear(&child, 1);
    OK(shmview_unlock(seg));
    child_hear(&child, 2);
    child_wait(&child);
    close_segment();
}
END_TEST

static void child_of_a_holder(struct child *me, void *arg)
{
    (void)me;
    REFUSED(shmview_unlock(arg), NOT_OWNER, "");
    REFUSED(shmview_trylock(arg), TIMED_OUT, "");
    child_tell(me, 1);
    OK(shmview_lock(arg)); /* until the parent lets go */
    OK(shmview_unlock(arg));
    OK(shmview_detach(arg));
}

START_TEST(forked_child_is_not_its_parent)
{
    struct child child;
    open_segment();
    OK(shmview_lock(seg));
    OK(shmview_lock(seg));
    child_start(&child, child_of_a_holder, seg);
    child_hear(&child, 1);
    OK(shmview_unlock(seg));
    REFUSED(shmview_detach(seg), BUSY, "");
    OK(shmview_unlock(seg));
    child_wait(&child);
    OK(shmview_lock(seg)); /* the child's end took nothing from its parent */
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void grandparent(struct child *me, void *arg)
{
    struct child grandchild;
    (void)me;
    OK(shmview_lock(arg));
    child_start(&grandchild, child_of_a_holder, arg);
    child_hear(&grandchild, 1);
    OK(shmview_unlock(arg));
    child_wait(&grandchild);
}

START_TEST(forked_child_of_a_forked_child)
{
    struct child child;
    open_segment();
    child_start(&child, grandparent, seg);
    child_wait(&child);
    close_segment();
}
END_TEST

static void lock_removed_segment(struct child *me, void *arg)
{
    (void)me;
    OK(shmview_lock(arg)); /* by id: the name leads to another segment by now */
    ck_assert_int_eq(*(char *)shmview_data(arg), 'a');
    OK(shmview_unlock(arg));
}

START_TEST(forked_child_finds_a_removed_segment)
{
    struct child child;
    open_segment();
    *(char *)shmview_data(seg) = 'a';
    OK(shmview_remove(conn, "s"));
    struct shmview_segment *next = client_create(conn, "s", 10);
    child_start(&child, lock_removed_segment, seg);
    child_wait(&child);
    OK(shmview_detach(next));
    close_segment();
}
END_TEST

static void hold_and_stand_still(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

START_TEST(stopped_holder_is_not_dead)
{
    struct child child;
    open_segment();
    child_start(&child, hold_and_stand_still, seg);
    child_hear(&child, 1);
    child_stop(&child);
    REFUSED(shmview_lock_until(seg, shmview_deadline(250 * MS)), TIMED_OUT, "");
    child_continue(&child);
    child_cue(&child);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    child_wait(&child);
    close_segment();
}
END_TEST

/* --- Rubbish ------------------------------------------------------------- */

static struct shmview_control *map_control(struct raw *raw)
{
    json_decref(raw_call(raw, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(raw->n_fds, 3);
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw->fds[1], 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

START_TEST(rubbish_in_the_word_heals)
{
    static const uint32_t rubbish[] = {UINT32_MAX, 1,          0x3ff,      0x800,      0x3fffffff,
                                       0x80000000, 0x40000000, 0xc0000000, 0x000ffc00, 0x3ffffc00};
    struct raw raw;
    open_segment();
    raw_connect(&raw, d.socket);
    struct shmview_control *c = map_control(&raw);
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        atomic_store((_Atomic uint32_t *)&c->lock, rubbish[i]);
        OK(shmview_lock(seg));
        OK(shmview_unlock(seg));
        ck_assert_uint_eq(c->lock, 0);
    }
    munmap(c, 4096);
    raw_close_fds(&raw);
    raw_close(&raw);
    close_segment();
}
END_TEST

START_TEST(word_taken_away)
{
    struct raw raw;
    open_segment();
    raw_connect(&raw, d.socket);
    struct shmview_control *c = map_control(&raw);
    OK(shmview_lock(seg));
    uint32_t other = 1u << SHMVIEW_SLOT_BITS | 1; /* the raw client's slot: alive */
    atomic_store((_Atomic uint32_t *)&c->lock, other);
    REFUSED(shmview_unlock(seg), LOST, "was taken away");
    ck_assert_uint_eq(c->lock, other);
    ck_assert_uint_ne(c->inside & SHMVIEW_LOCK_OWNER, 0);
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    atomic_store((_Atomic uint32_t *)&c->lock, 0);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    munmap(c, 4096);
    raw_close_fds(&raw);
    raw_close(&raw);
    close_segment();
}
END_TEST

START_TEST(rubbish_about_the_dead)
{
    static const uint64_t rubbish[] = {UINT64_MAX, 1, 0x3ff, 999, 23, 24, 1u << 10, 0xfffffc00};
    struct shmview_death death;
    struct raw raw;
    open_segment();
    raw_connect(&raw, d.socket);
    struct shmview_control *c = map_control(&raw);
    struct shmview_slot *slot = (struct shmview_slot *)(void *)(c + 1);
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        atomic_store((_Atomic uint64_t *)&c->inside, rubbish[i]);
        memset(slot->command, 'x', sizeof slot->command); /* not ended */
        ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
        OK(shmview_owner_died(seg, &death));
        ck_assert_uint_lt(strnlen(death.command, sizeof death.command), sizeof death.command);
        OK(shmview_unlock(seg));
    }
    munmap(c, 4096);
    raw_close_fds(&raw);
    raw_close(&raw);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(recursive),
        SUITE_TEST(not_owner),
        SUITE_TEST(deadline),
        SUITE_TEST(no_lock),
        SUITE_TEST(no_lock_in_a_forked_child),
        SUITE_TEST(detach_while_held),
        SUITE_TEST(readers_may_lock),
        SUITE_TEST(uncontended_pair_makes_no_system_call),
        SUITE_TEST(processes_exclude_each_other),
        SUITE_TEST(unlock_wakes_a_waiter),
        SUITE_TEST(forked_child_is_not_its_parent),
        SUITE_TEST(forked_child_of_a_forked_child),
        SUITE_TEST(forked_child_finds_a_removed_segment),
        SUITE_TEST(stopped_holder_is_not_dead),
        SUITE_TEST(rubbish_in_the_word_heals),
        SUITE_TEST(word_taken_away),
        SUITE_TEST(rubbish_about_the_dead),
        SUITE_END,
    };
    return suite_main("lock", tests);
}
