/* SPDX-License-Identifier: Apache-2.0 */
/* What the lock tells people: who holds it, who waits, who died. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/raw.h"
#include "support/suite.h"

#define MS 1000000

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static void open_segment(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "s", 4096);
}

static void close_segment(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void write_on_cue(struct child *me, void *arg)
{
    ck_assert_int_ge(shmview_lock(arg), 0);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

static void read_on_cue(struct child *me, void *arg)
{
    OK(shmview_lock_shared(arg));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

static struct shmview_lock_status status_of(struct shmview_segment *segment)
{
    struct shmview_lock_status status = {.reserved = 77};
    OK(shmview_lock_query(segment, &status, NULL, 0));
    ck_assert_int_eq(status.reserved, 0);
    return status;
}

static void expect_names(const struct shmview_lock_party *party, pid_t pid)
{
    ck_assert_uint_eq(party->pid, (unsigned)pid);
    ck_assert_uint_eq(party->reserved, 0);
    ck_assert_int_eq(strncmp(party->command, program_invocation_short_name, 15), 0);
    ck_assert_uint_lt(strnlen(party->command, sizeof party->command), sizeof party->command);
}

/* --- Who holds, who waits ------------------------------------------------ */

START_TEST(nobody)
{
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    struct shmview_lock_status status = status_of(seg);
    ck_assert(!status.is_held && !status.owner_is_dead && !status.is_dirty);
    ck_assert_uint_eq(status.n_parties, 0);
    OK(shmview_lock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    status = status_of(reader);
    ck_assert(!status.is_held && !status.owner_is_dead && !status.is_dirty);
    ck_assert_uint_eq(status.n_parties, 0);
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(holder_and_waiters)
{
    struct child holder, writer, reader;
    struct shmview_lock_party holds, waits, shares;
    open_segment();
    child_start(&holder, write_on_cue, seg);
    child_hear(&holder, 1);
    int64_t before = await_now_ns();
    child_start(&writer, write_on_cue, seg);
    child_start(&reader, read_on_cue, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 1);
    struct shmview_lock_status status = status_of(seg);
    ck_assert(status.is_held && !status.owner_is_dead && status.is_dirty);
    ck_assert_uint_eq(status.n_parties, 3);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS, &holds), 1);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS, &waits), 1);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS_TO_SHARE, &shares), 1);
    int64_t now = await_now_ns();
    expect_names(&holds, holder.pid);
    expect_names(&waits, writer.pid);
    expect_names(&shares, reader.pid);
    ck_assert(holds.slot != waits.slot && waits.slot != shares.slot && holds.slot != shares.slot);
    /* nobody looks at a clock on the way in: the first who waits does */
    ck_assert(holds.since_ns >= before && holds.since_ns <= now);
    ck_assert(waits.since_ns >= holds.since_ns || shares.since_ns >= holds.since_ns);
    ck_assert(waits.since_ns >= before && waits.since_ns <= now);
    ck_assert(shares.since_ns >= before && shares.since_ns <= now);
    child_cue(&holder);
    child_cue(&writer);
    child_cue(&reader);
    child_wait(&holder);
    child_wait(&writer);
    child_wait(&reader);
    ck_assert_uint_eq(status_of(seg).n_parties, 0);
    close_segment();
}
END_TEST

START_TEST(readers_are_shown)
{
    struct child reader[3], writer;
    struct shmview_lock_party party;
    open_segment();
    for (int i = 0; i < 3; i++) {
        child_start(&reader[i], read_on_cue, seg);
        child_hear(&reader[i], 1);
        ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS_SHARED, &party), (unsigned)i + 1);
        ck_assert_int_ge(party.since_ns, 0);
    }
    struct shmview_lock_status status = status_of(seg);
    ck_assert(!status.is_held && !status.owner_is_dead && !status.is_dirty);
    child_start(&writer, write_on_cue, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS_SHARED, NULL), 3);
    child_kill(&reader[1]);
    parties_await(seg, SHMVIEW_HOLDS_SHARED, 2);
    child_kill(&writer);
    parties_await(seg, SHMVIEW_WAITS, 0);
    for (int i = 0; i < 3; i += 2) {
        child_cue(&reader[i]);
        child_wait(&reader[i]);
    }
    ck_assert_uint_eq(status_of(seg).n_parties, 0);
    close_segment();
}
END_TEST

