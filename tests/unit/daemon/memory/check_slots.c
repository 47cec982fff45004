/* SPDX-License-Identifier: Apache-2.0 */
/* Checks slots.c: slots are taken and given back in order, and each use of a slot has its own
 * generation. */
#include "unit/unit.h"

#include <shmview/layout.h>

#include "daemon/memory/slots.h"
#include "unit/faults.h"

static uint32_t take(struct slots *s, uint32_t generation)
{
    uint32_t slot = 7777, got = 0;
    ck_assert_int_eq(slots_take(s, &slot, &got), 0);
    ck_assert_uint_eq(got, generation);
    return slot;
}

START_TEST(fresh_slots_in_order)
{
    struct slots s = {0};
    for (uint32_t i = 0; i < 50; i++) {
        ck_assert_uint_eq(take(&s, 1), i);
        ck_assert_uint_eq(s.high, i + 1);
        ck_assert_uint_eq(s.n_used, i + 1);
    }
    slots_deinit(&s);
    ck_assert_uint_eq(s.high, 0);
    ck_assert_uint_eq(take(&s, 1), 0); /* zeroed is empty */
    slots_deinit(&s);
}
END_TEST

START_TEST(first_given_first_taken)
{
    struct slots s = {0};
    for (uint32_t i = 0; i < 6; i++)
        take(&s, 1);
    const uint32_t order[] = {4, 0, 5, 1};
    for (size_t i = 0; i < 4; i++)
        slots_give(&s, order[i]);
    for (size_t i = 0; i < 4; i++)
        ck_assert_uint_eq(take(&s, 2), order[i]);
    ck_assert_uint_eq(take(&s, 1), 6);
    slots_deinit(&s);
}
END_TEST

/* A slot in use keeps its generation; each new user of the slot gets the next one. */
START_TEST(generations_grow)
{
    struct slots s = {0};
    for (uint32_t g = 1; g <= 1000; g++) {
        ck_assert_uint_eq(take(&s, g), 0);
        slots_give(&s, 0);
    }
    ck_assert_uint_eq(s.high, 1);
    ck_assert_uint_eq(s.n_used, 0);
    slots_deinit(&s);
}
END_TEST

START_TEST(generation_wraps_past_0)
{
    struct slots s = {0};
    take(&s, 1);
    slots_give(&s, 0);
    slots_entry(&s, 0)->generation = SHMVIEW_GENERATION_MASK - 1;
    take(&s, SHMVIEW_GENERATION_MASK);
    slots_give(&s, 0);
    take(&s, 1); /* because 0 means dead */
    slots_give(&s, 0);
    take(&s, 2);
    slots_deinit(&s);
}
END_TEST

START_TEST(every_slot_taken)
{
    struct slots s = {0};
    uint32_t slot = 77, generation = 88;
    for (uint32_t i = 0; i < SHMVIEW_SLOTS_MAX; i++)
        ck_assert_uint_eq(take(&s, 1), i);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(slots_take(&s, &slot, &generation), -ENOSPC);
    ck_assert_uint_eq(slot, 77); /* untouched */
    ck_assert_uint_eq(generation, 88);
    slots_give(&s, 555);
    ck_assert_uint_eq(take(&s, 2), 555);
    ck_assert_int_eq(slots_take(&s, &slot, &generation), -ENOSPC);
    for (uint32_t i = 0; i < SHMVIEW_SLOTS_MAX; i++)
        slots_give(&s, SHMVIEW_SLOTS_MAX - 1 - i);
    for (uint32_t i = 0; i < SHMVIEW_SLOTS_MAX; i++)
        ck_assert_uint_eq(take(&s, SHMVIEW_SLOTS_MAX - 1 - i == 555 ? 3 : 2),
                          SHMVIEW_SLOTS_MAX - 1 - i);
    slots_deinit(&s);
}
END_TEST

/* Takes and gives back at random, and compares with a simple queue. */
START_TEST(random_against_a_model)
{
    struct slots s = {0};
    static uint32_t queue[1 << 18], generations[SHMVIEW_SLOTS_MAX], used[SHMVIEW_SLOTS_MAX];
    uint32_t head = 0, tail = 0, high = 0, n_used = 0;
    uint64_t seed = 0xdeadbeefcafebabe;
    for (int i = 0; i < 200000; i++) {
        /* the proportion changes, so that it is sometimes full and sometimes empty */
        bool wants = unit_random(&seed) % 100 < (i / 5000 % 2 ? 30 : 70);
        if (wants && n_used < SHMVIEW_SLOTS_MAX) {
            uint32_t slot, generation, expected = head < tail ? queue[head++] : high++;
            ck_assert_int_eq(slots_take(&s, &slot, &generation), 0);
            ck_assert_uint_eq(slot, expected);
            ck_assert_uint_eq(generation, ++generations[slot]);
            used[n_used++] = slot;
        } else if (wants) {
            uint32_t slot, generation;
            ck_assert_int_eq(slots_take(&s, &slot, &generation), -ENOSPC);
        } else if (n_used) {
            uint32_t k = (uint32_t)(unit_random(&seed) % n_used), slot = used[k];
            used[k] = used[--n_used];
            slots_give(&s, slot);
            queue[tail++] = slot;
        }
        ck_assert_uint_eq(s.high, high);
        ck_assert_uint_eq(s.n_used, n_used);
    }
    ck_assert_uint_eq(high, SHMVIEW_SLOTS_MAX); /* it was full once */
    slots_deinit(&s);
}
END_TEST

START_TEST(no_memory)
{
    struct slots s = {0};
    uint32_t slot = 77, generation = 88, failures = 0;
    for (uint32_t i = 0; i < SHMVIEW_SLOTS_MAX; i++) {
        faults_begin(FAULTS_MEMORY, 1);
        int r = slots_take(&s, &slot, &generation);
        if (faults_end()) {
            failures++;
            ck_assert_int_eq(r, -ENOMEM);
            ck_assert_uint_eq(s.n_used, i);
            ck_assert_int_eq(slots_take(&s, &slot, &generation), 0);
        }
        ck_assert_uint_eq(slot, i); /* the failure lost nothing */
        ck_assert_uint_eq(generation, 1);
    }
    ck_assert_uint_gt(failures, 3);
    slots_deinit(&s);
    slots_deinit(&s);
}
END_TEST

UNIT_MAIN("slots", UNIT_TEST(fresh_slots_in_order), UNIT_TEST(first_given_first_taken),
          UNIT_TEST(generations_grow), UNIT_TEST(generation_wraps_past_0),
          UNIT_TEST(every_slot_taken), UNIT_TEST(random_against_a_model), UNIT_TEST(no_memory))
