/* SPDX-License-Identifier: Apache-2.0 */
/* Phases between processes: waiters, deaths in the middle, views of the dead. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

#define MS 1000000

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static void define(struct shmview_segment *segment, const char *layout)
{
    const struct shmview_view_spec spec = {.name = "A", .format = "int32"};
    OK(shmview_define(segment, layout, &spec, 1));
}

static void open_segment(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
    define(seg, "even");
    define(seg, "odd");
}

static void close_segment(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void switch_to(struct shmview_segment *segment, const char *layout)
{
    OK(shmview_lock(segment));
    OK(shmview_switch(segment, layout));
    OK(shmview_unlock(segment));
}

/* --- Waiting ------------------------------------------------------------- */

static void wait_for_odd(struct child *me, void *arg)
{
    struct shmview_phase phase;
    OK(shmview_lock_shared(arg)); /* its own slot */
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    OK(shmview_wait_phase(arg, "odd", 0, SHMVIEW_FOREVER, &phase));
    ck_assert_str_eq(phase.name, "odd");
    child_tell(me, 10 + (int)phase.generation);
}

static void wait_for_any(struct child *me, void *arg)
{
    struct shmview_phase phase;
    OK(shmview_phase_get(arg, &phase));
    child_tell(me, 1);
    OK(shmview_wait_phase(arg, NULL, phase.generation, shmview_deadline(AWAIT_NS), &phase));
    child_tell(me, 10 + (int)phase.generation);
}

static void wait_for_change(struct child *me, void *arg)
{
    uint32_t change = shmview_change(arg);
    OK(shmview_lock_shared(arg));
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    OK(shmview_wait_change(arg, change, SHMVIEW_FOREVER, &change));
    child_tell(me, 10 + (int)change);
}

static void start(struct child *child, void (*run)(struct child *me, void *arg))
{
    child_start(child, run, seg);
    child_hear(child, 1);
    parties_await_sleep(child->pid);
}

static void hear_and_wait(struct child *child, int what)
{
    child_hear(child, what);
    child_wait(child);
}

START_TEST(switch_wakes_all_who_wait)
{
    struct child odd[2], any[2], change;
    int fd;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_change_fd(other, &fd));
    for (int i = 0; i < 2; i++) {
        start(&odd[i], wait_for_odd);
        start(&any[i], wait_for_any);
    }
    start(&change, wait_for_change);
    switch_to(seg, "even");
    await_readable(fd);
    for (int i = 0; i < 2; i++)
        hear_and_wait(&any[i], 11);
    hear_and_wait(&change, 11);
    switch_to(seg, "even");
    switch_to(seg, "odd");
    for (int i = 0; i < 2; i++)
        hear_and_wait(&odd[i], 13);
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(waiting_for_a_phase_costs_no_processor)
{
    struct child child;
    open_segment();
    start(&child, wait_for_odd);
    long before = process_cpu_ms(child.pid);
    int64_t until = await_now_ns() + 300 * MS;
    while (await_again(until))
        continue;
    ck_assert_int_le(process_cpu_ms(child.pid) - before, 30);
    switch_to(seg, "odd");
    hear_and_wait(&child, 11);
    close_segment();
}
END_TEST

#define ROUNDS 1000

/* Makes every other phase. */
static void make_odd_phases(struct child *me, void *arg)
{
    struct shmview_phase phase = {0};
    (void)me;
    while (phase.generation + 1 < 2 * ROUNDS) {
        switch_to(arg, "odd");
        OK(shmview_wait_phase(arg, "even", phase.generation, shmview_deadline(AWAIT_NS), &phase));
    }
}

START_TEST(two_processes_take_turns)
{
    struct shmview_phase phase = {0};
    struct child child;
    open_segment();
    child_start(&child, make_odd_phases, seg);
    for (unsigned i = 0; i < ROUNDS; i++) {
        OK(shmview_wait_phase(seg, "odd", phase.generation, shmview_deadline(AWAIT_NS), &phase));
        ck_assert_uint_eq(phase.generation, 2 * i + 1);
        switch_to(seg, "even");
        phase.generation++;
    }
    child_wait(&child);
    close_segment();
}
END_TEST

static void open_stale(struct child *me, void *arg)
{
    struct shmview_view v;
    OK(shmview_view_open(arg, "odd", "A", &v));
    ck_assert_int_eq(shmview_view_is_stale(&v), 0);
    child_tell(me, 1);
    child_pause(me);
    ck_assert_int_eq(shmview_view_is_stale(&v), 1);
    REFUSED(shmview_view_lock(&v, SHMVIEW_EXCLUSIVE, SHMVIEW_FOREVER), STALE, "");
    REFUSED(shmview_view_lock(&v, SHMVIEW_SHARED, SHMVIEW_FOREVER), STALE, "");
    define(arg, "third");
    switch_to(arg, "third");
}

