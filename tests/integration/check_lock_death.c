/* SPDX-License-Identifier: Apache-2.0 */
/* Holders that die, at chosen moments and at any. */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#include "one_segment.h"

/* A child: locks, reports the result + 1, and waits to be killed. */
static void die_inside(struct child *me, void *arg)
{
    int r = shmview_lock(arg);
    ck_assert_int_ge(r, 0);
    child_tell(me, r + 1);
    child_pause(me);
}

static void die_outside(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    child_pause(me);
}

static void kill_one_inside(int outcome)
{
    struct child child;
    child_start(&child, die_inside, seg);
    child_hear(&child, outcome + 1);
    child_kill(&child);
}

START_TEST(next_owner_is_told_who_died)
{
    struct child child;
    struct shmview_death death;
    open_segment();
    child_start(&child, die_inside, seg);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    child_kill(&child);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)pid);
    ck_assert_uint_eq(death.slot, 1);
    ck_assert_int_eq(strncmp(death.command, program_invocation_short_name, 15), 0);
    OK(shmview_lock(seg)); /* nested: reported once */
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_lock(seg)); /* repaired: never again */
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void die_after_it_left_it_unrepaired(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    OK(shmview_unlock_not_repaired(arg));
    child_tell(me, 1);
    child_pause(me);
}

static int64_t n_attached(void)
{
    const struct shmview_stats *stats;
    const char *const names[] = {"s"};
    struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = names, .n_names = 1};
    OK(shmview_stats_get(conn, &o, &stats));
    int64_t n = stats->segments[0]->attachments;
    shmview_stats_free(stats);
    return n;
}

