/* SPDX-License-Identifier: Apache-2.0 */
/* What shmview_owner_died() reports to the next owner about the owner that died inside. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "support/await.h"
#include "support/suite.h"

#include "one_segment.h"

START_TEST(death_is_told_in_full)
{
    const struct shmview_view_spec spec = {.name = "A", .format = "i"};
    struct child child;
    struct shmview_death death;
    open_segment();
    OK(shmview_define(seg, "l", &spec, 1));
    for (unsigned phase = 1; phase <= 2; phase++) {
        OK(shmview_lock(seg));
        OK(shmview_switch(seg, "l"));
        OK(shmview_unlock(seg));
        child_start(&child, write_on_cue, seg);
        child_hear(&child, 1);
        pid_t pid = child.pid;
        int64_t before = await_now_ns();
        child_kill(&child);
        ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
        OK(shmview_lock(seg));
        OK(shmview_owner_died(seg, &death));
        OK(shmview_unlock(seg));
        ck_assert_uint_eq(death.pid, (unsigned)pid);
        ck_assert_uint_eq(death.phase, phase);
        ck_assert_uint_eq(death.reserved, 0);
        ck_assert(death.when_ns >= before && death.when_ns <= await_now_ns());
        ck_assert_int_eq(strncmp(death.command, program_invocation_short_name, 15), 0);
        OK(shmview_unlock(seg));
        REFUSED(shmview_owner_died(seg, &death), NOT_OWNER, "");
    }
    OK(shmview_lock(seg));
    OK(shmview_owner_died(seg, &death)); /* nobody has */
    ck_assert(!death.pid && !death.slot && !death.phase && !death.when_ns && !death.command[0]);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(what_is_told_when_three_more_have_died)
{
    struct child child;
    struct shmview_death death;
    struct shmview_segment *other[4];
    open_segment();
    for (int i = 0; i < 4; i++)
        other[i] = client_attach(conn, "s", SHMVIEW_READ);
    child_start(&child, write_on_cue, seg);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    child_kill(&child);
    AWAIT(status_of(seg).owner_is_dead);
    int64_t after = await_now_ns();
    for (int i = 0; i < 4; i++)
        OK(shmview_detach(other[i])); /* the end of a slot is a death, however orderly */
    OK(shmview_ping(conn));           /* the daemon has heard of them */
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)pid);
    ck_assert_uint_eq(death.slot, 5);
    ck_assert(death.when_ns && death.when_ns <= after);
    ck_assert_int_eq(strncmp(death.command, program_invocation_short_name, 15), 0);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(what_is_told_when_the_slot_has_a_new_user)
{
    struct child child;
    struct shmview_death death;
    open_segment();
    child_start(&child, write_on_cue, seg);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    child_kill(&child);
    AWAIT(status_of(seg).owner_is_dead);
    struct shmview_segment *next = client_attach(conn, "s", SHMVIEW_READ);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    REFUSED(shmview_trylock(next), TIMED_OUT, ""); /* signs the slot with its first call */
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)pid);
    ck_assert_int_ne(death.when_ns, 0);
    ck_assert_int_eq(strncmp(death.command, program_invocation_short_name, 15), 0);
    OK(shmview_unlock_not_repaired(seg));
    for (int i = 0; i < 3; i++) {
        OK(shmview_detach(next));
        next = client_attach(conn, "s", SHMVIEW_READ);
    }
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)pid);
    ck_assert_int_eq(strncmp(death.command, program_invocation_short_name, 15), 0);
    OK(shmview_unlock(seg));
    OK(shmview_detach(next));
    close_segment();
}
END_TEST

START_TEST(what_is_told_of_an_owner_that_lived_on)
{
    struct shmview_death death;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(other));
    OK(shmview_unlock_not_repaired(other));
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)getpid()); /* as it wrote itself */
    ck_assert_int_eq(death.when_ns, 0);
    OK(shmview_unlock_not_repaired(seg));
    OK(shmview_detach(other));
    other = client_attach(conn, "s", SHMVIEW_WRITE);
    ck_assert_int_eq(shmview_trylock(other), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(other, &death));
    ck_assert(!death.pid && !death.when_ns && !death.command[0]); /* its slot has a new user */
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

static void *exit_inside(void *arg)
{
    return shmview_lock(arg) ? "lock failed" : NULL;
}

START_TEST(thread_that_exits_inside_is_named_by_its_process)
{
    struct shmview_death death;
    pthread_t thread;
    void *failed;
    open_segment();
    ck_assert_int_eq(pthread_create(&thread, NULL, exit_inside, seg), 0);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)getpid());
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void switch_and_die(struct child *me, void *arg)
{
    const struct shmview_view_spec spec = {.name = "A", .format = "i"};
    OK(shmview_define(arg, "l", &spec, 1));
    OK(shmview_lock(arg));
    OK(shmview_switch(arg, "l"));
    child_tell(me, 1);
    child_pause(me);
}

/* It does not block: a daemon that is gone, or slow, must make no difference. */
START_TEST(death_is_told_without_the_daemon)
{
    struct child child;
    struct shmview_death death;
    open_segment();
    child_start(&child, switch_and_die, seg);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    child_kill(&child);
    AWAIT(status_of(seg).owner_is_dead);
    daemon_kill(&d);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)pid);
    ck_assert_uint_eq(death.phase, 1); /* of a layout that this handle has not heard of */
    OK(shmview_unlock(seg));
    daemon_restart(&d);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(death_is_told_in_full),
        SUITE_TEST(what_is_told_when_three_more_have_died),
        SUITE_TEST(what_is_told_when_the_slot_has_a_new_user),
        SUITE_TEST(what_is_told_of_an_owner_that_lived_on),
        SUITE_TEST(thread_that_exits_inside_is_named_by_its_process),
        SUITE_TEST(death_is_told_without_the_daemon),
        SUITE_END,
    };
    return suite_main("owner_died", tests);
}
