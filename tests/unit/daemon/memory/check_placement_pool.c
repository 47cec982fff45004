/* SPDX-License-Identifier: Apache-2.0 */
/* Checks placement.c: the choice of the pool, for which the kernel's files have the texts of the
 * test, and the texts of the reasons for missing huge pages. */
#include "unit/unit.h"

#include "daemon/memory/discard.h"
#include "daemon/memory/placement.h"
#include "unit/faults.h"

#define POOL "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define HUGE PLACEMENT_HUGE_BYTES

static uv_loop_t loop;

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static void set_pool(const char *n_free)
{
    faults_file(POOL "free_hugepages", n_free);
    faults_file(POOL "resv_hugepages", "0\n");
    faults_file(POOL "nr_overcommit_hugepages", "0\n");
    faults_file(POOL "surplus_hugepages", "0\n");
}

static bool chooses(unsigned huge, bool sealed, uint64_t bytes)
{
    struct placement p = {.huge = (uint8_t)huge};
    bool chosen = placement_choose_pool(&p, sealed, bytes);
    ck_assert_int_eq(placement_is_pool(&p), chosen);
    ck_assert_uint_eq(placement_object_bytes(&p, bytes),
                      chosen ? (bytes + HUGE - 1) / HUGE * HUGE : bytes);
    ck_assert_uint_eq(placement_memory(&p, bytes), chosen ? 0 : bytes);
    return chosen;
}

START_TEST(pool_with_room)
{
    set_pool("2\n");
    ck_assert(chooses(SHMVIEW_HUGE_WANTED, true, HUGE));
    ck_assert(chooses(SHMVIEW_HUGE_REQUIRED, true, HUGE + 1)); /* two pages */
    ck_assert(chooses(SHMVIEW_HUGE_WANTED, true, 2 * HUGE));
    ck_assert(!chooses(SHMVIEW_HUGE_WANTED, true, 2 * HUGE + 1));
    ck_assert(!chooses(SHMVIEW_HUGE_WANTED, false, HUGE)); /* a file cannot be of the pool */
    ck_assert(!chooses(SHMVIEW_HUGE_WANTED, true, HUGE - 1));
    ck_assert(!chooses(0, true, HUGE));
    ck_assert(!placement_choose_pool(NULL, true, HUGE));
    ck_assert(!placement_is_pool(NULL));
    ck_assert_uint_eq(placement_object_bytes(NULL, 5), 5);
    ck_assert_uint_eq(placement_memory(NULL, 5), 5);
}
END_TEST

START_TEST(pool_without_room)
{
    set_pool("0\n");
    ck_assert(!chooses(SHMVIEW_HUGE_WANTED, true, HUGE));
    set_pool(NULL);
    ck_assert(!chooses(SHMVIEW_HUGE_REQUIRED, true, HUGE));
}
END_TEST

START_TEST(pool_that_another_process_has_taken)
{
    struct placement p = {.huge = SHMVIEW_HUGE_WANTED};
    set_pool("1\n");
    ck_assert(placement_choose_pool(&p, true, HUGE));
    p.huge_bytes = HUGE;
    placement_leave_pool(&p);
    ck_assert(!placement_is_pool(&p));
    ck_assert_uint_eq(p.huge_bytes, 0);
    ck_assert_uint_eq(p.huge, SHMVIEW_HUGE_WANTED); /* the data can still get transparent ones */
    ck_assert_uint_eq(placement_memory(&p, HUGE), HUGE);
}
END_TEST

static int other;

/* The pool has pages once the object that waits for the quiet thread is freed. */
static void look_whether_freed(void)
{
    char byte;
    set_pool(read(other, &byte, 1) == 0 ? "1\n" : "0\n");
    faults_hook("fopen", look_whether_freed);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_close(handle, NULL);
}

START_TEST(pool_with_memory_that_is_being_freed)
{
    int ends[2];
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    discard_init(&loop);
    ck_assert_int_eq(discard_start(), 0);
    for (uint64_t n = 1; n <= 2; n++) {
        ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
        other = ends[0];
        discard_soon(ends[1], NULL, 0);
        faults_hook("fopen", look_whether_freed);
        ck_assert_int_eq(chooses(SHMVIEW_HUGE_WANTED, true, n * HUGE), n == 1);
        char byte;
        ck_assert_int_eq(read(other, &byte, 1), 0); /* it was freed for nothing */
        close(other);
    }
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    discard_init(NULL);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(reasons_as_clauses)
{
    ck_assert_str_eq(placement_missing_text(SHMVIEW_HUGE_SMALL), "it is smaller than a huge page");
    ck_assert_str_eq(placement_missing_text(SHMVIEW_HUGE_DISABLED),
                     "the system allows none for this backing");
    ck_assert_str_eq(placement_missing_text(SHMVIEW_HUGE_SHORT),
                     "the kernel has found no free ones");
    ck_assert_str_eq(placement_missing_text(SHMVIEW_HUGE_UNSUPPORTED),
                     "this kernel cannot populate memory");
    ck_assert_ptr_nonnull(placement_missing_text(0));
    ck_assert_ptr_nonnull(placement_missing_text(99));
}
END_TEST

UNIT_MAIN("placement_pool", UNIT_TEST(pool_with_room), UNIT_TEST(pool_without_room),
          UNIT_TEST(pool_that_another_process_has_taken),
          UNIT_TEST(pool_with_memory_that_is_being_freed), UNIT_TEST(reasons_as_clauses))
