/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing memory of huge pages: of the pool of hugetlb, whose objects and mappings the kernel
 * treats differently from others. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include <shmview/many.h>
#include <shmview/placement.h>

#include "freezing.h"

#define HUGE ((uint64_t)2 << 20)
#define SIZE (2 * HUGE + 1) /* three huge pages */

static unsigned long free_pages(void)
{
    unsigned long n = 0;
    FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "re");
    if (f && fscanf(f, "%lu", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

static struct shmview_segment *make_huge(void)
{
    const struct shmview_placement wanted = {.struct_bytes = sizeof wanted,
                                             .huge = SHMVIEW_HUGE_REQUIRED};
    struct shmview_create_options options = sealed;
    struct shmview_segment *s;
    struct shmview_placed got;
    options.placement = &wanted;
    OK(shmview_create(conn, "w", SIZE, &options, &s));
    shmview_placement_get(s, &got);
    ck_assert_uint_eq(got.huge_by, SHMVIEW_HUGE_BY_HUGETLB);
    memset(shmview_data(s), 'a', SIZE);
    return s;
}

static void write_there(struct child *me, void *segment)
{
    (void)me;
    signal(SIGBUS, SIG_DFL); /* a sanitizer would handle it */
    signal(SIGSEGV, SIG_DFL);
    ((volatile char *)shmview_data(segment))[SIZE - 1] = 'c';
}

/* The memory is frozen, and stays so under the next daemon. */
static void expect_frozen(struct shmview_segment *s)
{
    struct child child;
    struct shmview_segment *none, *other;
    const char *data = shmview_data(s);
    ck_assert_int_eq(shmview_is_frozen(s), 1);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    child_start(&child, write_there, s);
    child_wait_signal(&child, SIGSEGV);
    ck_assert_int_eq(mprotect(shmview_data(s), HUGE, PROT_READ | PROT_WRITE), -1);
    ck_assert_int_eq(errno, EACCES);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
        REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "'w' is frozen");
        other = client_attach(conn, "w", SHMVIEW_PEEK);
        ck_assert_int_eq(shmview_is_frozen(other), 1);
        ck_assert_int_eq(((char *)shmview_data(other))[SIZE - 1], 'a');
        OK(shmview_detach(other));
        daemon_kill(&d);
        daemon_restart(&d);
    }
    ck_assert(data[0] == 'a' && memcmp(data, data + 1, SIZE - 1) == 0);
}

START_TEST(of_the_pool)
{
    struct child child;
    unsigned long n = free_pages();
    if (n < 4) {
        printf("skipped: vm.nr_hugepages leaves %lu free huge pages, 4 are needed\n", n);
        return;
    }
    begin();
    struct shmview_segment *s = make_huge();
    child_start(&child, heir, s);
    child_hear(&child, 1);
    BUSY(shmview_freeze(s, 0), child.pid, "without an attachment");
    ck_assert_int_eq(shmview_access(s), SHMVIEW_WRITE);
    ck_assert_uint_eq((uintptr_t)shmview_data(s) % HUGE, 0);
    memset(shmview_data(s), 'a', SIZE);
    child_kill(&child);
    OK(shmview_freeze(s, 0));
    expect_frozen(s);
    drop(s, "w");
    shmview_trim();
    AWAIT(free_pages() == n);
    end();
}
END_TEST

START_TEST(of_the_pool_by_a_producer_that_continues)
{
    struct shmview_segment *none;
    unsigned long n = free_pages();
    if (n < 4) {
        printf("skipped: vm.nr_hugepages leaves %lu free huge pages, 4 are needed\n", n);
        return;
    }
    begin();
    struct shmview_segment *s = make_huge();
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_FUTURE);
    REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "nobody else can");
    memset(shmview_data(s), 'b', SIZE);
    memset(shmview_data(s), 'a', SIZE);
    OK(shmview_freeze(s, 0));
    expect_frozen(s);
    drop(s, "w");
    shmview_trim();
    AWAIT(free_pages() == n);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(of_the_pool),
        SUITE_TEST(of_the_pool_by_a_producer_that_continues),
        SUITE_END,
    };
    return suite_main("freeze_huge", tests);
}
