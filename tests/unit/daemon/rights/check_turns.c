/* SPDX-License-Identifier: Apache-2.0 */
/* Checks turns.c: which connections wait for a turn. */
#include "daemon/rights/turns.h"

#include <time.h>

#include "common/base/util.h"
#include "unit/turns.h"
#include "unit/unit.h"

static uv_loop_t loop;
static struct turns turns;
static struct quota_user user, other_user;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

/* Of a connection of its own. */
#define TURN(user)                                                                                 \
    {                                                                                              \
        .payer = (user), .who = &(char)                                                            \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static void init_user(struct quota_user *u)
{
    static struct quota quota;
    *u = (struct quota_user){.quota = &quota};
    TAILQ_INIT(&u->quick);
    TAILQ_INIT(&u->slow);
}

static void begin(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(turns_init(&turns, &loop), 0);
    init_user(&user);
    init_user(&other_user);
}

static void end(void)
{
    end_turns(&turns);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Returns whether the connection is served at once, by a turn that takes this long, in a round of
 * its own. */
static bool is_served(struct turn *c, int64_t took_ns)
{
    turns_round(&turns);
    if (!turns_begin(&turns, c)) {
        turns_cancel(&turns, c);
        return false;
    }
    for (int64_t start = cpu_ns(); cpu_ns() - start < took_ns;)
        ;
    turns_end(&turns, c);
    return true;
}

START_TEST(a_few_long_turns_make_nobody_slow)
{
    struct turn calm = TURN(&user), other = TURN(&user);
    begin();
    for (int i = 0; i < 1000; i++) {
        ck_assert(is_served(&other, 0));
        ck_assert(is_served(&calm, i % 500 == 250 ? 400000 : 0)); /* for example an interrupt */
    }
    end();
}
END_TEST

START_TEST(many_long_turns_do)
{
    struct turn greedy = TURN(&user), other = TURN(&user);
    int n = 0;
    begin();
    do
        ck_assert(is_served(&other, 0));
    while (is_served(&greedy, 150000) && n++ < 100);
    ck_assert_int_ge(n, 2); /* 14, and fewer if interrupts make some turns longer */
    ck_assert_int_lt(n, 30);
    ck_assert(is_served(&other, 0));
    end();
}
END_TEST

START_TEST(slow_alone_is_served_at_once)
{
    struct turn greedy = TURN(&user);
    begin();
    for (int i = 0; i < 100; i++)
        ck_assert(is_served(&greedy, 150000));
    end();
}
END_TEST

START_TEST(a_slow_one_pays_by_quick_turns)
{
    struct turn greedy = TURN(&user), other = TURN(&user);
    begin();
    for (int i = 0; i < 50; i++)
        ck_assert(is_served(&greedy, 150000));
    for (int i = 0; i < 3000; i++)
        ck_assert(is_served(&greedy, 0));
    ck_assert(is_served(&other, 0));
    ck_assert(is_served(&greedy, 0));
    end();
}
END_TEST

START_TEST(a_round_has_an_end)
{
    struct turn a = TURN(&user), b = TURN(&other_user);
    begin();
    ck_assert(is_served(&a, 3000000));
    ck_assert(!turns_begin(&turns, &b)); /* in the same round */
    ck_assert(b.waits);
    turns_cancel(&turns, &b);
    ck_assert(is_served(&b, 0));
    end();
}
END_TEST

UNIT_MAIN("turns", UNIT_TEST(a_few_long_turns_make_nobody_slow), UNIT_TEST(many_long_turns_do),
          UNIT_TEST(slow_alone_is_served_at_once), UNIT_TEST(a_slow_one_pays_by_quick_turns),
          UNIT_TEST(a_round_has_an_end))
