/* SPDX-License-Identifier: Apache-2.0 */
/* Checks meter.c: it finds the turn that worked for long, and takes no wait for work. */
#include "daemon/base/meter.h"

#include <time.h>

#include "unit/unit.h"

#define MS 1000000

static uv_loop_t loop;
static struct meter meter;
static unsigned n_turns;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void work(int64_t ns)
{
    struct timespec t;
    int64_t until = 0, now;
    do {
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        until = until ? until : now + ns;
    } while (now < until);
}

static void on_prepare(uv_prepare_t *prepare)
{
    (void)prepare;
    meter_end_turn(&meter);
    work(MS); /* as a daemon that polls */
    meter_begin_turn(&meter);
}

/* The 21st turn is none of those at whose beginning the meter reads the time, so it may come out
 * too short on a busy machine. It makes the meter read the time for the 22nd. */
static void on_timer_that_works(uv_timer_t *timer)
{
    n_turns++;
    if (n_turns == 21 || n_turns == 22)
        work(20 * MS);
    if (n_turns == 30)
        uv_timer_stop(timer);
}

static void on_timer_that_waits(uv_timer_t *timer)
{
    usleep(n_turns == 21 ? 100000 : 0);
    if (++n_turns == 30)
        uv_timer_stop(timer);
}

static uint64_t longest(uv_timer_cb on_timer)
{
    uv_prepare_t prepare;
    uv_timer_t timer;
    n_turns = 0;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    meter_init(&meter, &loop);
    uv_prepare_init(&loop, &prepare);
    uv_prepare_start(&prepare, on_prepare);
    uv_unref((uv_handle_t *)&prepare);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, on_timer, 2, 2);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    return meter.longest_ns;
}

START_TEST(finds_the_turn_that_works)
{
    uint64_t ns = longest(on_timer_that_works);
    ck_assert_uint_ge(ns, 20 * MS);
}
END_TEST

START_TEST(leaves_waits_out)
{
    ck_assert_uint_lt(longest(on_timer_that_waits), 100 * MS);
}
END_TEST

UNIT_MAIN("meter", UNIT_TEST(finds_the_turn_that_works), UNIT_TEST(leaves_waits_out))
