/* SPDX-License-Identifier: Apache-2.0 */
/* A pool of pool.h whose objects are only counted. Each test includes this once. */
#ifndef UNIT_POOLED_H
#define UNIT_POOLED_H

#include <stdatomic.h>

#include "common/base/util.h"
#include "daemon/memory/object.h"
#include "daemon/memory/pool.h"
#include "unit/faults.h"
#include "unit/unit.h"

#define BYTES 8192

/* /proc/meminfo of machines: free is about 48 GB, or nothing */
#define PLENTY "MemTotal: 60000000 kB\nMemAvailable: 50000000 kB\n"
#define LITTLE "MemTotal: 60000000 kB\nMemAvailable: 1000000 kB\n"

static uv_loop_t loop;
static atomic_uint n_begun, n_made, n_unmade;
static atomic_uint_fast64_t most_bytes; /* of one object */
static atomic_bool fails, waits;
static void (*on_unmake)(void);

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static inline int make(struct pool_object *object, uint64_t bytes)
{
    object_unpromise(OBJECT_FILE, bytes);
    n_begun++;
    while (waits)
        usleep(100);
    if (fails)
        return -EIO;
    object->inode = object->number + 1000;
    n_made++;
    if (bytes > most_bytes)
        most_bytes = bytes;
    return 0;
}

static inline void unmake(const struct pool_object *object)
{
    ck_assert_uint_eq(object->inode, object->number + 1000);
    n_unmade++;
    if (on_unmake)
        on_unmake();
}

static const struct pool_maker maker = {.make = make, .unmake = unmake};

static inline void begin(uint64_t limit, unsigned most)
{
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(pool_init(&loop, &maker, most), 0);
    pool_limit(limit);
}

/* Every thing must have been given to somebody or unmade. */
static inline void end(unsigned n_taken)
{
    pool_stop();
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_uint_eq(pool_bytes(), 0);
    ck_assert_uint_eq(n_made, n_unmade + n_taken);
}

/* Runs the loop until the pool has so many bytes, or fails after 20 s. */
static inline void await_bytes(uint64_t bytes)
{
    int64_t until = now_ns() + 20000000000;
    while (pool_bytes() != bytes && now_ns() < until)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(pool_bytes(), bytes);
}

static inline void await(unsigned n)
{
    await_bytes((uint64_t)n * BYTES);
}

static inline void await_least(unsigned n)
{
    int64_t until = now_ns() + 20000000000;
    while (pool_bytes() < (uint64_t)n * BYTES && now_ns() < until)
        uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_ge(pool_bytes(), (uint64_t)n * BYTES);
}

static inline void run_a_while(void)
{
    for (int64_t until = now_ns() + 30000000; now_ns() < until;)
        uv_run(&loop, UV_RUN_NOWAIT);
}

/* Nothing is made until all are wanted. */
static inline void want_of(unsigned n, uint64_t bytes)
{
    waits = true;
    for (unsigned i = 0; i < n; i++)
        ck_assert_ptr_null(pool_take(bytes));
    waits = false;
}

static inline void want(unsigned n)
{
    want_of(n, BYTES);
}

#endif
