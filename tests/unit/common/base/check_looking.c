/* SPDX-License-Identifier: Apache-2.0 */
/* looking.c: how long one looks who has learnt what looking is good for. */
#include "common/base/looking.h"
#include "unit/unit.h"

#define MOST_NS 100000

START_TEST(one_who_sees_goes_on_looking)
{
    struct looking l = {0};
    uint32_t first = looking_ns(&l);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(first, MOST_NS);
    looking_saw(&l, first, 10);
    ck_assert_uint_eq(looking_ns(&l), first); /* no less than before */
    looking_saw(&l, first, first - 1);
    ck_assert_uint_gt(looking_ns(&l), first); /* it was nearly too late */
    for (int i = 0; i < 1000; i++) {
        uint32_t ns = looking_ns(&l);
        ck_assert_uint_le(ns, MOST_NS);
        looking_saw(&l, ns, ns);
    }
    ck_assert_uint_eq(looking_ns(&l), MOST_NS);
    looking_saw(&l, MOST_NS, INT64_MAX);
    ck_assert_uint_eq(looking_ns(&l), MOST_NS);
}
END_TEST

START_TEST(one_who_does_not_stops_soon)
{
    struct looking l = {0};
    uint64_t sum = 0;
    unsigned n = 0;
    for (int i = 0; i < 100000; i++) {
        uint32_t ns = looking_ns(&l);
        sum += ns;
        n += ns > 0;
        looking_in_vain(&l, ns);
    }
    ck_assert_uint_gt(n, 100);                      /* now and then he tries */
    ck_assert_uint_lt(sum / 100000, MOST_NS / 200); /* and that is all that it costs */
}
END_TEST

START_TEST(one_who_sees_again_looks_again)
{
    struct looking l = {0};
    for (int i = 0; i < 1000; i++)
        looking_in_vain(&l, looking_ns(&l));
    while (looking_ns(&l) == 0)
        looking_in_vain(&l, 0);
    uint32_t ns = looking_ns(&l);
    looking_saw(&l, ns, 100);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_ge(looking_ns(&l), ns);
        looking_saw(&l, looking_ns(&l), 100);
    }
    /* one late answer does not end it */
    looking_in_vain(&l, ns);
    ck_assert_uint_eq(looking_ns(&l), ns / 2);
}
END_TEST

UNIT_MAIN("looking", UNIT_TEST(one_who_sees_goes_on_looking),
          UNIT_TEST(one_who_does_not_stops_soon), UNIT_TEST(one_who_sees_again_looks_again))
