/* SPDX-License-Identifier: Apache-2.0 */
/* The shared lock between living processes. */
#include <stdio.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/suite.h"

#include "one_segment.h"

#define MS 1000000

/* A child: locks, reports 1, waits for the cue, unlocks, and reports 2. */
static void hold(struct child *me, struct shmview_segment *segment, int (*take)(void *))
{
    OK(take(segment));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(segment));
    child_tell(me, 2);
}

static int take_shared(void *segment)
{
    return shmview_lock_shared(segment);
}

static int take_exclusively(void *segment)
{
    return shmview_lock(segment);
}

static void hold_shared(struct child *me, void *arg)
{
    hold(me, arg, take_shared);
}

static void hold_exclusively(struct child *me, void *arg)
{
    hold(me, arg, take_exclusively);
}

/* --- Who excludes whom --------------------------------------------------- */

#define READERS 6

START_TEST(many_readers_at_once)
{
    struct child reader[READERS];
    open_segment();
    for (int i = 0; i < READERS; i++)
        child_start(&reader[i], hold_shared, seg);
    for (int i = 0; i < READERS; i++)
        child_hear(&reader[i], 1);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS_SHARED, NULL), READERS);
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    for (int i = 0; i < READERS; i++) {
        REFUSED(shmview_trylock(seg), TIMED_OUT, "'s' is held by another thread or process");
        child_cue(&reader[i]);
        child_hear(&reader[i], 2);
        child_wait(&reader[i]);
    }
    OK(shmview_trylock(seg)); /* with the last of them, and not before */
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

START_TEST(writer_excludes_readers)
{
    struct child reader;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(seg));
    REFUSED(shmview_trylock_shared(other), TIMED_OUT, "'s' is held by another thread or process");
    child_start(&reader, hold_shared, seg);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 1);
    OK(shmview_unlock(seg));
    child_hear(&reader, 1);
    child_cue(&reader);
    child_hear(&reader, 2);
    child_wait(&reader);
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(readers_exclude_a_writer)
{
    struct child reader[2], writer;
    open_segment();
    for (int i = 0; i < 2; i++) {
        child_start(&reader[i], hold_shared, seg);
        child_hear(&reader[i], 1);
    }
    child_start(&writer, hold_exclusively, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    child_cue(&reader[0]);
    child_hear(&reader[0], 2);
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS, NULL), 1);
    child_cue(&reader[1]);
    child_hear(&writer, 1);
    REFUSED(shmview_trylock_shared(seg), TIMED_OUT, "");
    child_cue(&writer);
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    for (int i = 0; i < 2; i++)
        child_wait(&reader[i]);
    child_wait(&writer);
    close_segment();
}
END_TEST

START_TEST(readers_wait_for_each_writer_in_turn)
{
    struct child writer[2], reader[3];
    open_segment();
    OK(shmview_lock(seg));
    for (int i = 0; i < 2; i++)
        child_start(&writer[i], hold_exclusively, seg);
    for (int i = 0; i < 3; i++)
        child_start(&reader[i], hold_shared, seg);
    parties_await(seg, SHMVIEW_WAITS, 2);
    parties_await(seg, SHMVIEW_WAITS_TO_SHARE, 3);
    for (int i = 0; i < 2; i++)
        child_cue(&writer[i]);
    for (int i = 0; i < 3; i++)
        child_cue(&reader[i]);
    OK(shmview_unlock(seg));
    for (int i = 0; i < 2; i++)
        child_wait(&writer[i]);
    for (int i = 0; i < 3; i++)
        child_wait(&reader[i]);
    OK(shmview_trylock(seg));
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

/* --- Nesting ------------------------------------------------------------- */

START_TEST(nested_share_never_waits_behind_a_writer)
{
    struct child writer;
    open_segment();
    OK(shmview_lock_shared(seg));
    child_start(&writer, hold_exclusively, seg);
    parties_await(seg, SHMVIEW_WAITS, 1);
    OK(shmview_lock_shared(seg));
    OK(shmview_trylock_shared(seg));
    OK(shmview_lock_shared_until(seg, 0));
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_WAITS, NULL), 1);
        OK(shmview_unlock(seg));
    }
    child_hear(&writer, 1);
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    child_cue(&writer);
    child_wait(&writer);
    close_segment();
}
END_TEST

