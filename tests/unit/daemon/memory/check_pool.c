/* SPDX-License-Identifier: Apache-2.0 */
/* Checks pool.c with objects that are only counted: demand, limits and sizes. */
#include "unit/unit.h"

#include "common/base/util.h"
#include "daemon/memory/object.h"
#include "daemon/memory/pool.h"
#include "unit/faults.h"
#include "unit/pooled.h"

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

/* --- Sizes --------------------------------------------------------------- */

#define SIZES 16 /* how many the pool knows */

static uint64_t size_of(unsigned i)
{
    return (uint64_t)(i + 1) * 4096;
}

/* Begins, and wants objects of as many sizes as the pool knows, and then of one more. Returns false
 * if that took so long that the pool may have forgotten some, as it does after a second. */
static bool want_sizes(void)
{
    int64_t until = now_ns() + 700000000;
    uint64_t bytes = 0;
    begin(64 << 20, 100);
    for (unsigned i = 0; i < SIZES; i++) {
        want_of(2, size_of(i));
        bytes += 2 * size_of(i);
        while (pool_bytes() != bytes && now_ns() < until)
            uv_run(&loop, UV_RUN_NOWAIT);
    }
    want_of(5, size_of(SIZES));
    run_a_while();
    return now_ns() < until;
}

/* While it has objects of as many sizes as it knows, another size gets none. */
START_TEST(too_many_sizes)
{
    for (unsigned i = 0; !want_sizes(); i++) {
        ck_assert_uint_lt(i, 5);
        end(0);
        usleep(2100000); /* a pool that was drained makes nothing for two seconds */
        most_bytes = 0;
    }
    ck_assert_uint_eq(most_bytes, size_of(SIZES - 1));
    /* one that a creation has not used is removed, because there is no place for it */
    struct pool_object *object = calloc(1, sizeof *object);
    object->inode = 1000;
    n_made++;
    unsigned n_before = n_unmade;
    pool_give_back(size_of(SIZES), object);
    ck_assert_uint_eq(n_unmade, n_before + 1);
    object = pool_take(size_of(0));
    ck_assert_ptr_nonnull(object);
    free(object);
    end(1);
}
END_TEST

/* The size that was wanted longest ago is forgotten for a new one. */
START_TEST(sizes_that_were_wanted_last)
{
    int64_t until = now_ns() + 900000000;
    begin(64 << 20, 100);
    for (unsigned i = 0; i <= SIZES; i++)
        want_of(1, size_of(i));
    want_of(1, size_of(0)); /* as if for the first time; it replaces the second size */
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    want_of(1, size_of(2)); /* for the second time; not if a second has passed */
    if (now_ns() < until)
        await_bytes(2 * size_of(2));
    end(0);
}
END_TEST

/* An object that is larger than what one job makes has a job of its own. */
START_TEST(large_ones)
{
    const uint64_t bytes = (uint64_t)16 << 20;
    faults_file("/proc/meminfo", PLENTY);
    faults_begin_call("statvfs", 1, ENOSYS, true); /* /dev/shm has no limit */
    begin(8 * bytes, 100);
    want_of(3, bytes);
    await_bytes(3 * bytes);
    faults_end();
    end(0);
}
END_TEST

UNIT_MAIN("pool", UNIT_TEST(what_was_wanted_again), UNIT_TEST(given_back),
          UNIT_TEST(bounded_by_bytes), UNIT_TEST(bounded_by_number), UNIT_TEST(nothing_large),
          UNIT_TEST(no_pool), UNIT_TEST(drained), UNIT_TEST(forgotten), UNIT_TEST(failing),
          UNIT_TEST(too_many_sizes), UNIT_TEST(sizes_that_were_wanted_last), UNIT_TEST(large_ones))
