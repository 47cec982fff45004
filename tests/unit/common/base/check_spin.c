/* SPDX-License-Identifier: Apache-2.0 */
/* Checks spin.c: how long a waiter polls, given whether its last polls were useful. */
#include "common/base/spin.h"

#include <sched.h>
#include <unistd.h>

#include "common/base/util.h"
#include "unit/unit.h"

#define MOST_NS 100000

START_TEST(one_who_sees_goes_on_looking)
{
    struct spin l = {0};
    uint32_t first = spin_begin(&l);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_lt(first, MOST_NS);
    spin_hit(&l, first, 10);
    ck_assert_uint_eq(spin_begin(&l), first); /* not less than before */
    spin_hit(&l, first, first - 1);
    ck_assert_uint_gt(spin_begin(&l), first); /* the reply came just in time */
    for (int i = 0; i < 1000; i++) {
        uint32_t ns = spin_begin(&l);
        ck_assert_uint_le(ns, MOST_NS);
        spin_hit(&l, ns, ns);
    }
    ck_assert_uint_eq(spin_begin(&l), MOST_NS);
}
END_TEST

/* Another thread had the processor: without the poll the answer would have come earlier. */
START_TEST(an_answer_after_the_poll_is_a_miss)
{
    struct spin l = {0};
    uint32_t ns = spin_begin(&l);
    spin_hit(&l, ns, 2 * (int64_t)ns);
    ck_assert_uint_eq(l.in_vain, 1);
    ns = spin_begin(&l);
    spin_hit(&l, ns, 2 * (int64_t)ns + 1);
    ck_assert_uint_eq(spin_begin(&l), ns / 2);
}
END_TEST

/* The processors that a thread may use decide how it polls, and not whether it polls. */
START_TEST(one_who_has_one_processor_yields)
{
    cpu_set_t before, one;
    struct spin l = {0};
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    bool possible = spin_is_possible();
    ck_assert_uint_gt(spin_begin(&l), 0);
    ck_assert_uint_eq(l.looks, SPIN_LOOKS_MOST);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
    ck_assert_int_eq(possible, sysconf(_SC_NPROCESSORS_ONLN) > 1);
    for (int i = 0; i < 16; i++) /* learns about the change at its next new attempt */
        spin_missed(&l, spin_begin(&l));
    spin_begin(&l);
    ck_assert_uint_eq(l.looks, CPU_COUNT(&before) == 1 ? SPIN_LOOKS_MOST : 0);
}
END_TEST

/* Where the peer needs the processor, looks before the first yield are in vain; where it has its
 * own, yields are. */
START_TEST(yields_follow_the_answers)
{
    const int64_t usual = 64, trial = 0; /* times at which a wait tries nothing, and something */
    struct spin l = {.looks = SPIN_LOOKS_MOST};
    for (int i = 0; i < 10; i++)
        spin_yielded(&l, spin_looks(&l, usual), 1);
    unsigned few = spin_looks(&l, usual);
    ck_assert_uint_gt(few, 0);
    ck_assert_uint_le(few, SPIN_LOOKS_MOST / 16);
    spin_yielded(&l, spin_looks(&l, trial), 1); /* a trial in vain */
    ck_assert_uint_eq(spin_looks(&l, usual), few);
    spin_yielded(&l, few, 0);
    ck_assert_uint_eq(spin_looks(&l, usual), 2 * few);
    ck_assert_uint_eq(spin_looks(&l, trial), SPIN_LOOKS_MOST);
    spin_yielded(&l, SPIN_LOOKS_MOST, 0); /* a trial with success */
    ck_assert_uint_eq(spin_looks(&l, usual), SPIN_LOOKS_MOST);
    spin_yielded(&l, SPIN_LOOKS_MOST, 2); /* one late answer */
    ck_assert_uint_eq(spin_looks(&l, usual), SPIN_LOOKS_MOST / 2);
    struct spin free = {0};
    spin_yielded(&free, spin_looks(&free, usual), 3);
    ck_assert_uint_eq(free.looks, 0);
    ck_assert_uint_eq(spin_looks(&free, usual), SPIN_LOOKS_MOST);
}
END_TEST

START_TEST(one_who_does_not_stops_soon)
{
    struct spin l = {0};
    uint64_t sum = 0;
    unsigned n = 0;
    for (int i = 0; i < 100000; i++) {
        uint32_t ns = spin_begin(&l);
        sum += ns;
        n += ns > 0;
        spin_missed(&l, ns);
    }
    ck_assert_uint_gt(n, 5000);            /* it still polls, so that two who sleep can stop it */
    ck_assert_uint_lt(sum / 100000, 5000); /* and that costs less than 5 us a wait */
}
END_TEST

/* The kinds differ in how long they poll, and not in which share of the time they poll in vain. */
START_TEST(each_kind_has_its_limits)
{
    static const struct {
        enum spin_kind kind;
        uint32_t first_ns, most_ns;
    } kinds[] = {
        {SPIN_CHANGE, 50000, 100000},
        {SPIN_REPLY, 200000, 400000},
        {SPIN_REQUEST, 200000, 200000},
    };
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        struct spin l = {.kind = (uint8_t)kinds[i].kind};
        uint64_t sum = 0;
        ck_assert_uint_eq(spin_begin(&l), kinds[i].first_ns);
        for (int n = 0; n < 10; n++)
            spin_hit(&l, spin_begin(&l), spin_begin(&l));
        ck_assert_uint_eq(spin_begin(&l), kinds[i].most_ns);
        for (int n = 0; n < 16000; n++) {
            sum += spin_begin(&l);
            spin_missed(&l, spin_begin(&l));
        }
        ck_assert_uint_lt(sum / 16000, kinds[i].first_ns / 15);
    }
}
END_TEST

START_TEST(one_who_sees_again_looks_again)
{
    struct spin l = {0};
    for (int i = 0; i < 1000; i++)
        spin_missed(&l, spin_begin(&l));
    while (spin_begin(&l) == 0)
        spin_missed(&l, 0);
    uint32_t ns = spin_begin(&l);
    spin_hit(&l, ns, 100);
    for (int i = 0; i < 1000; i++) {
        ck_assert_uint_ge(spin_begin(&l), ns);
        spin_hit(&l, spin_begin(&l), 100);
    }
    /* one late reply does not disable it */
    spin_missed(&l, ns);
    ck_assert_uint_eq(spin_begin(&l), ns / 2);
}
END_TEST

UNIT_MAIN("spin", UNIT_TEST(one_who_sees_goes_on_looking), UNIT_TEST(one_who_does_not_stops_soon),
          UNIT_TEST(an_answer_after_the_poll_is_a_miss),
          UNIT_TEST(one_who_has_one_processor_yields), UNIT_TEST(yields_follow_the_answers),
          UNIT_TEST(each_kind_has_its_limits), UNIT_TEST(one_who_sees_again_looks_again))