START_TEST(shared_to_exclusive_is_a_deadlock)
{
    open_segment();
    struct shmview_segment *more = client_create(conn, "more", 10);
    for (int depth = 1; depth <= 2; depth++) {
        OK(shmview_lock_shared(seg));
        REFUSED(shmview_lock(seg), DEADLOCK, "holds the lock of 's' shared");
        REFUSED(shmview_trylock(seg), DEADLOCK, "would wait for itself");
        REFUSED(shmview_lock_until(seg, shmview_deadline(MS)), DEADLOCK, "");
    }
    OK(shmview_lock_shared(more));
    REFUSED(shmview_lock(seg), DEADLOCK, "");
    REFUSED(shmview_lock(more), DEADLOCK, "of 'more'");
    OK(shmview_unlock(seg));
    REFUSED(shmview_lock(seg), DEADLOCK, "");
    OK(shmview_unlock(seg));
    OK(shmview_lock(seg)); /* a shared lock of another segment does not matter */
    OK(shmview_unlock(seg));
    OK(shmview_unlock(more));
    OK(shmview_detach(more));
    close_segment();
}
END_TEST

START_TEST(exclusive_holder_may_share)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock(seg));
    OK(shmview_lock_shared(seg));
    OK(shmview_trylock_shared(seg));
    OK(shmview_lock_shared_until(seg, shmview_deadline(MS)));
    OK(shmview_lock(seg));
    for (int i = 0; i < 5; i++) {
        REFUSED(shmview_trylock_shared(other), TIMED_OUT, "");
        OK(shmview_unlock(seg));
    }
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(not_owner)
{
    struct shmview_death death;
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock_shared(other));
    REFUSED(shmview_unlock(seg), NOT_OWNER, "does not hold the lock of 's'");
    REFUSED(shmview_unlock_not_repaired(other), NOT_OWNER, ""); /* for exclusive holders */
    REFUSED(shmview_owner_died(other, &death), NOT_OWNER, "");
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(other));
    REFUSED(shmview_unlock(other), NOT_OWNER, "");
    OK(shmview_trylock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

/* --- Trying and deadlines ------------------------------------------------ */

START_TEST(deadline)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_lock(other));
    int64_t before = await_now_ns();
    REFUSED(shmview_lock_shared_until(seg, shmview_deadline(20 * MS)), TIMED_OUT, "");
    ck_assert_int_ge(await_now_ns() - before, 20 * MS);
    before = await_now_ns(); /* long enough to have parked more than once */
    REFUSED(shmview_lock_shared_until(seg, shmview_deadline(350 * MS)), TIMED_OUT, "");
    ck_assert_int_ge(await_now_ns() - before, 350 * MS);
    REFUSED(shmview_lock_shared_until(seg, shmview_deadline(-1)), TIMED_OUT, "");
    REFUSED(shmview_lock_shared_until(seg, 0), TIMED_OUT, "");
    REFUSED(shmview_lock_shared_until(seg, -5), TIMED_OUT, "");
    OK(shmview_unlock(other));
    OK(shmview_lock_shared_until(seg, -5));
    OK(shmview_unlock(seg));
    OK(shmview_lock_shared_until(seg, SHMVIEW_FOREVER));
    REFUSED(shmview_lock_until(other, shmview_deadline(20 * MS)), TIMED_OUT, "");
    OK(shmview_trylock_shared(other)); /* a writer that gave up blocks no reader */
    OK(shmview_unlock(other));
    OK(shmview_unlock(seg));
    OK(shmview_trylock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

START_TEST(no_lock)
{
    uint64_t version;
    open_segment();
    struct shmview_segment *bare =
        client_create_with(conn, "bare", 10, SHMVIEW_ATTACHED, SHMVIEW_NO_LOCK);
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK);
    REFUSED(shmview_lock_shared(bare), NO_LOCK, "'bare' was created without a lock");
    REFUSED(shmview_trylock_shared(bare), NO_LOCK, "");
    REFUSED(shmview_read_begin(bare, &version), NO_LOCK, "");
    REFUSED(shmview_lock_shared(peek), NO_LOCK, "'s' is attached with access peek");
    REFUSED(shmview_lock_shared_until(peek, 1), NO_LOCK, "");
    REFUSED(shmview_read_begin(peek, &version), NO_LOCK, "");
    OK(shmview_detach(bare));
    OK(shmview_detach(peek));
    close_segment();
}
END_TEST

START_TEST(readers_may_share)
{
    open_segment();
    struct shmview_segment *reader = client_attach(conn, "s", SHMVIEW_READ);
    OK(shmview_lock_shared(reader));
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_trylock_shared(seg));
    OK(shmview_unlock(seg));
    OK(shmview_unlock(reader));
    OK(shmview_detach(reader));
    close_segment();
}
END_TEST

START_TEST(detach_while_shared)
{
    open_segment();
    OK(shmview_lock_shared(seg));
    OK(shmview_lock_shared(seg));
    REFUSED(shmview_detach(seg), BUSY, "holds the lock of 's'");
    OK(shmview_unlock(seg));
    REFUSED(shmview_detach(seg), BUSY, "");
    OK(shmview_unlock(seg));
    close_segment();
}
END_TEST