START_TEST(forked_child_follows_phases)
{
    struct shmview_phase phase;
    struct child child;
    open_segment();
    switch_to(seg, "odd");
    child_start(&child, open_stale, seg);
    child_hear(&child, 1);
    switch_to(seg, "even");
    child_cue(&child);
    child_wait(&child);
    OK(shmview_phase_get(seg, &phase));
    ck_assert_uint_eq(phase.generation, 3);
    ck_assert_str_eq(phase.name, "third");
    close_segment();
}
END_TEST

/* --- Death --------------------------------------------------------------- */

static void die_inside(struct child *me, void *arg)
{
    ck_assert_int_ge(shmview_lock(arg), 0);
    child_tell(me, 1);
    child_pause(me);
}

static void switch_and_die_inside(struct child *me, void *arg)
{
    ck_assert_int_ge(shmview_lock(arg), 0);
    OK(shmview_switch(arg, "odd"));
    child_tell(me, 1);
    child_pause(me);
}

static pid_t kill_one(void (*run)(struct child *me, void *arg))
{
    struct child child;
    child_start(&child, run, seg);
    child_hear(&child, 1);
    pid_t pid = child.pid;
    child_kill(&child);
    return pid;
}

START_TEST(stale_view_passes_the_death_on)
{
    static const int modes[] = {SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED};
    struct shmview_death death;
    struct shmview_view v;
    open_segment();
    for (int i = 0; i < 4; i++) {
        switch_to(seg, "even");
        OK(shmview_view_open(seg, "even", "A", &v));
        if (i < 2)
            switch_to(seg, "odd");
        pid_t pid = kill_one(i < 2 ? die_inside : switch_and_die_inside);
        REFUSED(shmview_view_lock(&v, modes[i % 2], SHMVIEW_FOREVER), STALE, "");
        REFUSED(shmview_view_lock(&v, modes[i / 2], SHMVIEW_FOREVER), STALE, "");
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
        ck_assert_int_eq(i % 2 ? shmview_lock(seg) : shmview_lock_shared(seg), SHMVIEW_OWNER_DIED);
        OK(shmview_owner_died(seg, &death));
        ck_assert_uint_eq(death.pid, (unsigned)pid);
        OK(shmview_unlock(seg));
        OK(shmview_lock(seg)); /* told once */
        OK(shmview_unlock(seg));
    }
    close_segment();
}
END_TEST

START_TEST(fresh_view_is_told_of_the_death)
{
    static const int modes[] = {SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED};
    struct shmview_death death;
    struct shmview_view v;
    open_segment();
    switch_to(seg, "even");
    OK(shmview_view_open(seg, "even", "A", &v));
    for (int i = 0; i < 2; i++) {
        kill_one(die_inside);
        ck_assert_int_eq(shmview_view_lock(&v, modes[i], SHMVIEW_FOREVER), SHMVIEW_OWNER_DIED);
        OK(shmview_owner_died(seg, &death));
        ck_assert_uint_eq(death.phase, 1);
        OK(shmview_unlock(seg));
        OK(shmview_view_lock(&v, modes[i], SHMVIEW_FOREVER));
        OK(shmview_unlock(seg));
    }
    close_segment();
}
END_TEST

/* What the switching process notes around each switch. */
struct notes {
    _Atomic uint32_t before, after;
};

static void switch_for_ever(struct child *me, void *arg)
{
    struct notes *notes = shmview_data(arg);
    struct shmview_phase phase;
    OK(shmview_phase_get(arg, &phase));
    child_tell(me, 1);
    for (;;) {
        if (shmview_lock(arg))
            _exit(1); /* no check here: it writes, and may be killed at that */
        uint32_t next = phase.generation + 1;
        atomic_store(&notes->before, next);
        if (shmview_switch(arg, next % 2 ? "odd" : "even"))
            _exit(1);
        atomic_store(&notes->after, next);
        if (shmview_unlock(arg) || shmview_phase_get(arg, &phase))
            _exit(1);
    }
}

#define KILLS 200

