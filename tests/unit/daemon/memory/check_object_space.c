/* SPDX-License-Identifier: Apache-2.0 */
/* Checks object.c on a machine whose free memory does not change: a creation settles its promise to
 * the byte and leaves nothing when it fails, and an object is believed only if it is the same. */
#include "unit/unit.h"

#include <signal.h>
#include <sys/resource.h>

#include "common/base/linux.h"
#include "daemon/memory/object.h"
#include "daemon/memory/placement.h"
#include "daemon/memory/sealed.h"
#include "unit/faults.h"

#define MIB     ((uint64_t)1 << 20)
#define MEMINFO "/proc/meminfo"
#define PLENTY  "MemTotal: 60000000 kB\nMemAvailable: 50000000 kB\n"
#define LITTLE  "MemTotal: 60000000 kB\nMemAvailable: 1000000 kB\n"

static void begin(void)
{
    faults_file(MEMINFO, PLENTY);
    sealed_limit(10);
}

/* The free memory, which /dev/shm does not limit for sealed objects. */
static uint64_t free_now(void)
{
    return object_space(OBJECT_SEALED).free;
}

static struct object of_kind(enum object_kind kind, struct placement *placement)
{
    struct object o = {.kind = kind, .placement = placement};
    snprintf(o.name, sizeof o.name, "data");
    return o;
}

/* Creates an object of that many bytes, and returns the descriptor or -errno. */
static int create(struct object *o, uint64_t bytes)
{
    struct object_space space;
    uint64_t promise = placement_memory(o->placement, bytes);
    ck_assert_int_eq(promise ? object_promise(o->kind, promise, &space) : 0, 0);
    return object_create_promised(o, bytes, bytes, NULL);
}

/* --- Creations that fail ------------------------------------------------- */

static const enum object_kind kinds[] = {OBJECT_FILE, OBJECT_SEALED, OBJECT_SEALED_FULLY};

static void assert_fails(struct object o, uint64_t bytes, int expected)
{
    uint64_t before = free_now();
    ck_assert_int_eq(create(&o, bytes), expected);
    faults_end();
    faults_file(MEMINFO, PLENTY);
    ck_assert_uint_eq(free_now(), before);
    ck_assert_uint_eq(unit_objects(), 0);
    ck_assert_uint_eq(sealed_room().free, 10);
}

START_TEST(there_is_no_file)
{
    begin();
    faults_begin_call("openat", 1, ENFILE, false);
    assert_fails(of_kind(OBJECT_FILE, NULL), 5 * MIB, -ENFILE);
    faults_begin_call("fstat", 1, EIO, false);
    assert_fails(of_kind(OBJECT_FILE, NULL), 5 * MIB, -EIO);
}
END_TEST

START_TEST(there_is_no_descriptor)
{
    struct rlimit limit, none;
    begin();
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(next);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    faults_file(MEMINFO, NULL); /* it could not be opened: the kernel decides */
    none = (struct rlimit){(rlim_t)next, limit.rlim_max};
    for (int i = 0; i < 3; i++) {
        struct object o = of_kind(kinds[i], NULL);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        int r = create(&o, MIB);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert_int_eq(r, -EMFILE);
    }
    ck_assert_uint_eq(unit_objects(), 0);
    ck_assert_uint_eq(sealed_room().free, 10);
}
END_TEST

START_TEST(first_step_fails)
{
    begin();
    for (int i = 0; i < 3; i++) {
        faults_begin_call("posix_fallocate", 1, ENOSPC, false);
        assert_fails(of_kind(kinds[i], NULL), 5 * MIB, -ENOSPC);
    }
    struct object zeroed = of_kind(OBJECT_FILE, NULL);
    zeroed.zeroed = true;
    faults_begin_call("pwrite", 2, ENOSPC, false);
    assert_fails(zeroed, MIB, -ENOSPC);
}
END_TEST