/* --- Many segments ------------------------------------------------------- */

START_TEST(given_back_in_any_order)
{
    struct shmview_segment *s[4];
    char name[2] = "a";
    open_segment();
    for (int i = 0; i < 4; i++, name[0]++)
        s[i] = client_create(conn, name, 10);
    OK(shmview_lock_shared(s[0]));
    OK(shmview_lock(s[1]));
    OK(shmview_lock_shared(s[2]));
    OK(shmview_lock_shared(s[0]));
    OK(shmview_lock_shared(s[3]));
    OK(shmview_unlock(s[0]));
    OK(shmview_unlock(s[1]));
    OK(shmview_unlock(s[2]));
    REFUSED(shmview_unlock(s[2]), NOT_OWNER, "");
    OK(shmview_lock(s[2]));
    OK(shmview_unlock(s[3]));
    OK(shmview_unlock(s[0]));
    OK(shmview_unlock(s[2]));
    for (int i = 0; i < 4; i++) {
        REFUSED(shmview_unlock(s[i]), NOT_OWNER, "");
        OK(shmview_trylock(s[i]));
        OK(shmview_unlock(s[i]));
        OK(shmview_detach(s[i]));
    }
    close_segment();
}
END_TEST

#define SHARES 64

START_TEST(sixty_four_segments_at_once)
{
    struct shmview_segment *s[SHARES];
    char name[16];
    open_segment();
    for (int i = 0; i < SHARES; i++) {
        snprintf(name, sizeof name, "s%d", i);
        s[i] = client_create(conn, name, 10);
        OK(shmview_lock_shared(s[i]));
    }
    REFUSED(shmview_lock_shared(seg), LIMIT, "64 segments shared");
    REFUSED(shmview_trylock_shared(seg), LIMIT, "");
    OK(shmview_lock_shared(s[0])); /* those it holds, again */
    OK(shmview_lock_shared(s[SHARES - 1]));
    OK(shmview_lock(seg)); /* and others exclusively */
    OK(shmview_lock_shared(seg));
    OK(shmview_unlock(seg));
    OK(shmview_unlock(seg));
    OK(shmview_unlock(s[0]));
    OK(shmview_unlock(s[SHARES - 1]));
    OK(shmview_unlock(s[17]));
    OK(shmview_lock_shared(seg));
    REFUSED(shmview_lock_shared(s[17]), LIMIT, "");
    OK(shmview_unlock(seg));
    for (int i = 0; i < SHARES; i++) {
        if (i != 17)
            OK(shmview_unlock(s[i]));
        OK(shmview_trylock(s[i]));
        OK(shmview_unlock(s[i]));
        OK(shmview_detach(s[i]));
    }
    close_segment();
}
END_TEST

/* --- Scopes -------------------------------------------------------------- */

static int leave_early(int how)
{
    SHMVIEW_LOCKED(seg, result);
    if (how == 0)
        return result;
    {
        SHMVIEW_LOCKED_SHARED(seg, again); /* counts as nested */
        if (how == 1)
            return again;
        if (how == 2)
            goto out;
    }
    return 3;
out:
    return 2;
}

static int share_early(int how)
{
    SHMVIEW_LOCKED_SHARED(seg, result);
    if (how == 0)
        return result;
    SHMVIEW_LOCKED(seg, upgrade);
    return upgrade; /* a lock that was not taken is not released */
}

START_TEST(scopes_give_back)
{
    open_segment();
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    for (int how = 0; how < 4; how++) {
        ck_assert_int_eq(leave_early(how), how == 1 ? 0 : how);
        REFUSED(shmview_unlock(seg), NOT_OWNER, "");
        OK(shmview_trylock(other));
        OK(shmview_unlock(other));
    }
    OK(share_early(0));
    REFUSED(share_early(1), DEADLOCK, "");
    REFUSED(shmview_unlock(seg), NOT_OWNER, "");
    OK(shmview_trylock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(many_readers_at_once),
        SUITE_TEST(writer_excludes_readers),
        SUITE_TEST(readers_exclude_a_writer),
        SUITE_TEST(readers_wait_for_each_writer_in_turn),
        SUITE_TEST(nested_share_never_waits_behind_a_writer),
        SUITE_TEST(shared_to_exclusive_is_a_deadlock),
        SUITE_TEST(exclusive_holder_may_share),
        SUITE_TEST(not_owner),
        SUITE_TEST(deadline),
        SUITE_TEST(no_lock),
        SUITE_TEST(readers_may_share),
        SUITE_TEST(detach_while_shared),
        SUITE_TEST(given_back_in_any_order),
        SUITE_TEST(sixty_four_segments_at_once),
        SUITE_TEST(scopes_give_back),
        SUITE_END,
    };
    return suite_main("shared", tests);
}
