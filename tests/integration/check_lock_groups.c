/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of readers: who sets and clears them, and that no owner overlooks a reader. */
#include <stdatomic.h>
#include <sys/mman.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/raw.h"
#include "support/suite.h"

#include "one_segment.h" /* seg has slot 0 */

#define OTHERS 100 /* slots of each group, and more than one of some */
#define ENOUGH 512 /* exclusive pairs, after which an owner has cleared the groups */

static struct raw raw; /* a client that writes the control object itself; it has slot 1 */
static struct shmview_control *control;

static void open_control(void)
{
    open_segment();
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(raw.n_fds, 3);
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw.fds[1], 0);
    ck_assert_ptr_ne(control, MAP_FAILED);
}

static void close_control(void)
{
    munmap(control, 4096);
    raw_close_fds(&raw);
    raw_close(&raw);
    close_segment();
}

static uint64_t load_groups(void)
{
    return atomic_load((_Atomic uint64_t *)&control->reader_groups);
}

static void store_groups(uint64_t groups)
{
    atomic_store((_Atomic uint64_t *)&control->reader_groups, groups);
}

static uint64_t group_of(unsigned slot)
{
    return UINT64_C(1) << slot % SHMVIEW_READER_GROUPS;
}

static void lock_often(struct shmview_segment *segment)
{
    for (int i = 0; i < ENOUGH; i++) {
        OK(shmview_lock(segment));
        OK(shmview_unlock(segment));
    }
}

START_TEST(set_by_readers_and_cleared_by_owners)
{
    open_control();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    lock_often(seg);
    ck_assert_uint_eq(load_groups(), 0);
    for (int i = 0; i < 3; i++) {
        OK(shmview_lock_shared(other));
        ck_assert_uint_eq(load_groups(), group_of(2));
        REFUSED(shmview_trylock(seg), TIMED_OUT, "");
        OK(shmview_unlock(other));
        ck_assert_uint_eq(load_groups(), group_of(2));
        lock_often(seg);
        ck_assert_uint_eq(load_groups(), 0);
    }
    OK(shmview_detach(other));
    close_control();
}
END_TEST

START_TEST(each_slot_is_in_one)
{
    static struct shmview_segment *other[OTHERS];
    open_control();
    for (unsigned i = 0; i < OTHERS; i++)
        other[i] = client_attach(conn, "s", SHMVIEW_READ);
    for (unsigned i = 0; i < OTHERS; i++) {
        OK(shmview_lock_shared(other[i]));
        ck_assert_uint_eq(load_groups(), group_of(2 + i));
        REFUSED(shmview_trylock(seg), TIMED_OUT, "");
        OK(shmview_unlock(other[i]));
        lock_often(seg);
        ck_assert_uint_eq(load_groups(), 0);
    }
    for (unsigned i = 0; i < OTHERS; i++)
        OK(shmview_detach(other[i]));
    close_control();
}
END_TEST

/* With an arg it holds the lock exclusively. */
static void hold_and_die(struct child *me, void *arg)
{
    struct shmview_connection *mine = client_connect(&d);
    struct shmview_segment *s = client_attach(mine, "s", SHMVIEW_READ);
    OK(arg ? shmview_lock(s) : shmview_lock_shared(s));
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(of_a_dead_reader)
{
    struct child child;
    open_control();
    child_start(&child, hold_and_die, NULL);
    child_hear(&child, 1);
    ck_assert_uint_eq(load_groups(), group_of(2));
    child_kill(&child);
    lock_often(seg);
    ck_assert_uint_eq(load_groups(), 0);
    close_control();
}
END_TEST

START_TEST(all_set_after_the_death_of_an_owner)
{
    struct child child;
    open_control();
    OK(shmview_lock(seg)); /* the next owners do not clear the groups yet */
    OK(shmview_unlock(seg));
    child_start(&child, hold_and_die, &child);
    child_hear(&child, 1);
    child_kill(&child);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    ck_assert_uint_eq(load_groups(), SHMVIEW_READER_TAKEOVER | SHMVIEW_READER_GROUPS_MASK);
    OK(shmview_unlock(seg));
    lock_often(seg);
    ck_assert_uint_eq(load_groups(), SHMVIEW_READER_TAKEOVER);
    close_control();
}
END_TEST

/* The owner dies between two steps: it has cleared the group of a reader, and has not looked at
 * the count again. */
START_TEST(cleared_by_an_owner_that_died)
{
    struct raw dying; /* it has slot 2 */
    open_control();
    raw_connect(&dying, d.socket);
    json_decref(raw_call(&dying, "Attach", "{'name':'s','access':'read'}"));
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock_shared(reader));
    store_groups(0);
    atomic_store((_Atomic uint32_t *)&control->lock, 1u << SHMVIEW_SLOT_BITS | 2);
    raw_close_fds(&dying);
    raw_close(&dying);
    AWAIT(shmview_trylock(seg) == 0 || load_groups() & SHMVIEW_READER_TAKEOVER);
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(reader));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(reader));
    close_control();
}
END_TEST

START_TEST(rubbish_heals)
{
    static const uint64_t rubbish[] = {UINT64_MAX, 1, UINT64_MAX >> 1, UINT64_MAX << 47,
                                       1ull << 46};
    open_control();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    for (size_t i = 0; i < sizeof rubbish / sizeof *rubbish; i++) {
        store_groups(rubbish[i]);
        lock_often(seg);
        ck_assert_uint_eq(load_groups(), rubbish[i] & ~SHMVIEW_READER_GROUPS_MASK);
        OK(shmview_lock_shared(other));
        REFUSED(shmview_trylock(seg), TIMED_OUT, "");
        OK(shmview_unlock(other));
    }
    OK(shmview_detach(other));
    close_control();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(set_by_readers_and_cleared_by_owners),
        SUITE_TEST(each_slot_is_in_one),
        SUITE_TEST(of_a_dead_reader),
        SUITE_TEST(all_set_after_the_death_of_an_owner),
        SUITE_TEST(cleared_by_an_owner_that_died),
        SUITE_TEST(rubbish_heals),
        SUITE_END,
    };
    return suite_main("lock_groups", tests);
}