START_TEST(later_step_fails)
{
    begin();
    for (int i = 0; i < 2; i++) {
        faults_begin_call("posix_fallocate", 2, EIO, false);
        assert_fails(of_kind(kinds[i], NULL), 70 * MIB, -EIO);
    }
}
END_TEST

static void take_memory(void)
{
    faults_file(MEMINFO, LITTLE);
}

/* Other programs have taken the memory since the promise: the kernel would end a process for it. */
START_TEST(memory_is_taken_in_between)
{
    begin();
    for (int i = 0; i < 2; i++) {
        faults_hook("posix_fallocate", take_memory);
        assert_fails(of_kind(kinds[i], NULL), 70 * MIB, -ENOSPC);
    }
}
END_TEST

START_TEST(placement_fails)
{
    struct placement numa = {.numa = SHMVIEW_NUMA_LOCAL};
    begin();
    for (int i = 0; i < 3; i++) {
        faults_begin_call("mmap", 1, ENOMEM, false);
        assert_fails(of_kind(kinds[i], &numa), 5 * MIB, -ENOMEM);
    }
    for (int i = 0; i < 3; i++) {
        struct placement huge = {.huge = SHMVIEW_HUGE_REQUIRED};
        assert_fails(of_kind(kinds[i], &huge), MIB, -EOPNOTSUPP);
        ck_assert_uint_eq(huge.missing, SHMVIEW_HUGE_SMALL);
    }
}
END_TEST

