/* SPDX-License-Identifier: Apache-2.0 */
/* Checks pool.c with objects that are only counted: ends, failures, and a machine with little
 * memory. */
#include "unit/unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "common/base/util.h"
#include "daemon/memory/object.h"
#include "daemon/memory/pool.h"
#include "unit/faults.h"
#include "unit/pooled.h"

/* --- Ends ---------------------------------------------------------------- */

START_TEST(given_back_too_late)
{
    begin(1 << 20, 100);
    want(2);
    await(2);
    struct pool_object *object = pool_take(BYTES);
    ck_assert_ptr_nonnull(object);
    pool_limit(0);
    pool_give_back(BYTES, object);
    ck_assert_uint_eq(n_unmade, n_made);
    end(0);
}
END_TEST

static atomic_bool goes;

/* Runs on the thread of a job, before the first object. */
static void wait_to_go(void)
{
    while (!goes)
        usleep(100);
}

/* A job that was queued before the pool was stopped or drained makes nothing afterwards. */
START_TEST(queued_too_early)
{
    begin(1 << 20, 100);
    faults_hook("fopen", wait_to_go);
    want(2);
    pool_drain();
    goes = true;
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    end(0);
}
END_TEST

START_TEST(stopped_too_late)
{
    begin(1 << 20, 100);
    faults_hook("fopen", wait_to_go);
    want(2);
    pool_stop();
    ck_assert_ptr_null(pool_take(BYTES));
    goes = true;
    end(0);
    ck_assert_uint_eq(n_made, 0);
}
END_TEST

static void *go_later(void *arg)
{
    usleep(20000);
    waits = false;
    return arg;
}

/* An object that is being made during a drain is not kept, and the drain waits for it. */
START_TEST(drained_while_one_is_made)
{
    pthread_t thread;
    begin(1 << 20, 100);
    faults_hook("fopen", wait_to_go);
    want(2);
    waits = true;
    goes = true;
    while (n_begun == 0)
        usleep(100);
    ck_assert_int_eq(pthread_create(&thread, NULL, go_later, NULL), 0);
    ck_assert(pool_drain());
    ck_assert_uint_eq(pool_bytes(), 0);
    ck_assert_uint_eq(n_unmade, 1);
    run_a_while();
    ck_assert_uint_eq(pool_bytes(), 0);
    pthread_join(thread, NULL);
    end(0);
}
END_TEST

/* Without descriptors for its alarms there is no pool, and nothing is left open. */
START_TEST(no_descriptors)
{
    struct rlimit before, limit;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), next = dup(null);
    close(next);
    for (int more = 0; more < 2; more++) {
        limit = (struct rlimit){(rlim_t)(next + more), before.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_eq(pool_init(&loop, &maker, 100), -EMFILE);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(dup(null), more ? next : -1);
        close(next);
    }
    close(null);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    pool_limit(1 << 20);
    ck_assert_ptr_null(pool_take(BYTES));
    ck_assert_uint_eq(pool_figures().n_misses, 0);
    end(0);
}
END_TEST

/* --- Memory -------------------------------------------------------------- */

/* The daemon's own memory: it makes as many as it can describe. */
START_TEST(no_memory_to_describe_them)
{
    begin(1 << 20, 100);
    faults_begin_call("calloc", 3, ENOMEM, true);
    want(5); /* the second makes a job of two */
    await(2);
    run_a_while();
    ck_assert_uint_eq(pool_bytes(), 2 * BYTES);
    ck_assert(faults_end());
    free(pool_take(BYTES));
    await_least(5);
    end(1);
}
END_TEST

/* While the machine has little memory nothing is made, and not for a moment afterwards. */
START_TEST(little_memory)
{
    faults_file("/proc/meminfo", LITTLE);
    begin(1 << 20, 100);
    want(5);
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    faults_file("/proc/meminfo", PLENTY);
    want(5);
    run_a_while();
    ck_assert_uint_eq(n_made, 0);
    end(0);
}
END_TEST

/* The pool empties itself at once when the machine has little memory left. Otherwise it would lose
 * a quarter in each second. */
START_TEST(memory_becomes_short)
{
    faults_file("/proc/meminfo", PLENTY);
    begin(1 << 20, 100);
    want(9);
    await(9);
    run_a_while();
    faults_file("/proc/meminfo", LITTLE);
    int64_t until = now_ns() + 20000000000;
    while (pool_figures().bytes == 9 * BYTES && now_ns() < until)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(pool_figures().bytes, 0);
    end(0);
}
END_TEST

static unsigned n_looks;

static void take_memory(void)
{
    faults_file("/proc/meminfo", n_looks++ ? LITTLE : PLENTY);
    faults_hook("fopen", take_memory);
}

/* Another creation gets the memory after the job has looked: the object is not made. */
START_TEST(memory_is_taken_in_between)
{
    const uint64_t bytes = (uint64_t)32 << 20; /* large enough to look each time */
    faults_begin_call("statvfs", 1, ENOSYS, true);
    faults_hook("fopen", take_memory);
    begin(8 * bytes, 100);
    want_of(2, bytes);
    run_a_while();
    ck_assert_uint_ge(n_looks, 2);
    ck_assert_uint_eq(n_made, 0);
    faults_end();
    end(0);
}
END_TEST

static void free_memory(void)
{
    faults_file("/proc/meminfo", PLENTY);
}

/* Lets a creation find too little while the pool has two objects. Returns what its promise is. */
static int promise_with_little(struct object_space *ret_space)
{
    faults_begin_call("statvfs", 1, ENOSYS, true);
    faults_file("/proc/meminfo", PLENTY);
    begin(1 << 20, 100);
    want(2);
    await(2);
    run_a_while();
    faults_file("/proc/meminfo", LITTLE);
    int r = object_promise(OBJECT_FILE, (uint64_t)32 << 20, ret_space);
    ck_assert_uint_eq(pool_bytes(), 0);
    ck_assert_uint_eq(n_unmade, n_made);
    faults_end();
    return r;
}

/* A creation that finds too little gets the memory of the pool. */
START_TEST(drained_by_a_creation)
{
    struct object_space space;
    on_unmake = free_memory;
    ck_assert_int_eq(promise_with_little(&space), 0);
    object_unpromise(OBJECT_FILE, (uint64_t)32 << 20);
    end(0);
}
END_TEST

START_TEST(drained_in_vain)
{
    struct object_space space = {.free = UINT64_MAX};
    ck_assert_int_eq(promise_with_little(&space), -ENOSPC);
    ck_assert_uint_eq(space.free, 0);
    end(0);
}
END_TEST

UNIT_MAIN("pool_ends", UNIT_TEST(given_back_too_late), UNIT_TEST(queued_too_early),
          UNIT_TEST(stopped_too_late), UNIT_TEST(drained_while_one_is_made),
          UNIT_TEST(no_descriptors), UNIT_TEST(no_memory_to_describe_them),
          UNIT_TEST(little_memory), UNIT_TEST(memory_becomes_short),
          UNIT_TEST(memory_is_taken_in_between), UNIT_TEST(drained_by_a_creation),
          UNIT_TEST(drained_in_vain))