START_TEST(as_many_as_there_is_room_for)
{
    struct child reader[3];
    struct shmview_lock_party parties[4];
    struct shmview_lock_status status;
    open_segment();
    for (int i = 0; i < 3; i++) {
        child_start(&reader[i], read_on_cue, seg);
        child_hear(&reader[i], 1);
    }
    for (size_t room = 0; room < 4; room++) {
        memset(parties, 0x55, sizeof parties);
        OK(shmview_lock_query(seg, &status, parties, room));
        ck_assert_uint_eq(status.n_parties, 3);
        for (size_t i = 0; i < 4; i++)
            ck_assert_uint_eq(parties[i].role,
                              i < room && i < 3 ? SHMVIEW_HOLDS_SHARED : 0x55555555);
    }
    for (int i = 0; i < 3; i++) {
        child_cue(&reader[i]);
        child_wait(&reader[i]);
    }
    close_segment();
}
END_TEST

/* However long it waits, and however its waiting goes on inside. */
START_TEST(reader_that_waits_long_stays_a_reader)
{
    struct child reader;
    struct shmview_lock_party first, party;
    open_segment();
    OK(shmview_lock(seg));
    child_start(&reader, read_on_cue, seg);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 1);
    parties_in_role(seg, SHMVIEW_WAITS_TO_SHARE, &first);
    while (await_now_ns() < first.since_ns + 700 * MS) {
        ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS, NULL), 0);
        ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS_TO_SHARE, &party), 1);
        ck_assert_int_eq(party.since_ns, first.since_ns);
        await_again(INT64_MAX);
    }
    OK(shmview_unlock(seg));
    child_hear(&reader, 1);
    child_cue(&reader);
    child_wait(&reader);
    close_segment();
}
END_TEST

static void write_in_slices(struct child *me, void *arg)
{
    int r;
    do
        r = shmview_lock_until(arg, shmview_deadline(2 * MS));
    while (r == -SHMVIEW_ERR_TIMED_OUT);
    OK(r);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

/* Who gives up and tries again at once, as interpreters do, has waited all the while. */
START_TEST(waiter_in_slices)
{
    struct child writer;
    struct shmview_lock_party party;
    open_segment();
    OK(shmview_lock(seg));
    child_start(&writer, write_in_slices, seg);
    AWAIT(parties_in_role(seg, SHMVIEW_WAITS, &party) == 1 &&
          await_now_ns() - party.since_ns > 50 * MS);
    OK(shmview_unlock(seg));
    child_hear(&writer, 1);
    child_cue(&writer);
    child_wait(&writer);
    close_segment();
}
END_TEST

START_TEST(dead_owner_is_shown)
{
    struct child holder;
    open_segment();
    child_start(&holder, write_on_cue, seg);
    child_hear(&holder, 1);
    ck_assert(!status_of(seg).owner_is_dead);
    child_kill(&holder);
    AWAIT(status_of(seg).owner_is_dead);
    ck_assert(status_of(seg).is_held && status_of(seg).is_dirty);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    struct shmview_lock_status status = status_of(seg);
    ck_assert(status.is_held && !status.owner_is_dead && status.is_dirty);
    OK(shmview_unlock_not_repaired(seg));
    status = status_of(seg);
    ck_assert(!status.is_held && !status.owner_is_dead && status.is_dirty);
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(seg));
    ck_assert(!status_of(seg).is_dirty);
    close_segment();
}
END_TEST

static void look(struct child *me, void *arg)
{
    struct shmview_lock_party party;
    (void)me;
    ck_assert_uint_eq(parties_in_role(arg, SHMVIEW_HOLDS, &party), 1);
    ck_assert_uint_eq(party.pid, (unsigned)getppid());
}

