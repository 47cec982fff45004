/* SPDX-License-Identifier: Apache-2.0 */
/* Readers and writers that die, fork, stand still or never let go. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

static void *shared_memory(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    return p;
}

static void read_on_cue(struct child *me, void *arg)
{
    OK(shmview_lock_shared(arg));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

static void kill_writer_inside(void)
{
    struct child writer;
    child_start(&writer, write_on_cue, seg);
    child_hear(&writer, 1);
    child_kill(&writer);
}

/* --- Death --------------------------------------------------------------- */

START_TEST(dead_reader_gives_its_share_back)
{
    struct child reader[2], writer;
    open_segment();
    for (int i = 0; i < 2; i++) {
        child_start(&reader[i], read_on_cue, seg);
        child_hear(&reader[i], 1);
    }
    child_start(&writer, write_on_cue, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    child_kill(&reader[0]);
    parties_await(seg, SHMVIEW_HOLDS_SHARED, 1);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS, NULL), 1); /* one reader lives */
    child_kill(&reader[1]);
    child_hear(&writer, 1); /* no OWNER_DIED: readers leave nothing half done */
    child_cue(&writer);
    child_wait(&writer);
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(dead_readers_before_anybody_waits)
{
    struct child reader;
    open_segment();
    for (int i = 0; i < 3; i++) {
        child_start(&reader, read_on_cue, seg);
        child_hear(&reader, 1);
        child_kill(&reader);
    }
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(who_shares_after_a_death_is_told_and_alone)
{
    struct shmview_death death;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock_shared(seg)); /* readers were here before, too */
    OK(shmview_unlock(seg));
    kill_writer_inside();
    ck_assert_int_eq(shmview_lock_shared(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_ne(death.pid, 0);
    REFUSED(shmview_trylock_shared(other), TIMED_OUT, ""); /* exclusively */
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_lock_shared(seg)); /* nested: reported once */
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_lock_shared(seg));
    OK(shmview_lock_shared(other)); /* repaired: shared again */
    OK(shmview_unlock(other));
    OK(shmview_unlock(seg));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(not_repaired_by_a_reader_is_told_again)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    kill_writer_inside();
    ck_assert_int_eq(shmview_lock_shared_until(seg, shmview_deadline(AWAIT_NS)),
                     SHMVIEW_OWNER_DIED);
    OK(shmview_unlock_not_repaired(seg));
    ck_assert_int_eq(shmview_trylock_shared(other), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock_not_repaired(other));
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    OK(shmview_trylock_shared(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

static void share_and_tell(struct child *me, void *arg)
{
    int r = shmview_lock_shared(arg);
    ck_assert_int_ge(r, 0);
    OK(shmview_unlock(arg));
    child_tell(me, r);
}

START_TEST(one_of_the_waiting_readers_is_told)
{
    struct child writer, reader[4];
    int told = 0;
    open_segment();
    child_start(&writer, write_on_cue, seg);
    child_hear(&writer, 1);
    for (int i = 0; i < 4; i++)
        child_start(&reader[i], share_and_tell, seg);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 4);
    child_kill(&writer);
    for (int i = 0; i < 4; i++) {
        told += child_hear_any(&reader[i]);
        child_wait(&reader[i]);
    }
    ck_assert_int_eq(told, SHMVIEW_OWNER_DIED);
    close_segment();
}
END_TEST

/* A writer that waits for readers holds the word, but is not inside yet. */
START_TEST(writer_that_dies_waiting_for_readers_leaves_nothing)
{
    struct child writer, reader;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock_shared(seg));
    child_start(&writer, write_on_cue, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    child_start(&reader, share_and_tell, seg);
    child_kill(&writer);
    child_hear(&reader, 0);
    child_wait(&reader);
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

/* --- Fork, and standing still -------------------------------------------- */

static void child_of_a_reader(struct child *me, void *arg)
{
    REFUSED(shmview_unlock(arg), NOT_OWNER, "");
    REFUSED(shmview_trylock(arg), TIMED_OUT, ""); /* its parent reads: no deadlock here */
    OK(shmview_lock_shared(arg));
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    OK(shmview_lock(arg)); /* until the parent lets go */
    OK(shmview_unlock(arg));
}

START_TEST(forked_child_has_no_part_in_the_share)
{
    struct child child;
    open_segment();
    struct shmview_segment *more = client_create(conn, "more", 10);
    OK(shmview_lock_shared(seg));
    OK(shmview_lock_shared(seg));
    OK(shmview_lock_shared(more));
    child_start(&child, child_of_a_reader, seg);
    child_hear(&child, 1);
    OK(shmview_unlock(more));
    OK(shmview_unlock(seg));
    parties_await(seg, SHMVIEW_WAITS, 1);
    OK(shmview_unlock(seg));
    child_wait(&child);
    OK(shmview_detach(more));
    close_segment();
}
END_TEST

static void share_and_leave(struct child *me, void *arg)
{
    (void)me;
    OK(shmview_lock_shared(arg));
}

START_TEST(end_of_a_child_is_not_the_end_of_its_parents_share)
{
    struct child child;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock_shared(seg));
    child_start(&child, share_and_leave, seg);
    child_wait(&child);
    parties_await(seg, SHMVIEW_HOLDS_SHARED, 1);
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(stopped_reader_is_not_dead)
{
    struct child reader;
    open_segment();
    child_start(&reader, read_on_cue, seg);
    child_hear(&reader, 1);
    child_stop(&reader);
    REFUSED(shmview_lock_until(seg, shmview_deadline(250 * MS)), TIMED_OUT, "");
    child_continue(&reader);
    child_cue(&reader);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    child_wait(&reader);
    close_segment();
}
END_TEST

/* --- Fairness ------------------------------------------------------------ */

struct hammer {
    struct shmview_segment *segment;
    int (*take)(struct shmview_segment *);
    _Atomic uint64_t turns;
    _Atomic int stop;
};

static void hammer(struct child *me, void *arg)
{
    struct hammer *h = arg;
    (void)me;
    while (!atomic_load(&h->stop)) {
        OK(h->take(h->segment));
        atomic_fetch_add(&h->turns, 1);
        OK(shmview_unlock(h->segment));
    }
}

#define HAMMERS 8

/* While n processes take it without pause in one way, each turn of ours in the
 * other comes, and theirs go on. */
static void get_in(int n, int (*theirs)(struct shmview_segment *),
                   int (*ours)(struct shmview_segment *, int64_t))
{
    struct child child[HAMMERS];
    struct hammer *h = shared_memory(sizeof *h);
    h->segment = seg;
    h->take = theirs;
    for (int i = 0; i < n; i++)
        child_start(&child[i], hammer, h);
    AWAIT(atomic_load(&h->turns) > 100);
    for (int i = 0; i < 50; i++) {
        uint64_t before = atomic_load(&h->turns);
        OK(ours(seg, shmview_deadline(AWAIT_NS)));
        OK(shmview_unlock(seg));
        AWAIT(atomic_load(&h->turns) > before);
    }
    atomic_store(&h->stop, 1);
    for (int i = 0; i < n; i++)
        child_wait(&child[i]);
    munmap(h, sizeof *h);
}

START_TEST(reader_gets_in_among_writers)
{
    open_segment();
    get_in(1, shmview_lock, shmview_lock_shared_until);
    get_in(3, shmview_lock, shmview_lock_shared_until);
    close_segment();
}
END_TEST

START_TEST(writer_gets_in_among_readers)
{
    open_segment();
    get_in(HAMMERS, shmview_lock_shared, shmview_lock_until);
    close_segment();
}
END_TEST

/* --- At any moment ------------------------------------------------------- */

/* Two words that are equal whenever no writer is inside, unless one died there. */
struct pair {
    _Atomic uint64_t a, b;
};

struct findings {
    _Atomic uint64_t torn_untold, torn_while_shared, errors;
    _Atomic uint64_t told, turns, shares;
};

struct job {
    struct shmview_segment *segment;
    struct findings *found;
};

static void write_pair(struct pair *p, unsigned i)
{
    atomic_store(&p->a, p->a + 1);
    if (i % 16 == 0)
        sched_yield();
    atomic_store(&p->b, p->a);
}

static void read_pair(const struct pair *p, unsigned i, struct findings *found)
{
    uint64_t a = atomic_load(&p->a);
    if (i % 16 == 0)
        sched_yield();
    atomic_fetch_add(&found->torn_while_shared, a != atomic_load(&p->b));
    atomic_fetch_add(&found->shares, 1);
}

static void read_and_write(struct child *me, void *arg)
{
    struct job *job = arg;
    struct pair *p = shmview_data(job->segment);
    (void)me;
    for (unsigned i = 0;; i++) {
        bool shared = i % 3;
        int r = shared ? shmview_lock_shared(job->segment) : shmview_lock(job->segment);
        bool torn = r >= 0 && p->a != p->b;
        atomic_fetch_add(&job->found->errors, r < 0);
        if (r == SHMVIEW_OWNER_DIED) {
            atomic_fetch_add(&job->found->told, 1);
            atomic_store(&p->b, p->a);
        } else if (torn) {
            atomic_fetch_add(&job->found->torn_untold, 1);
        }
        if (shared && r == 0)
            read_pair(p, i, job->found);
        else if (r >= 0)
            write_pair(p, i);
        atomic_fetch_add(&job->found->errors, shmview_unlock(job->segment) != 0);
        atomic_fetch_add(&job->found->turns, 1);
    }
}

#define WORKERS 4
#define KILLS   250

START_TEST(killed_at_any_moment)
{
    struct child worker[WORKERS];
    unsigned seed = 1;
    struct findings *found = shared_memory(sizeof *found);
    open_segment();
    struct job job = {seg, found};
    for (int i = 0; i < WORKERS; i++)
        child_start(&worker[i], read_and_write, &job);
    for (int kill = 0; kill < KILLS; kill++) {
        uint64_t turns = atomic_load(&found->turns);
        AWAIT(atomic_load(&found->turns) > turns + 3);
        nanosleep(&(struct timespec){.tv_nsec = rand_r(&seed) % MS}, NULL);
        struct child *victim = &worker[rand_r(&seed) % WORKERS];
        child_kill(victim);
        child_start(victim, read_and_write, &job);
    }
    for (int i = 0; i < WORKERS; i++)
        child_kill(&worker[i]);
    int r = shmview_lock(seg);
    ck_assert_int_ge(r, 0);
    OK(shmview_unlock(seg));
    ck_assert_uint_eq(found->errors, 0);
    ck_assert_uint_eq(found->torn_untold, 0);
    ck_assert_uint_eq(found->torn_while_shared, 0);
    ck_assert_uint_gt(found->told, 0); /* else it has tested nothing */
    ck_assert_uint_gt(found->shares, 0);
    munmap(found, sizeof *found);
    close_segment();
}
END_TEST

/* --- Without a daemon ---------------------------------------------------- */

static void share_without_daemon(struct child *me, void *arg)
{
    OK(shmview_lock_shared(arg)); /* its own slot, while there is a daemon */
    OK(shmview_unlock(arg));
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < 1000; i++) {
        OK(shmview_lock_shared(arg));
        OK(shmview_unlock(arg));
        OK(shmview_lock(arg));
        ++*(uint64_t *)shmview_data(arg);
        OK(shmview_unlock(arg));
    }
}

START_TEST(readers_go_on_without_the_daemon)
{
    struct child child[2];
    open_segment();
    for (int i = 0; i < 2; i++) {
        child_start(&child[i], share_without_daemon, seg);
        child_hear(&child[i], 1);
    }
    OK(shmview_lock_shared(seg)); /* held while the daemon dies */
    daemon_kill(&d);
    for (int i = 0; i < 2; i++)
        child_cue(&child[i]);
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    for (int i = 0; i < 2; i++)
        child_wait(&child[i]);
    ck_assert_uint_eq(*(uint64_t *)shmview_data(seg), 2000);
    daemon_restart(&d); /* sweeps what the dead one left */
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(dead_reader_gives_its_share_back),
        SUITE_TEST(dead_readers_before_anybody_waits),
        SUITE_TEST(who_shares_after_a_death_is_told_and_alone),
        SUITE_TEST(not_repaired_by_a_reader_is_told_again),
        SUITE_TEST(one_of_the_waiting_readers_is_told),
        SUITE_TEST(writer_that_dies_waiting_for_readers_leaves_nothing),
        SUITE_TEST(forked_child_has_no_part_in_the_share),
        SUITE_TEST(end_of_a_child_is_not_the_end_of_its_parents_share),
        SUITE_TEST(stopped_reader_is_not_dead),
        SUITE_TEST(reader_gets_in_among_writers),
        SUITE_TEST(writer_gets_in_among_readers),
        SUITE_TEST(killed_at_any_moment),
        SUITE_TEST(readers_go_on_without_the_daemon),
        SUITE_END,
    };
    return suite_main("shared_death", tests);
}
