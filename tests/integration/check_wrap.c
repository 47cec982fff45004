/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign memory as a segment: views work on it; calls that need a lock or a daemon fail with an
 * error. No daemon runs here. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

static _Alignas(16) int numbers[24];
static int n_released;

static void count_release(void *arg)
{
    ck_assert_ptr_eq(arg, numbers);
    n_released++;
}

static struct shmview_segment *wrap_numbers(unsigned flags)
{
    struct shmview_segment *s;
    for (int i = 0; i < 24; i++)
        numbers[i] = i;
    n_released = 0;
    OK(shmview_wrap(numbers, sizeof numbers, flags, count_release, numbers, &s));
    return s;
}

static void detach(struct shmview_segment *s)
{
    ck_assert_int_eq(n_released, 0);
    OK(shmview_detach(s));
    ck_assert_int_eq(n_released, 1);
}

START_TEST(facts_of_foreign_memory)
{
    struct shmview_segment *s = wrap_numbers(0);
    ck_assert_str_eq(shmview_name(s), "");
    ck_assert_uint_eq(shmview_size(s), sizeof numbers);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_WRITE);
    ck_assert_ptr_eq(shmview_data(s), numbers);
    detach(s);
    s = wrap_numbers(SHMVIEW_WRAP_READ_ONLY);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    detach(s);
    OK(shmview_wrap(numbers, sizeof numbers, 0, NULL, NULL, &s)); /* nothing to release */
    OK(shmview_detach(s));
}
END_TEST

START_TEST(wrap_refuses)
{
    struct shmview_segment *untouched = (void *)numbers, *s = untouched;
    n_released = 0;
    REFUSED(shmview_wrap(NULL, 1, 0, count_release, numbers, &s), INVALID, "1 bytes at no address");
    REFUSED(shmview_wrap(numbers, 4, 2, count_release, numbers, &s), INVALID, "flags 0x2");
    REFUSED(shmview_wrap(numbers, UINT64_MAX, 0, count_release, numbers, &s), INVALID,
            "18446744073709551615 bytes");
    REFUSED(shmview_wrap(numbers, (uint64_t)1 << 63, 0, count_release, numbers, &s), INVALID,
            "9223372036854775808 bytes");
    REFUSED(shmview_wrap((void *)(UINTPTR_MAX - 9), 11, 0, count_release, numbers, &s), INVALID,
            "11 bytes");
    ck_assert_ptr_eq(s, untouched);
    ck_assert_int_eq(n_released, 0);
}
END_TEST

START_TEST(wrap_nothing)
{
    struct shmview_segment *s;
    struct shmview_view v;
    struct shmview_buffer b;
    OK(shmview_wrap(NULL, 0, 0, NULL, NULL, &s));
    ck_assert_uint_eq(shmview_size(s), 0);
    OK(shmview_view_cast(s, "Zd", 0, SHMVIEW_REST, &v));
    ck_assert_uint_eq(v.nbytes, 0);
    ck_assert_int_eq(v.shape[0], 0);
    OK(shmview_buffer_get(&v, SHMVIEW_BUFFER_INDIRECT, &b));
    ck_assert_uint_eq(b.len, 0);
    shmview_buffer_release(&b);
    REFUSED(shmview_view_cast(s, "B", 0, 1, &v), BOUNDS, "0 bytes");
    OK(shmview_detach(s));
}
END_TEST

/* --- Views --------------------------------------------------------------- */

static void look_at_columns(struct shmview_segment *s)
{
    static const int64_t shape[] = {4, 6}, strides[] = {4, 16};
    struct shmview_view v, same;
    struct shmview_view_spec spec = {.format = "i", .ndim = 2, .shape = shape, .strides = strides};
    OK(shmview_view_make(s, &spec, &v));
    ck_assert_ptr_eq(v.data, numbers);
    ck_assert_ptr_eq(v.segment, s);
    ck_assert_int_eq(SHMVIEW_AT2(int, &v, 3, 5), 23);
    SHMVIEW_AT2(int, &v, 3, 5) = -23;
    ck_assert_int_eq(numbers[23], -23);
    OK(shmview_view_transpose(&v, NULL, &same));
    OK(shmview_view_recast(&same, "T{i:a:i:b:}", &same)); /* a format of the segment's own */
    ck_assert_int_eq(same.shape[1], 2);
    ck_assert(!shmview_view_is_stale(&v));
}

START_TEST(views_see_the_memory)
{
    struct shmview_segment *s = wrap_numbers(0);
    look_at_columns(s);
    detach(s);
}
END_TEST