START_TEST(forked_child_may_look)
{
    struct child child;
    open_segment();
    OK(shmview_lock(seg));
    child_start(&child, look, seg);
    child_wait(&child);
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(no_lock)
{
    struct shmview_lock_status status = {.n_parties = 77};
    open_segment();
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 10, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    REFUSED(shmview_lock_query(bare, &status, NULL, 0), NO_LOCK, "'bare'");
    REFUSED(shmview_lock_query(peek, &status, NULL, 0), NO_LOCK, "'s'");
    ck_assert_uint_eq(status.n_parties, 77);
    OK(shmview_detach(bare));
    OK(shmview_detach(peek));
    close_segment();
}
END_TEST

/* --- Who died ------------------------------------------------------------ */

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
    for (int i = 0; i < 4; i++)
        OK(shmview_detach(other[i])); /* the end of a slot is a death, however orderly */
    OK(shmview_ping(conn));           /* the daemon has heard of them */
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert_uint_eq(death.pid, (unsigned)pid); /* as it wrote itself */
    ck_assert_uint_eq(death.slot, 5);
    ck_assert_int_eq(death.when_ns, 0);
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
    ck_assert_uint_eq(death.pid, (unsigned)pid); /* the daemon's word */
    ck_assert_int_ne(death.when_ns, 0);
    ck_assert_str_eq(death.command, ""); /* its own is written over */
    OK(shmview_unlock_not_repaired(seg));
    for (int i = 0; i < 3; i++) {
        OK(shmview_detach(next));
        next = client_attach(conn, "s", SHMVIEW_READ);
    }
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(seg, &death));
    ck_assert(!death.pid && !death.when_ns && !death.command[0]);
    OK(shmview_unlock(seg));
    OK(shmview_detach(next));
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

/* --- Rubbish ------------------------------------------------------------- */

/* Everything in the control object but what says which object it is. */
START_TEST(rubbish_is_no_danger)
{
    struct shmview_lock_party parties[8];
    struct shmview_lock_status status;
    struct shmview_death death;
    unsigned seed = 1;
    struct raw raw;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'s','access':'read'}"));
    unsigned char *c = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, raw.fds[1], 0);
    ck_assert_ptr_ne(c, MAP_FAILED);
    const size_t from = offsetof(struct shmview_control, lock);
    unsigned char *saved = malloc(4096);
    ck_assert_ptr_nonnull(saved);
    OK(shmview_lock(seg));
    OK(shmview_unlock_not_repaired(seg));
    ck_assert_int_eq(shmview_lock(seg), SHMVIEW_OWNER_DIED);
    memcpy(saved, c, 4096);
    for (int round = 0; round < 2000; round++) {
        for (size_t i = from; i < 4096; i++)
            c[i] = (unsigned char)(round < 3 ? 0xff >> round : rand_r(&seed) >> 8);
        OK(shmview_lock_query(other, &status, parties, 8));
        ck_assert_uint_le(status.n_parties, 3 * 3); /* three slots, three roles */
        for (size_t i = 0; i < status.n_parties && i < 8; i++)
            ck_assert_uint_lt(strnlen(parties[i].command, 16), 16);
        OK(shmview_owner_died(seg, &death));
        ck_assert_uint_lt(strnlen(death.command, 16), 16);
    }
    memcpy(c + from, saved + from, 4096 - from);
    OK(shmview_unlock(seg));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    free(saved);
    munmap(c, 4096);
    raw_close(&raw);
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(nobody),
        SUITE_TEST(holder_and_waiters),
        SUITE_TEST(readers_are_shown),
        SUITE_TEST(as_many_as_there_is_room_for),
        SUITE_TEST(reader_that_waits_long_stays_a_reader),
        SUITE_TEST(waiter_in_slices),
        SUITE_TEST(dead_owner_is_shown),
        SUITE_TEST(forked_child_may_look),
        SUITE_TEST(no_lock),
        SUITE_TEST(death_is_told_in_full),
        SUITE_TEST(what_is_told_when_three_more_have_died),
        SUITE_TEST(what_is_told_when_the_slot_has_a_new_user),
        SUITE_TEST(thread_that_exits_inside_is_named_by_its_process),
        SUITE_TEST(death_is_told_without_the_daemon),
        SUITE_TEST(rubbish_is_no_danger),
        SUITE_END,
    };
    return suite_main("lock_status", tests);
}
