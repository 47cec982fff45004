/* SPDX-License-Identifier: Apache-2.0 */
/* An owner clears the groups of readers. At a step between, the test plays a reader, another owner
 * or the daemon. word.c is compiled into this test, with its steps. */
#define SHMVIEW_STEPS
#include "client/lock/word.c"

#include <string.h>

#include "unit/unit.h"

#define OWNER  0u
#define READER 50u /* shares group 3 with slot 3 */

static struct {
    struct shmview_control control;
    struct shmview_slot slot[READER + 1];
} object;
static struct shmview_liveness live;
static struct lock lock;
static void (*acts)(void);
static int acts_at, n_acts;

void shmview_step(int step)
{
    if (step == acts_at && acts) {
        n_acts++;
        acts();
    }
}

static uint64_t group_of(uint32_t slot)
{
    return UINT64_C(1) << slot % SHMVIEW_READER_GROUPS;
}

/* All groups are set, and nobody reads. `then` runs at the step. Returns what drain_readers() of
 * the owner returns. */
static int drain(int step, void (*then)(void))
{
    struct wait w = {.deadline = 0, .what = SHMVIEW_WAITS_EXCLUSIVE};
    memset(&object, 0, sizeof object);
    memset(&live, 0, sizeof live);
    live.high = READER + 1;
    live.generation[OWNER] = live.generation[READER] = 1;
    object.control.reader_groups = SHMVIEW_READER_GROUPS_MASK;
    object.control.lock = 1u << SHMVIEW_SLOT_BITS | OWNER;
    lock = (struct lock){.control = &object.control,
                         .live = &live,
                         .me = object.control.lock,
                         .my_life = &live.generation[OWNER]};
    acts_at = step;
    acts = then;
    n_acts = 0;
    return drain_readers(&lock, &w);
}

static void count_reader(void)
{
    object.slot[READER].readers = 1u << SHMVIEW_READER_COUNT_BITS | 1;
}

START_TEST(nobody_reads)
{
    ck_assert_int_eq(drain(-1, NULL), 0);
    ck_assert_uint_eq(object.control.reader_groups, 0);
}
END_TEST

START_TEST(reader_counts_before_the_clear)
{
    ck_assert_int_eq(drain(AT_CLEARS_GROUPS, count_reader), 0);
    ck_assert_int_eq(n_acts, 1);
    ck_assert_uint_eq(object.control.reader_groups, group_of(READER));
}
END_TEST

START_TEST(reader_counts_after_the_clear)
{
    ck_assert_int_eq(drain(AT_GROUPS_CLEARED, count_reader), 0);
    ck_assert_int_eq(n_acts, 1);
    ck_assert_uint_eq(object.control.reader_groups, group_of(READER));
}
END_TEST

START_TEST(reader_of_the_last_generation)
{
    ck_assert_int_eq(drain(-1, NULL), 0);
    count_reader();
    live.generation[READER] = 2;
    object.control.reader_groups = group_of(READER);
    struct wait w = {.deadline = 0, .what = SHMVIEW_WAITS_EXCLUSIVE};
    ck_assert_int_eq(drain_readers(&lock, &w), 0);
    ck_assert_uint_eq(object.control.reader_groups, 0);
    ck_assert_uint_eq(object.slot[READER].readers, 0);
}
END_TEST

/* This owner was declared dead; another one took the lock, found no reader, and released it. */
static void take_over(void)
{
    live.generation[OWNER] |= SHMVIEW_GENERATION_DEAD;
    distrust_groups(&lock);
    count_reader();
}

START_TEST(takeover_before_the_clear)
{
    ck_assert_int_eq(drain(AT_CLEARS_GROUPS, take_over), 0);
    ck_assert_int_eq(n_acts, 1);
    ck_assert_uint_eq(object.control.reader_groups,
                      SHMVIEW_READER_TAKEOVER | SHMVIEW_READER_GROUPS_MASK);
}
END_TEST

/* Its slot is checked before the takeover, the groups are swapped after it. */
static void take_over_unnoticed(void)
{
    distrust_groups(&lock);
    count_reader();
}

START_TEST(takeover_after_the_check)
{
    ck_assert_int_eq(drain(AT_CLEARS_GROUPS, take_over_unnoticed), 0);
    ck_assert_uint_eq(object.control.reader_groups,
                      SHMVIEW_READER_TAKEOVER | SHMVIEW_READER_GROUPS_MASK);
}
END_TEST

/* The takeover happens before the owner reads the groups, so their value does not show it. */
START_TEST(takeover_before_the_groups_are_read)
{
    ck_assert_int_eq(drain(-1, NULL), 0);
    take_over();
    object.slot[READER].readers = 0; /* the reader counts itself after the owner has looked */
    acts_at = AT_CLEARS_GROUPS;
    acts = count_reader;
    struct wait w = {.deadline = 0, .what = SHMVIEW_WAITS_EXCLUSIVE};
    ck_assert_int_eq(drain_readers(&lock, &w), 0);
    ck_assert_int_eq(n_acts, 1);
    ck_assert_uint_eq(object.control.reader_groups,
                      SHMVIEW_READER_TAKEOVER | SHMVIEW_READER_GROUPS_MASK);
}
END_TEST

START_TEST(reader_in_another_group)
{
    ck_assert_int_eq(drain(-1, NULL), 0);
    count_reader();
    object.control.reader_groups = group_of(READER + 1);
    struct wait w = {.deadline = 0, .what = SHMVIEW_WAITS_EXCLUSIVE};
    ck_assert_int_eq(drain_readers(&lock, &w), 0);
    object.control.reader_groups = group_of(READER);
    ck_assert_int_eq(drain_readers(&lock, &w), -SHMVIEW_ERR_TIMED_OUT);
    ck_assert_uint_eq(object.control.reader_groups, group_of(READER));
}
END_TEST

UNIT_MAIN("clear_groups", UNIT_TEST(nobody_reads), UNIT_TEST(reader_counts_before_the_clear),
          UNIT_TEST(reader_counts_after_the_clear), UNIT_TEST(reader_of_the_last_generation),
          UNIT_TEST(takeover_before_the_clear), UNIT_TEST(takeover_after_the_check),
          UNIT_TEST(takeover_before_the_groups_are_read), UNIT_TEST(reader_in_another_group))