/* A file must have its size before it can be mapped. */
START_TEST(file_may_not_grow)
{
    struct placement numa = {.numa = SHMVIEW_NUMA_LOCAL};
    struct rlimit before, limit;
    begin();
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_fails(of_kind(OBJECT_FILE, &numa), 5 * MIB, -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
}
END_TEST

/* No machine has a pool of 1 PiB. It promises nothing, because the pool is no free memory. */
START_TEST(pool_has_too_little)
{
    struct placement pool = {.huge = SHMVIEW_HUGE_WANTED, .by = SHMVIEW_HUGE_BY_HUGETLB};
    struct object o = of_kind(OBJECT_SEALED, &pool);
    begin();
    uint64_t before = free_now();
    ck_assert_int_lt(create(&o, (uint64_t)1 << 50), 0);
    ck_assert_uint_eq(free_now(), before);
    ck_assert_uint_eq(sealed_room().free, 10);
}
END_TEST

/* --- Creations that succeed ---------------------------------------------- */

START_TEST(promises_end_with_the_creation)
{
    begin();
    for (int i = 0; i < 3; i++)
        for (int placed = 0; placed < 2; placed++) {
            struct placement numa = {.numa = SHMVIEW_NUMA_LOCAL};
            struct object o = of_kind(kinds[i], placed ? &numa : NULL);
            struct stat st;
            uint64_t before = free_now();
            int fd = create(&o, 70 * MIB);
            ck_assert_int_ge(fd, 0);
            ck_assert_int_eq(fstat(fd, &st), 0);
            ck_assert_uint_eq((uint64_t)st.st_size, 70 * MIB);
            ck_assert_uint_ge((uint64_t)st.st_blocks * 512, 70 * MIB);
            ck_assert_uint_eq(free_now(), before);
            close(fd);
            object_remove(&o);
        }
}
END_TEST

START_TEST(promises_count_until_they_are_settled)
{
    struct object_space space;
    begin();
    uint64_t before = free_now();
    ck_assert_int_eq(object_promise(OBJECT_SEALED, 5 * MIB, &space), 0);
    ck_assert_int_eq(object_promise_now(OBJECT_SEALED, 3 * MIB), 0);
    ck_assert_uint_eq(free_now(), before - 8 * MIB);
    ck_assert_int_eq(object_promise(OBJECT_SEALED, before, &space), -ENOSPC);
    ck_assert_uint_eq(space.free, before - 8 * MIB);
    ck_assert_int_eq(object_promise_now(OBJECT_SEALED, before), -EAGAIN);
    object_unpromise(OBJECT_SEALED, 8 * MIB);
    ck_assert_uint_eq(free_now(), before);
    ck_assert_int_eq(object_promise(OBJECT_SEALED, before, &space), 0);
    ck_assert_uint_eq(free_now(), 0);
    object_unpromise(OBJECT_SEALED, before);
}
END_TEST

/* --- The same object ----------------------------------------------------- */

/* Asserts that nobody finds the object o, and that removing it removes nothing. */
static void assert_is_another(struct object o)
{
    const object_name moved = "moved";
    struct stat st;
    ck_assert_int_eq(object_open(&o, O_RDONLY), -ESTALE);
    ck_assert_int_eq(object_stat(&o, &st), -ESTALE);
    ck_assert_int_eq(object_rename(&o, moved), -ESTALE);
    object_remove(&o);
    ck_assert_str_eq(o.name, "");
    ck_assert_uint_eq(unit_objects(), 1);
}

START_TEST(another_file)
{
    struct object o = of_kind(OBJECT_FILE, NULL), other;
    struct statx stx;
    begin();
    close(create(&o, 100));
    other = o;
    other.inode++;
    assert_is_another(other);
    ck_assert_int_eq(object_statx(&other, STATX_SIZE, &stx), -ESTALE);
    other = o;
    other.device++;
    assert_is_another(other);
    other = o;
    other.own = true;
    other.maker = geteuid() + 1;
    assert_is_another(other);
    other.maker = geteuid();
    int fd = object_open(&other, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(object_statx(&o, STATX_SIZE, &stx), 0);
    ck_assert_uint_eq(stx.stx_size, 100);
    struct object gone = o;
    object_remove(&o);
    ck_assert_int_eq(object_statx(&gone, STATX_SIZE, &stx), -ENOENT);
}
END_TEST

START_TEST(seals_of_each_kind)
{
    const int mask = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const int seals[] = {0, F_SEAL_SHRINK | F_SEAL_GROW, mask};
    begin();
    for (int i = 0; i < 3; i++) {
        struct object o = of_kind(kinds[i], NULL);
        close(create(&o, 100));
        ck_assert_int_eq(object_seals(&o) & mask, seals[i]); /* the kernel can have another one */
        struct object gone = o;
        object_remove(&o);
        ck_assert_int_eq(object_seals(&gone), i ? -ENOENT : 0);
        ck_assert_int_eq(object_open(&gone, O_RDWR), -ENOENT);
    }
}
END_TEST

/* A sealed object whose size is unknown is freed at once. */
START_TEST(size_is_unknown_at_the_removal)
{
    struct object o = of_kind(OBJECT_SEALED, NULL);
    begin();
    close(create(&o, 2 * MIB));
    faults_begin_call("fstat", 1, EIO, true);
    object_remove(&o);
    ck_assert(faults_end());
    ck_assert_str_eq(o.name, "");
    ck_assert_uint_eq(sealed_room().free, 10);
}
END_TEST

START_TEST(files_without_limit)
{
    faults_begin_call("statvfs", 1, EIO, false);
    ck_assert_uint_eq(object_count_free(), UINT64_MAX);
    ck_assert(faults_end());
    ck_assert_uint_gt(object_count_free(), 0);
}
END_TEST

UNIT_MAIN("object_space", UNIT_TEST(there_is_no_file), UNIT_TEST(there_is_no_descriptor),
          UNIT_TEST(first_step_fails), UNIT_TEST(later_step_fails),
          UNIT_TEST(memory_is_taken_in_between), UNIT_TEST(placement_fails),
          UNIT_TEST(file_may_not_grow), UNIT_TEST(pool_has_too_little),
          UNIT_TEST(promises_end_with_the_creation),
          UNIT_TEST(promises_count_until_they_are_settled), UNIT_TEST(another_file),
          UNIT_TEST(seals_of_each_kind), UNIT_TEST(size_is_unknown_at_the_removal),
          UNIT_TEST(files_without_limit))
