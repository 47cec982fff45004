/* SPDX-License-Identifier: Apache-2.0 */
/* Checks spin.c: how long a waiter polls, given whether its last polls were useful. */
#include "common/base/spin.h"
#include "unit/unit.h"

#define MOST_NS 100000

START_TEST(one_who_sees_goes_on_looking)
{
    struct spin l = {0};
    uint32_t first = spin_ns(&l);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(first, MOST_NS);
    spin_hit(&l, first, 10);
    ck_assert_uint_eq(spin_ns(&l), first); /* not less than before */
    spin_hit(&l, first, first - 1);
    ck_assert_uint_gt(spin_ns(&l), first); /* the reply came just in time */
    for (int i = 0; i < 1000; i++) {
        uint32_t ns = spin_ns(&l);
        ck_assert_uint_le(ns, MOST_NS);
        spin_hit(&l, ns, ns);
    }
    ck_assert_uint_eq(spin_ns(&l), MOST_NS);
    spin_hit(&l, MOST_NS, INT64_MAX);
    ck_assert_uint_eq(spin_ns(&l), MOST_NS);
}
END_TEST

START_TEST(one_who_does_not_stops_soon)
{
    struct spin l = {0};
    uint64_t sum = 0;
    unsigned n = 0;
    for (int i = 0; i < 100000; i++) {
        uint32_t ns = spin_ns(&l);
        sum += ns;
        n += ns > 0;
        spin_missed(&l, ns);
    }
    ck_assert_uint_gt(n, 100);                      /* it still polls now and then */
    ck_assert_uint_lt(sum / 100000, MOST_NS / 200); /* and the whole cost is bounded */
}
END_TEST

START_TEST(one_who_sees_again_looks_again)
{
    struct spin l = {0};
    for (int i = 0; i < 1000; i++)
        spin_missed(&l, spin_ns(&l));
    while (spin_ns(&l) == 0)
        spin_missed(&l, 0);
    uint32_t ns = spin_ns(&l);
    spin_hit(&l, ns, 100);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_ge(spin_ns(&l), ns);
        spin_hit(&l, spin_ns(&l), 100);
    }
    /* one late reply does not disable it */
    spin_missed(&l, ns);
    ck_assert_uint_eq(spin_ns(&l), ns / 2);
}
END_TEST

UNIT_MAIN("spin", UNIT_TEST(one_who_sees_goes_on_looking), UNIT_TEST(one_who_does_not_stops_soon),
          UNIT_TEST(one_who_sees_again_looks_again))