/* The daemon keeps its name, because its slot is the next client's. */
START_TEST(dead_one_that_left_it_unrepaired_is_named)
{
    struct child child;
    struct shmview_death death;
    open_segment();
    child_start(&child, die_after_it_left_it_unrepaired, seg);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    child_kill(&child);
    AWAIT(n_attached() == 1); /* the daemon has seen the death, while nobody else was inside */
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_int_gt(death.when_ns, 0);
    ck_assert_uint_eq(death.pid, (unsigned)pid);
    ck_assert_int_eq(strncmp(death.command, program_invocation_short_name, 15), 0);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(death_outside_is_nobodys_business)
{
    struct child child;
    open_segment();
    child_start(&child, die_outside, seg);
    child_hear(&child, 1);
    child_kill(&child);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(not_repaired_is_told_again)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(seg));
    OK(shmview_lock(seg));
    OK(shmview_unlock_not_repaired(seg)); /* within an inner hold it counts at the end */
    OK(shmview_unlock(seg));
    ck_assert_int_eq(shmview_lock(other), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock_not_repaired(other));
    ck_assert_int_eq(shmview_trylock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(repairer_dies_too)
{
    open_segment();
    kill_one_inside(0);
    kill_one_inside(SHMVIEW_OWNER_DIED);
    kill_one_inside(SHMVIEW_OWNER_DIED);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

static void wait_and_tell(struct child *me, void *arg)
{
    child_tell(me, 10);
    int r = shmview_lock(arg);
    ck_assert_int_ge(r, 0);
    OK(shmview_unlock(arg));
    child_tell(me, r);
}

START_TEST(waiters_get_it_when_the_holder_is_killed)
{
    struct child holder, waiter[3];
    int told = 0;
    open_segment();
    child_start(&holder, die_inside, seg);
    child_hear(&holder, 1);
    for (int i = 0; i < 3; i++) {
        child_start(&waiter[i], wait_and_tell, seg);
        child_hear(&waiter[i], 10);
    }
    child_kill(&holder);
    for (int i = 0; i < 3; i++) {
        told += child_hear_any(&waiter[i]);
        child_wait(&waiter[i]);
    }
    ck_assert_int_eq(told, SHMVIEW_OWNER_DIED); /* exactly one of them got the report */
    close_segment();
}
END_TEST

static void exec_inside(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    child_pause(me);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

START_TEST(exec_inside_is_death)
{
    struct child child;
    open_segment();
    child_start(&child, exec_inside, seg);
    child_hear(&child, 1);
    child_cue(&child);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    child_kill(&child);
    close_segment();
}
END_TEST

/* --- At any moment ------------------------------------------------------- */

/* Two words that are equal whenever nobody is inside, unless somebody died there. */
struct pair {
    _Atomic uint64_t a, b;
};

/* What the workers found, outside the segment. */
struct findings {
    _Atomic uint64_t torn_untold; /* the words differ without a report */
    _Atomic uint64_t told, torn_told, turns, errors;
};

#define WORKERS 3
#define KILLS   300

struct job {
    struct shmview_segment *segment;
    struct findings *found;
};

static void tear(struct child *me, void *arg)
{
    struct job *job = arg;
    struct pair *p = shmview_data(job->segment);
    (void)me;
    for (unsigned i = 0;; i++) {
        int r = i % 5 ? shmview_lock(job->segment)
                      : shmview_lock_until(job->segment, shmview_deadline(AWAIT_NS));
        if (r < 0) {
            atomic_fetch_add(&job->found->errors, 1);
            continue;
        }
        bool torn = p->a != p->b;
        if (r == SHMVIEW_OWNER_DIED) {
            atomic_fetch_add(&job->found->told, 1);
            atomic_fetch_add(&job->found->torn_told, torn);
            atomic_store(&p->b, p->a);
        } else if (torn) {
            atomic_fetch_add(&job->found->torn_untold, 1);
        }
        atomic_store(&p->a, p->a + 1);
        for (unsigned k = 0; k < i % 512; k++)
            atomic_signal_fence(memory_order_seq_cst);
        if (i % 16 == 0)
            sched_yield();
        atomic_store(&p->b, p->a);
        shmview_unlock(job->segment);
        atomic_fetch_add(&job->found->turns, 1);
    }
}

static void nap(unsigned ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

START_TEST(killed_at_any_moment)
{
    struct child worker[WORKERS];
    unsigned seed = 1;
    struct findings *found =
        mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(found, MAP_FAILED);
    open_segment();
    struct job job = {seg, found};
    for (int i = 0; i < WORKERS; i++)
        child_start(&worker[i], tear, &job);
    for (int kill = 0; kill < KILLS; kill++) {
        /* the others go on after each death, and so does a new one */
        uint64_t turns = atomic_load(&found->turns);
        AWAIT(atomic_load(&found->turns) > turns + 3);
        nap((unsigned)rand_r(&seed) % 1000000);
        struct child *victim = &worker[rand_r(&seed) % WORKERS];
        child_kill(victim);
        child_start(victim, tear, &job);
    }
    for (int i = 0; i < WORKERS; i++)
        child_kill(&worker[i]);
    int r = shmview_lock(seg);
    ck_assert_int_ge(r, 0);
    OK(shmview_unlock(seg));
    ck_assert_uint_eq(found->errors, 0);
    ck_assert_uint_eq(found->torn_untold, 0);
    ck_assert_uint_gt(found->told, 0); /* else it has tested nothing */
    ck_assert_uint_gt(found->torn_told, 0);
    munmap(found, sizeof *found);
    close_segment();
}
END_TEST

/* --- Without a daemon ---------------------------------------------------- */

static void take_turns_without_daemon(struct child *me, void *arg)
{
    OK(shmview_lock(arg)); /* its own slot, while there is a daemon */
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < 2000; i++) {
        OK(shmview_lock(arg));
        ++*(uint64_t *)shmview_data(arg);
        OK(shmview_unlock(arg));
    }
    OK(shmview_detach(arg));
}

START_TEST(lock_goes_on_without_the_daemon)
{
    struct child child[2];
    open_segment();
    for (int i = 0; i < 2; i++) {
        child_start(&child[i], take_turns_without_daemon, seg);
        child_hear(&child[i], 1);
    }
    OK(shmview_lock(seg)); /* held while the daemon dies */
    daemon_kill(&d);
    for (int i = 0; i < 2; i++)
        child_cue(&child[i]);
    ++*(uint64_t *)shmview_data(seg);
    OK(shmview_unlock(seg));
    for (int i = 0; i < 2; i++)
        child_wait(&child[i]);
    ck_assert_uint_eq(*(uint64_t *)shmview_data(seg), 4001);
    REFUSED(shmview_ping(conn), DISCONNECTED, d.socket);
    daemon_restart(&d); /* sweeps what the dead one left */
    close_segment();
}
END_TEST

static void hold_until_cued(struct child *me, void *arg)
{
    OK(shmview_lock(arg));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg)); /* nobody has taken it away */
}

START_TEST(daemon_that_leaves_disturbs_no_lock)
{
    struct child child;
    open_segment();
    child_start(&child, hold_until_cued, seg);
    child_hear(&child, 1);
    daemon_leave(&d);
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    child_cue(&child);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    child_wait(&child);
    daemon_restart(&d);
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(next_owner_is_told_who_died),
        SUITE_TEST(death_outside_is_nobodys_business),
        SUITE_TEST(dead_one_that_left_it_unrepaired_is_named),
        SUITE_TEST(not_repaired_is_told_again),
        SUITE_TEST(repairer_dies_too),
        SUITE_TEST(waiters_get_it_when_the_holder_is_killed),
        SUITE_TEST(exec_inside_is_death),
        SUITE_TEST(killed_at_any_moment),
        SUITE_TEST(lock_goes_on_without_the_daemon),
        SUITE_TEST(daemon_that_leaves_disturbs_no_lock),
        SUITE_END,
    };
    return suite_main("lock_death", tests);
}
