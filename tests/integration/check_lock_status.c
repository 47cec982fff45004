/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a lock, for diagnostics: its holders and its waiters. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/parties.h"
#include "support/raw.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

static void read_on_cue(struct child *me, void *arg)
{
    OK(shmview_lock_shared(arg));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

static void expect_names(const struct shmview_lock_party *party, pid_t pid)
{
    ck_assert_uint_eq(party->pid, (unsigned)pid);
    ck_assert_uint_eq(party->reserved, 0);
    ck_assert_int_eq(strncmp(party->command, program_invocation_short_name, 15), 0);
    ck_assert_uint_lt(strnlen(party->command, sizeof party->command), sizeof party->command);
}

static void expect_printable(const char command[16])
{
    size_t n = strnlen(command, 16);
    ck_assert_uint_lt(n, 16);
    for (size_t i = 0; i < n; i++)
        ck_assert(command[i] >= ' ' && command[i] <= '~');
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

static int count(void *calls)
{
    ++*(int *)calls;
    return 0;
}

static void write_and_count(struct child *me, void *arg)
{
    int calls = 0;
    shmview_on_wait(count, &calls);
    OK(shmview_lock(arg));
    ck_assert_int_gt(calls, 0);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(arg));
}

/* The caller's function, which runs between two parks, does not begin a new wait. */
START_TEST(waiter_whose_function_runs)
{
    struct child writer;
    struct shmview_lock_party party;
    open_segment();
    OK(shmview_lock(seg));
    child_start(&writer, write_and_count, seg);
    AWAIT(parties_in_role(seg, SHMVIEW_WAITS, &party) == 1 &&
          await_now_ns() - party.since_ns > 250 * MS);
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

START_TEST(held_through_one_handle)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    ck_assert(!status_of(seg).is_held_here && !status_of(other).is_held_here);
    OK(shmview_lock(seg));
    ck_assert(status_of(seg).is_held_here && !status_of(other).is_held_here);
    OK(shmview_unlock(seg));
    OK(shmview_lock_shared(other));
    ck_assert(!status_of(seg).is_held_here && status_of(other).is_held_here);
    OK(shmview_unlock(other));
    ck_assert(!status_of(seg).is_held_here && !status_of(other).is_held_here);
    OK(shmview_detach(other));
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

/* --- Rubbish ------------------------------------------------------------- */

/* Overwrites everything in the control object except its identification. */
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
    unsigned char *name = memmem(c, 4096, program_invocation_short_name, 10);
    ck_assert_ptr_nonnull(name);
    *name = 033;
    OK(shmview_lock_query(other, &status, parties, 8));
    ck_assert_uint_eq(status.n_parties, 1);
    ck_assert_int_eq(parties[0].command[0], '?');
    memcpy(saved, c, 4096);
    for (int round = 0; round < 2000; round++) {
        for (size_t i = from; i < 4096; i++)
            c[i] = (unsigned char)(round < 3 ? 0xff >> round : rand_r(&seed) >> 8);
        OK(shmview_lock_query(other, &status, parties, 8));
        ck_assert_uint_le(status.n_parties, 3 * 3); /* three slots, three roles */
        for (size_t i = 0; i < status.n_parties && i < 8; i++)
            expect_printable(parties[i].command);
        OK(shmview_owner_died(seg, &death));
        expect_printable(death.command);
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
        SUITE_TEST(waiter_whose_function_runs),
        SUITE_TEST(dead_owner_is_shown),
        SUITE_TEST(forked_child_may_look),
        SUITE_TEST(held_through_one_handle),
        SUITE_TEST(no_lock),
        SUITE_TEST(rubbish_is_no_danger),
        SUITE_END,
    };
    return suite_main("lock_status", tests);
}
