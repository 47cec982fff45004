/* SPDX-License-Identifier: Apache-2.0 */
/* Checks slice.c: slices end with the turn of the loop. The clock stands still unless a test moves
 * it. */
#include "daemon/base/slice.h"

#include <sys/epoll.h>
#include <time.h>

#include "unit/unit.h"

#define US     INT64_C(1000)
#define SLICE  (150 * US)
#define TURN   (300 * US)
#define WAIT   (20000 * US)
#define EVENTS 8 /* that need not wait */

static uv_loop_t loop;
static int64_t clock_ns = INT64_C(1000000000);
static bool loop_waits;

/* These replace functions of the C library, also for libuv. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    *t = (struct timespec){.tv_sec = clock_ns / 1000000000, .tv_nsec = clock_ns % 1000000000};
    return 0;
}

/* There are no events, and the wait takes no time but that of the clock. */
int epoll_pwait(int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask)
{
    (void)fd, (void)events, (void)most, (void)mask;
    clock_ns += timeout ? WAIT : 0;
    loop_waits |= timeout != 0;
    return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    return epoll_pwait(fd, events, most, timeout, NULL);
}

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void begin(void)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_loop_configure(&loop, UV_METRICS_IDLE_TIME), 0);
    slice_begin_turn(&loop);
}

static void end(void)
{
    slice_begin_turn(NULL);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

START_TEST(without_a_turn_slices_are_whole)
{
    ck_assert_int_eq(slice_end(SLICE), clock_ns + SLICE);
    clock_ns += 10 * TURN;
    ck_assert_int_eq(slice_end(SLICE), clock_ns + SLICE);
    for (int i = 0; i < 10 * EVENTS; i++)
        ck_assert(!slice_is_late());
}
END_TEST

START_TEST(slices_end_with_the_turn)
{
    begin();
    int64_t turn_end = clock_ns + TURN;
    ck_assert_int_eq(slice_end(SLICE), clock_ns + SLICE);
    clock_ns += SLICE;
    ck_assert_int_eq(slice_end(SLICE), turn_end);
    clock_ns += SLICE - 1;
    ck_assert_int_eq(slice_end(SLICE), turn_end);
    clock_ns += SLICE;
    ck_assert_int_eq(slice_end(SLICE), turn_end); /* it is over, and the caller does one step */
    ck_assert_int_eq(slice_end(-SLICE), clock_ns - SLICE);
    slice_begin_turn(&loop);
    ck_assert_int_eq(slice_end(SLICE), clock_ns + SLICE);
    end();
}
END_TEST

START_TEST(what_is_owed_ends_the_turn_earlier)
{
    begin();
    int64_t turn_end = clock_ns + TURN;
    slice_owe(100 * US);
    ck_assert_int_eq(slice_end(TURN), turn_end - 100 * US);
    slice_owe(100 * US);
    ck_assert_int_eq(slice_end(TURN), turn_end - 200 * US);
    slice_begin_turn(&loop);
    ck_assert_int_eq(slice_end(TURN), clock_ns + TURN);
    end();
}
END_TEST

START_TEST(late_events_wait)
{
    begin();
    clock_ns += 2 * TURN;
    for (int i = 0; i < EVENTS; i++)
        ck_assert(!slice_is_late());
    ck_assert(slice_is_late());
    slice_begin_turn(&loop);
    for (int i = 0; i < 10 * EVENTS; i++)
        ck_assert(!slice_is_late());
    clock_ns += TURN - 1;
    ck_assert(!slice_is_late());
    clock_ns++;
    ck_assert(slice_is_late());
    end();
}
END_TEST

static void on_prepare(uv_prepare_t *prepare)
{
    (void)prepare;
    slice_begin_turn(&loop);
}

static void on_timer(uv_timer_t *timer)
{
    ck_assert_int_eq(slice_end(TURN), clock_ns + TURN);
    clock_ns += 100 * US;
    ck_assert_int_eq(slice_end(TURN), clock_ns + TURN - 100 * US);
    uv_close((uv_handle_t *)timer, NULL);
}

START_TEST(the_wait_for_events_is_not_part_of_the_turn)
{
    uv_prepare_t prepare;
    uv_timer_t timer;
    begin();
    uv_prepare_init(&loop, &prepare);
    uv_prepare_start(&prepare, on_prepare);
    uv_unref((uv_handle_t *)&prepare);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, on_timer, 10, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert(loop_waits);
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    end();
}
END_TEST

UNIT_MAIN("slice", UNIT_TEST(without_a_turn_slices_are_whole), UNIT_TEST(slices_end_with_the_turn),
          UNIT_TEST(what_is_owed_ends_the_turn_earlier), UNIT_TEST(late_events_wait),
          UNIT_TEST(the_wait_for_events_is_not_part_of_the_turn))