/* The old phase or the new one, never anything else, and what it was is told. */
START_TEST(killed_around_a_switch)
{
    struct notes *notes;
    struct child child;
    struct shmview_phase phase;
    struct shmview_death death;
    uint32_t last = 0;
    unsigned seed = 1, told = 0;
    open_segment();
    notes = shmview_data(seg);
    for (int i = 0; i < KILLS; i++) {
        child_start(&child, switch_for_ever, seg);
        child_hear(&child, 1);
        nanosleep(&(struct timespec){.tv_nsec = rand_r(&seed) % (MS / 2)}, NULL);
        pid_t pid = child.pid;
        child_kill(&child);
        int r = shmview_lock(seg);
        ck_assert_int_ge(r, 0);
        OK(shmview_phase_get(seg, &phase));
        ck_assert_uint_ge(phase.generation, last);
        last = phase.generation;
        if (last)
            ck_assert_str_eq(phase.name, last % 2 ? "odd" : "even");
        uint32_t before = atomic_load(&notes->before), after = atomic_load(&notes->after);
        ck_assert(last == before || (last == after && before == after + 1));
        if (r == SHMVIEW_OWNER_DIED) {
            told++;
            OK(shmview_owner_died(seg, &death));
            ck_assert_uint_eq(death.pid, (unsigned)pid);
            ck_assert_uint_eq(death.phase, last);
            atomic_store(&notes->before, last); /* repaired */
            atomic_store(&notes->after, last);
        } else {
            ck_assert(last == after && before == after);
        }
        OK(shmview_unlock(seg));
    }
    ck_assert_uint_gt(told, 0); /* else it has tested nothing */
    ck_assert_uint_gt(last, KILLS);
    close_segment();
}
END_TEST

START_TEST(dead_waiters_are_no_hindrance)
{
    struct child waiter[3];
    open_segment();
    for (int i = 0; i < 3; i++)
        start(&waiter[i], wait_for_odd);
    child_kill(&waiter[0]);
    child_kill(&waiter[2]);
    switch_to(seg, "odd");
    hear_and_wait(&waiter[1], 11);
    close_segment();
}
END_TEST

/* --- Without the daemon --------------------------------------------------- */

static void expect_read(struct shmview_segment *segment, uint32_t generation, uint32_t layout,
                        const char *name)
{
    struct shmview_phase phase;
    OK(shmview_phase_read(segment, &phase));
    ck_assert_uint_eq(phase.generation, generation);
    ck_assert_uint_eq(phase.layout, layout);
    ck_assert_str_eq(phase.name, name);
}

/* What asked the daemon, which is stopped, would come to the test's time limit. */
START_TEST(the_phase_of_a_death_asks_nobody)
{
    struct shmview_death death;
    struct shmview_phase phase = {.generation = 77};
    open_segment();
    expect_read(seg, 0, UINT32_MAX, "");
    struct shmview_segment *late = client_attach(conn, "s", SHMVIEW_WRITE);
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    define(late, "late");
    define(seg, "last");
    ck_assert_int_eq(kill(d.pid, SIGSTOP), 0);
    OK(shmview_lock(late));
    OK(shmview_switch(late, "last"));
    OK(shmview_unlock_not_repaired(late));
    ck_assert_int_eq(shmview_lock(late), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(late, &death));
    ck_assert_uint_eq(death.phase, 1);
    expect_read(late, 1, 3, ""); /* which others have declared since */
    expect_read(seg, 1, 3, "last");
    OK(shmview_switch(late, "late"));
    expect_read(late, 2, 2, "late");
    expect_read(seg, 2, 2, "");
    OK(shmview_phase_get(late, &phase)); /* has no need to ask */
    ck_assert_str_eq(phase.name, "late");
    OK(shmview_switch(late, "odd"));
    expect_read(late, 3, 1, "odd");
    expect_read(seg, 3, 1, "odd");
    OK(shmview_switch(late, "last"));
    OK(shmview_unlock(late));
    REFUSED(shmview_phase_read(peek, &phase), NO_LOCK, "peek");
    ck_assert_uint_eq(phase.generation, 2);
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
    OK(shmview_phase_get(late, &phase));
    ck_assert_str_eq(phase.name, "last");
    expect_read(late, 4, 3, "last"); /* it has asked */
    OK(shmview_detach(late));
    OK(shmview_detach(peek));
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(switch_wakes_all_who_wait),
        SUITE_TEST(waiting_for_a_phase_costs_no_processor),
        SUITE_TEST(two_processes_take_turns),
        SUITE_TEST(forked_child_follows_phases),
        SUITE_TEST(stale_view_passes_the_death_on),
        SUITE_TEST(fresh_view_is_told_of_the_death),
        SUITE_TEST(killed_around_a_switch),
        SUITE_TEST(dead_waiters_are_no_hindrance),
        SUITE_TEST(the_phase_of_a_death_asks_nobody),
        SUITE_END,
    };
    return suite_main("phase_death", tests);
}
