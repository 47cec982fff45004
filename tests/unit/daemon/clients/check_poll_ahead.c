/* SPDX-License-Identifier: Apache-2.0 */
/* Checks poll_ahead.c: when the loop polls for the next request instead of sleeping. */
#include "daemon/clients/poll_ahead.h"

#include <sched.h>

#include "unit/unit.h"

static uv_loop_t loop;
static struct poll_ahead poll_ahead;
static bool may;
static int n_yields;

/* Instead of that of the C library. */
int sched_yield(void)
{
    n_yields++;
    return 0;
}

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void begin(bool is_possible)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    poll_ahead_init(&poll_ahead, &loop);
    poll_ahead.is_possible = is_possible;
    may = true;
}

static void end(void)
{
    uv_close((uv_handle_t *)&poll_ahead.idle, NULL);
    poll_ahead_note(&poll_ahead);
    poll_ahead_before_wait(&poll_ahead, may); /* the loop makes one more pass while it stops */
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* Returns whether the loop will poll instead of sleeping in its next wait. */
static bool looks(void)
{
    poll_ahead_before_wait(&poll_ahead, may);
    return uv_is_active((uv_handle_t *)&poll_ahead.idle);
}

START_TEST(nobody_asks)
{
    begin(true);
    ck_assert(!looks());
    end();
}
END_TEST

START_TEST(one_after_the_other)
{
    begin(true);
    for (int i = 0; i < 50; i++) {
        poll_ahead_note(&poll_ahead);
        ck_assert(looks());
    }
    end();
}
END_TEST

START_TEST(given_up_for_the_next)
{
    int n_looked = 0;
    begin(true);
    for (int i = 0; i < 100; i++) {
        poll_ahead_note(&poll_ahead);
        bool has_looked = looks();
        n_looked += has_looked;
        while (has_looked && looks()) /* it ends by itself */
            continue;
    }
    ck_assert_int_ge(n_looked, 1);
    ck_assert_int_lt(n_looked, 20);
    end();
}
END_TEST

/* Requests arrive while the loop polls, but only after another thread has had its processor. */
START_TEST(given_up_for_who_needs_the_processor)
{
    int n_looked = 0;
    begin(true);
    for (int i = 0; i < 100; i++) {
        poll_ahead_note(&poll_ahead);
        n_looked += looks();
        poll_ahead.given = -1;
    }
    ck_assert_int_ge(n_looked, 1);
    ck_assert_int_lt(n_looked, 20);
    end();
}
END_TEST

/* Work waits for what the loop leaves of its processor. Polls that it ended do not count as
 * useless. */
START_TEST(not_while_other_work_waits)
{
    begin(true);
    for (int i = 0; i < 100; i++) {
        may = true;
        poll_ahead_note(&poll_ahead);
        ck_assert(looks());
        may = false;
        ck_assert(!looks());
        poll_ahead_note(&poll_ahead);
        ck_assert(!looks());
    }
    end();
}
END_TEST

/* A client that needs the processor of the loop does not wait for the end of the poll. */
START_TEST(yields_while_it_polls)
{
    begin(true);
    poll_ahead_note(&poll_ahead);
    ck_assert(looks());
    poll_ahead.spin.looks = 0; /* as if the thread had several processors */
    poll_ahead.yielded_ns = poll_ahead.now_ns;
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(n_yields, 0);
    poll_ahead.yielded_ns -= SPIN_YIELD_NS + 1;
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_int_eq(n_yields, 1);
    end();
}
END_TEST

START_TEST(one_processor)
{
    begin(false);
    poll_ahead_note(&poll_ahead);
    ck_assert(!looks());
    end();
}
END_TEST

UNIT_MAIN("poll_ahead", UNIT_TEST(nobody_asks), UNIT_TEST(one_after_the_other),
          UNIT_TEST(given_up_for_the_next), UNIT_TEST(given_up_for_who_needs_the_processor),
          UNIT_TEST(not_while_other_work_waits), UNIT_TEST(yields_while_it_polls),
          UNIT_TEST(one_processor))