START_TEST(read_only_memory_has_read_only_views)
{
    struct shmview_view v;
    struct shmview_segment *s = wrap_numbers(SHMVIEW_WRAP_READ_ONLY);
    OK(shmview_view_cast(s, "i", 0, SHMVIEW_REST, &v));
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    detach(s);
}
END_TEST

/* Both the memory and the offset must be aligned. */
START_TEST(memory_that_is_not_aligned)
{
    struct shmview_segment *s;
    struct shmview_view v;
    OK(shmview_wrap((char *)numbers + 2, 20, 0, NULL, NULL, &s));
    OK(shmview_view_cast(s, "h", 2, SHMVIEW_REST, &v));
    ck_assert_int_eq(v.shape[0], 9);
    REFUSED(shmview_view_cast(s, "i", 0, 4, &v), MISALIGNED, "no multiple of 4");
    OK(shmview_view_cast(s, "<i", 0, 4, &v));
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_UNALIGNED);
    OK(shmview_view_cast(s, "<i", 2, 4, &v));
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_UNALIGNED);
    OK(shmview_detach(s));
}
END_TEST

/* Here the elements are aligned, but neither the memory nor the offset is. */
START_TEST(two_misalignments_do_not_cancel_out)
{
    struct shmview_segment *s;
    struct shmview_view v, part, turned;
    double x = 0;
    static _Alignas(8) unsigned char memory[64];
    OK(shmview_wrap(memory + 4, 60, 0, NULL, NULL, &s));
    OK(shmview_view_cast(s, "<d", 4, 48, &v));
    ck_assert_uint_eq(v.flags & SHMVIEW_VIEW_UNALIGNED, SHMVIEW_VIEW_UNALIGNED);
    OK(shmview_view_slice(&v, 0, 1, 3, 1, &part));
    OK(shmview_view_transpose(&v, NULL, &turned));
    OK(shmview_set_double(&part, (const ptrdiff_t[]){0}, 2.5));
    OK(shmview_get_double(&turned, (const ptrdiff_t[]){1}, &x));
    ck_assert(x == 2.5);
    OK(shmview_detach(s));
}
END_TEST

/* --- What foreign memory has not ----------------------------------------- */

START_TEST(foreign_memory_has_no_lock)
{
    static int (*const calls[])(struct shmview_segment *) = {
        shmview_lock,   shmview_lock_shared,         shmview_trylock, shmview_trylock_shared,
        shmview_unlock, shmview_unlock_not_repaired, shmview_notify,  shmview_notify_one,
    };
    struct shmview_lock_status status;
    struct shmview_death death;
    struct shmview_phase phase;
    struct shmview_view v;
    uint64_t version;
    uint32_t change;
    int fd;
    struct shmview_segment *s = wrap_numbers(0);
    OK(shmview_view_cast(s, "i", 0, SHMVIEW_REST, &v));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        REFUSED(calls[i](s), NO_LOCK, "foreign memory has no lock");
    REFUSED(shmview_lock_until(s, 0), NO_LOCK, "foreign");
    REFUSED(shmview_lock_shared_until(s, SHMVIEW_FOREVER), NO_LOCK, "foreign");
    REFUSED(shmview_owner_died(s, &death), NO_LOCK, "foreign");
    REFUSED(shmview_lock_query(s, &status, NULL, 0), NO_LOCK, "foreign");
    REFUSED(shmview_read_begin(s, &version), NO_LOCK, "foreign");
    ck_assert_int_eq(shmview_read_validate(s, 0), 0);
    ck_assert_uint_eq(shmview_change(s), 0);
    REFUSED(shmview_wait_change(s, 0, 0, &change), NO_LOCK, "foreign");
    REFUSED(shmview_change_fd(s, &fd), NO_LOCK, "foreign");
    REFUSED(shmview_phase_get(s, &phase), NO_LOCK, "foreign");
    REFUSED(shmview_switch(s, "l"), NO_LOCK, "foreign");
    REFUSED(shmview_wait_phase(s, "l", 0, 0, &phase), NO_LOCK, "foreign");
    REFUSED(shmview_view_lock(&v, SHMVIEW_EXCLUSIVE, 0), NO_LOCK, "foreign");
    REFUSED(shmview_view_lock(&v, SHMVIEW_SHARED, 0), NO_LOCK, "foreign");
    SHMVIEW_LOCKED(s, result); /* a scope that has nothing to give back */
    ck_assert_int_eq(result, -SHMVIEW_ERR_NO_LOCK);
    detach(s);
}
END_TEST

