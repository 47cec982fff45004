/* SPDX-License-Identifier: Apache-2.0 */
/* Checks hurry.c: a thread gets a short slice, and then again the one that it had. */
#include "unit/unit.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "common/base/util.h"
#include "daemon/base/hurry.h"

static struct schedule schedule_of(pid_t thread)
{
    struct schedule s = {0};
    ck_assert_int_eq(syscall(SYS_sched_getattr, thread, &s, sizeof s, 0), 0);
    return s;
}

static void schedule_self(const struct schedule *schedule)
{
    ck_assert_int_eq(syscall(SYS_sched_setattr, 0, schedule, 0), 0);
}

/* Whether the kernel grants slices. Earlier ones ignore them, and emulators have no such call. */
static bool has_slices(void)
{
    struct schedule usual = {0}, s;
    syscall(SYS_sched_getattr, 0, &usual, sizeof usual, 0);
    s = usual;
    s.runtime_ns += 1000000;
    syscall(SYS_sched_setattr, 0, &s, 0);
    s.runtime_ns = 0;
    syscall(SYS_sched_getattr, 0, &s, sizeof s, 0);
    syscall(SYS_sched_setattr, 0, &usual, 0);
    return s.runtime_ns > usual.runtime_ns;
}

START_TEST(a_thread_gets_a_short_slice_and_then_its_own)
{
    static const uint64_t usual_ns[] = {0, 5000000};
    for (size_t i = 0; i < ARRAY_LEN(usual_ns); i++) {
        struct schedule before = schedule_of(0);
        struct hurry self;
        before.nice++;
        before.runtime_ns = usual_ns[i];
        schedule_self(&before);
        before = schedule_of(0);
        hurry_init(&self);
        hurry(&self, true);
        struct schedule during = schedule_of(0);
        ck_assert_uint_lt(during.runtime_ns, before.runtime_ns);
        ck_assert_uint_gt(during.runtime_ns, 0);
        ck_assert_int_eq(during.nice, before.nice);
        ck_assert_uint_eq(during.policy, before.policy);
        hurry(&self, false);
        struct schedule after = schedule_of(0);
        ck_assert_mem_eq(&after, &before, sizeof before);
    }
}
END_TEST

static void *hurry_other(void *arg)
{
    hurry(arg, true);
    return NULL;
}

START_TEST(another_thread_may_call_it)
{
    struct hurry self;
    pthread_t thread;
    hurry_init(&self);
    struct schedule before = schedule_of(0);
    ck_assert_int_eq(pthread_create(&thread, NULL, hurry_other, &self), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_lt(schedule_of(0).runtime_ns, before.runtime_ns);
    hurry(&self, false);
    ck_assert_uint_eq(schedule_of(0).runtime_ns, before.runtime_ns);
}
END_TEST

/* runtime_ns is no slice there, but the time that the kernel has promised. */
START_TEST(a_thread_with_deadlines_keeps_its_runtime)
{
    struct schedule deadlines = {.size = sizeof deadlines,
                                 .policy = 6, /* SCHED_DEADLINE, which older headers lack */
                                 .runtime_ns = 10000000,
                                 .deadline_ns = 100000000,
                                 .period_ns = 100000000};
    const struct schedule usual = schedule_of(0);
    struct hurry self;
    if (syscall(SYS_sched_setattr, 0, &deadlines, 0) < 0)
        return; /* this process may not have them */
    hurry_init(&self);
    hurry(&self, true);
    struct schedule during = schedule_of(0);
    schedule_self(&usual); /* with deadlines it starts no threads, as sanitizers do */
    ck_assert_uint_eq(during.runtime_ns, deadlines.runtime_ns);
}
END_TEST

/* Without slices there is no difference to see. */
int main(void)
{
    const struct unit_test tests[] = {
        UNIT_TEST(a_thread_with_deadlines_keeps_its_runtime),
        UNIT_TEST(a_thread_gets_a_short_slice_and_then_its_own),
        UNIT_TEST(another_thread_may_call_it),
    };
    return unit_main("hurry", tests, has_slices() ? ARRAY_LEN(tests) : 0);
}
