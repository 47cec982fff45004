/* SPDX-License-Identifier: Apache-2.0 */
/* Checks pool.c with objects that are only counted. */
#include "unit/unit.h"

#include <stdatomic.h>

#include "common/base/util.h"
#include "daemon/memory/object.h"
#include "daemon/memory/pool.h"

#define BYTES 8192

static uv_loop_t loop;
static atomic_uint n_made, n_unmade;
static atomic_bool fails, waits;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static int make(struct pool_object *object, uint64_t bytes)
{
    object_unpromise(OBJECT_FILE, bytes);
    while (waits)
        usleep(100);
    if (fails)
        return -EIO;
    object->inode = object->number + 1000;
    n_made++;
    return 0;
}

static void unmake(const struct pool_object *object)
{
    ck_assert_uint_eq(object->inode, object->number + 1000);
    n_unmade++;
}

static const struct pool_maker maker = {.make = make, .unmake = unmake};

static void begin(uint64_t limit, unsigned most)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(pool_init(&loop, &maker, most), 0);
    pool_limit(limit);
}

/* Every thing must have been given to somebody or unmade. */
static void end(unsigned n_taken)
{
    pool_stop();
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_uint_eq(pool_bytes(), 0);
    ck_assert_uint_eq(n_made, n_unmade + n_taken);
}

/* Runs the loop until the pool has n objects, or fails after 20 s. */
static void await(unsigned n)
{
    int64_t until = now_ns() + 20000000000;
    while (pool_bytes() != (uint64_t)n * BYTES && now_ns() < until)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(pool_bytes(), (uint64_t)n * BYTES);
}

static void await_least(unsigned n)
{
    int64_t until = now_ns() + 20000000000;
    while (pool_bytes() < (uint64_t)n * BYTES && now_ns() < until)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_ge(pool_bytes(), (uint64_t)n * BYTES);
}

static void run_a_while(void)
{
    for (int64_t until = now_ns() + 30000000; now_ns() < until;)
        uv_run(&loop, UV_RUN_NOWAIT);
}

/* Nothing is made until all are wanted. */
static void want(unsigned n)
{
    waits = true;
    for (unsigned i = 0; i < n; i++)
        ck_assert_ptr_null(pool_take(BYTES));
    waits = false;
}

START_TEST(what_was_wanted_again)
{
    begin(1 << 20, 100);
    want(1);
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    want(3);
    await_least(3);
    for (uint64_t i = 1; i <= 3; i++) {
        struct pool_object *object = pool_take(BYTES);
        ck_assert_ptr_nonnull(object);
        ck_assert_uint_eq(object->number, i);
        free(object);
    }
    ck_assert_ptr_null(pool_take(BYTES / 2)); /* another size is another class */
    struct pool_figures f = pool_figures();
    ck_assert_uint_eq(f.n_hits, 3);
    ck_assert_uint_eq(f.n_misses, 5);
    end(3);
}
END_TEST

START_TEST(given_back)
{
    begin(1 << 20, 100);
    want(2);
    await(2);
    struct pool_object *object = pool_take(BYTES);
    ck_assert_uint_eq(object->number, 1);
    pool_give_back(BYTES, object);
    object = pool_take(BYTES);
    ck_assert_uint_eq(object->number, 1);
    free(object);
    end(1);
}
END_TEST

START_TEST(bounded_by_bytes)
{
    begin(5 * BYTES, 100);
    want(20);
    await(5);
    run_a_while();
    ck_assert_uint_eq(pool_bytes(), 5 * BYTES);
    pool_limit(4 * BYTES);
    ck_assert_uint_eq(pool_bytes(), 0);
    run_a_while();
    ck_assert_uint_le(pool_bytes(), 4 * BYTES);
    end(0);
}
END_TEST

START_TEST(bounded_by_number)
{
    begin(1 << 20, 2);
    want(20);
    await(2);
    run_a_while();
    ck_assert_uint_eq(pool_bytes(), 2 * BYTES);
    end(0);
}
END_TEST

START_TEST(nothing_large)
{
    begin(4 * BYTES - 1, 100);
    want(20);
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    end(0);
}
END_TEST

START_TEST(no_pool)
{
    want(20);
    begin(0, 100);
    want(20);
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    ck_assert_uint_eq(pool_figures().n_misses, 0);
    end(0);
}
END_TEST

START_TEST(drained)
{
    begin(1 << 20, 100);
    want(9);
    await(9);
    ck_assert_uint_ge(object_space(OBJECT_FILE).free, 9 * BYTES);
    ck_assert(pool_drain());
    ck_assert_uint_eq(pool_bytes(), 0);
    ck_assert_uint_eq(n_unmade, 9);
    ck_assert(!pool_drain());
    end(0);
}
END_TEST

/* A pool that nobody wants any longer becomes empty. */
START_TEST(forgotten)
{
    begin(1 << 20, 100);
    want(2);
    await(2);
    await(0);
    end(0);
}
END_TEST

/* After a failure there is a pause, and nothing without an object. */
START_TEST(failing)
{
    fails = true;
    begin(1 << 20, 100);
    want(5);
    run_a_while();
    fails = false;
    want(5);
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    end(0);
}
END_TEST

UNIT_MAIN("pool", UNIT_TEST(what_was_wanted_again), UNIT_TEST(given_back),
          UNIT_TEST(bounded_by_bytes), UNIT_TEST(bounded_by_number), UNIT_TEST(nothing_large),
          UNIT_TEST(no_pool), UNIT_TEST(drained), UNIT_TEST(forgotten), UNIT_TEST(failing))