START_TEST(foreign_memory_has_no_layouts)
{
    struct shmview_view v = {.ndim = 77};
    const struct shmview_view_spec spec = {.name = "v", .format = "i"};
    struct shmview_segment *s = wrap_numbers(0);
    REFUSED(shmview_define(s, "l", &spec, 1), INVALID, "foreign memory");
    REFUSED(shmview_define(s, "l", NULL, 0), INVALID, "foreign memory");
    REFUSED(shmview_view_open(s, "l", "v", &v), INVALID, "foreign memory");
    ck_assert_uint_eq(v.ndim, 77);
    detach(s);
    s = wrap_numbers(SHMVIEW_WRAP_READ_ONLY);
    REFUSED(shmview_define(s, "l", &spec, 1), INVALID, "foreign memory");
    detach(s);
}
END_TEST

/* --- Fork ---------------------------------------------------------------- */

static void use_in_child(struct child *me, void *arg)
{
    struct shmview_view v;
    struct shmview_buffer b;
    (void)me;
    look_at_columns(arg);
    REFUSED(shmview_lock(arg), NO_LOCK, "foreign");
    REFUSED(shmview_view_open(arg, "l", "v", &v), INVALID, "foreign");
    OK(shmview_view_cast(arg, "i", 0, SHMVIEW_REST, &v));
    OK(shmview_buffer_get(&v, 0, &b));
    REFUSED(shmview_detach(arg), BUSY, "1 buffers of 'foreign memory'");
    shmview_buffer_release(&b);
    detach(arg); /* the child's copy of the memory is the child's to release */
}

/* The process may not have used the library in any other way before. */
START_TEST(a_child_has_its_own_copy)
{
    struct child child;
    struct shmview_segment *s = wrap_numbers(0);
    child_start(&child, use_in_child, s);
    child_wait(&child);
    ck_assert_int_eq(n_released, 0);
    ck_assert_int_eq(numbers[23], 23);
    look_at_columns(s);
    detach(s);
}
END_TEST

/* --- Release ------------------------------------------------------------- */

static void unmap(void *arg)
{
    ck_assert_int_eq(munmap(arg, 4096), 0);
    n_released++;
}

/* What has nothing to release it stays where it is. */
START_TEST(detach_does_not_unmap)
{
    struct shmview_segment *s;
    static _Alignas(4096) unsigned char page[4096];
    OK(shmview_wrap(page, sizeof page, 0, NULL, NULL, &s));
    OK(shmview_detach(s));
    *(volatile unsigned char *)page = 1;
}
END_TEST

/* The end of one may be the end of another: release may use the library. */
static void detach_other(void *arg)
{
    OK(shmview_detach(arg));
    n_released++;
}

START_TEST(release_may_detach_others)
{
    struct shmview_segment *inner, *outer;
    n_released = 0;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    OK(shmview_wrap(page, 4096, 0, unmap, page, &inner));
    OK(shmview_wrap(shmview_data(inner), 100, 0, detach_other, inner, &outer));
    OK(shmview_detach(outer));
    ck_assert_int_eq(n_released, 2);
}
END_TEST

static struct shmview_segment *of_the_handlers;

static void use_the_library(void)
{
    struct shmview_view v;
    OK(shmview_view_cast(of_the_handlers, "int32", 0, SHMVIEW_REST, &v));
}

static void leave_at_once(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
}

/* Handlers of pthread_atfork() may use the library, although its own ones keep a fork out of its
 * calls. */
START_TEST(handlers_of_a_fork_may_use_it)
{
    struct child child;
    ck_assert_int_eq(pthread_atfork(use_the_library, use_the_library, use_the_library), 0);
    of_the_handlers = wrap_numbers(0);
    child_start(&child, leave_at_once, NULL);
    child_wait(&child);
    detach(of_the_handlers);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(facts_of_foreign_memory),
        SUITE_TEST(wrap_refuses),
        SUITE_TEST(wrap_nothing),
        SUITE_TEST(views_see_the_memory),
        SUITE_TEST(read_only_memory_has_read_only_views),
        SUITE_TEST(memory_that_is_not_aligned),
        SUITE_TEST(two_misalignments_do_not_cancel_out),
        SUITE_TEST(foreign_memory_has_no_lock),
        SUITE_TEST(foreign_memory_has_no_layouts),
        SUITE_TEST(a_child_has_its_own_copy),
        SUITE_TEST(detach_does_not_unmap),
        SUITE_TEST(release_may_detach_others),
        SUITE_TEST(handlers_of_a_fork_may_use_it),
        SUITE_END,
    };
    return suite_main("wrap", tests);
}
