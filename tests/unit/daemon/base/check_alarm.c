/* SPDX-License-Identifier: Apache-2.0 */
/* Checks alarm.c: a timer that is a descriptor of the loop. */
#include "daemon/base/alarm.h"

#include <poll.h>

#include "unit/unit.h"

static uv_loop_t loop;
static struct alarm under_test, end_of_test;
static unsigned n_rung, stop_at;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void on_ring(struct alarm *alarm)
{
    ck_assert_ptr_eq(alarm->data, &n_rung);
    if (++n_rung == stop_at) {
        alarm_stop(alarm);
        alarm_set(&end_of_test, 50, 0);
    }
}

static void on_end(struct alarm *alarm)
{
    (void)alarm;
    uv_stop(&loop);
}

static void begin(void)
{
    n_rung = stop_at = 0;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(alarm_init(&under_test, &loop, on_ring, &n_rung), 0);
    ck_assert_int_eq(alarm_init(&end_of_test, &loop, on_end, NULL), 0);
}

/* Runs the loop for this time, and ends it. */
static void run_ms(uint64_t ms)
{
    alarm_set(&end_of_test, ms, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    alarm_close(&under_test, NULL);
    alarm_close(&end_of_test, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* Runs the loop for this time, then checks the number of rings and whether the alarm is still
 * set. */
static void expect_rings(unsigned n, uint64_t ms, bool is_set_afterwards)
{
    run_ms(ms);
    ck_assert_uint_eq(n_rung, n);
    ck_assert_int_eq(under_test.is_set, is_set_afterwards);
}

START_TEST(rings_once)
{
    begin();
    alarm_set(&under_test, 1, 0);
    ck_assert(under_test.is_set);
    expect_rings(1, 50, false);
}
END_TEST

START_TEST(no_time_at_all_is_soon)
{
    begin();
    alarm_set(&under_test, 0, 0);
    expect_rings(1, 50, false);
}
END_TEST

START_TEST(repeats_until_it_is_stopped)
{
    begin();
    stop_at = 3;
    alarm_set(&under_test, 1, 1);
    expect_rings(3, 20000, false); /* it ends soon after the third */
}
END_TEST

START_TEST(setting_it_again_forgets_what_was_set)
{
    begin();
    alarm_set(&under_test, 1, 1);
    alarm_set(&under_test, 1000000000, 0);
    expect_rings(0, 50, true);
}
END_TEST

START_TEST(one_that_has_expired_can_still_be_stopped)
{
    begin();
    alarm_set(&under_test, 0, 0);
    while (poll(&(struct pollfd){.fd = under_test.fd, .events = POLLIN}, 1, -1) != 1)
        ;
    alarm_stop(&under_test);
    expect_rings(0, 50, false);
}
END_TEST

UNIT_MAIN("alarm", UNIT_TEST(rings_once), UNIT_TEST(no_time_at_all_is_soon),
          UNIT_TEST(repeats_until_it_is_stopped), UNIT_TEST(setting_it_again_forgets_what_was_set),
          UNIT_TEST(one_that_has_expired_can_still_be_stopped))
