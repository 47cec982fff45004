/* SPDX-License-Identifier: Apache-2.0 */
/* A thousand places in one lock, and not one more. */
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <shmview/layout.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/parties.h"
#include "support/raw.h"
#include "support/suite.h"

#include "one_segment.h" /* seg has slot 0 */

#define SLOTS ((int)SHMVIEW_SLOTS_MAX)

/* Attachments by one connection, with access write and read in turns. */
static void attach_many(struct shmview_connection *connection, struct shmview_segment **list, int n)
{
    for (int i = 0; i < n; i++)
        list[i] = client_attach(connection, "s", i % 2 ? SHMVIEW_READ : SHMVIEW_WRITE);
}

static void detach_many(struct shmview_segment **list, int n)
{
    for (int i = 0; i < n; i++)
        OK(shmview_detach(list[i]));
}

static void pair(struct shmview_segment *segment)
{
    OK(shmview_lock(segment));
    OK(shmview_unlock(segment));
    OK(shmview_lock_shared(segment));
    OK(shmview_unlock(segment));
}

/* --- Children with many -------------------------------------------------- */

#define MANY 300

static struct shmview_segment *many[MANY];

/* MANY attachments; the last holds the lock, exclusively after the first cue, shared
 * after the second. */
static void hold_many(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *mine = client_connect(&d);
    attach_many(mine, many, MANY);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_lock(many[MANY - 1]));
    child_tell(me, 2);
    child_pause(me);
    OK(shmview_unlock(many[MANY - 1]));
    OK(shmview_lock_shared(many[MANY - 1]));
    child_tell(me, 3);
    child_pause(me);
    OK(shmview_unlock(many[MANY - 1]));
    detach_many(many, MANY);
    OK(shmview_disconnect(mine));
}

static struct shmview_segment *rest[SLOTS];

/* Fills the lock: this process has slot 0, two children have MANY each, and the rest
 * is this process's again. Returns how many. */
static int fill(struct child child[2])
{
    int n = SLOTS - 1 - 2 * MANY;
    for (int i = 0; i < 2; i++) {
        child_start(&child[i], hold_many, NULL);
        child_hear(&child[i], 1);
    }
    attach_many(conn, rest, n);
    return n;
}

START_TEST(a_thousand_and_no_more)
{
    struct child child[2];
    struct shmview_segment *one_more = NULL;
    struct shmview_lock_party party;
    open_segment();
    int n = fill(child);
    for (int i = 0; i < 3; i++)
        REFUSED(shmview_attach(conn, "s", SHMVIEW_READ, 0, &one_more), NO_SLOT, "1000");
    struct shmview_segment *peek = client_attach(conn, "s", SHMVIEW_PEEK); /* takes no slot */
    for (int i = 0; i < n; i++)
        pair(rest[i]);
    OK(shmview_lock(rest[n - 1]));
    ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS, &party), 1);
    ck_assert_uint_eq(party.slot, SLOTS - 1);
    ck_assert_uint_eq(party.pid, (unsigned)getpid());
    REFUSED(shmview_trylock_shared(seg), TIMED_OUT, "");
    OK(shmview_unlock(rest[n - 1]));
    OK(shmview_lock_shared(rest[n - 1]));
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(rest[n - 1]));
    for (int i = 0; i < 2; i++) {
        child_cue(&child[i]);
        child_hear(&child[i], 2);
        REFUSED(shmview_trylock(rest[n - 1]), TIMED_OUT, "");
        child_cue(&child[i]);
        child_hear(&child[i], 3);
        OK(shmview_trylock_shared(rest[n - 1]));
        OK(shmview_unlock(rest[n - 1]));
        REFUSED(shmview_trylock(rest[n - 1]), TIMED_OUT, "");
        child_cue(&child[i]);
        child_wait(&child[i]);
    }
    pair(rest[n - 1]);
    OK(shmview_detach(peek));
    detach_many(rest, n);
    close_segment();
}
END_TEST

START_TEST(freed_slots_are_used_again)
{
    struct child child[2];
    struct shmview_segment *again = NULL;
    open_segment();
    int n = fill(child);
    OK(shmview_detach(rest[n / 2]));
    rest[n / 2] = client_attach(conn, "s", SHMVIEW_WRITE);
    pair(rest[n / 2]);
    REFUSED(shmview_attach(conn, "s", SHMVIEW_READ, 0, &again), NO_SLOT, "");
    child_cue(&child[0]);
    child_hear(&child[0], 2);
    child_kill(&child[0]); /* inside, and all its slots come free */
    ck_assert_int_eq(shmview_lock(rest[n - 1]), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(rest[n - 1]));
    int r;
    AWAIT((r = shmview_attach(conn, "s", SHMVIEW_READ, 0, &again)) != -SHMVIEW_ERR_NO_SLOT);
    OK(r);
    pair(again);
    child_cue(&child[1]);
    child_hear(&child[1], 2);
    child_cue(&child[1]);
    child_hear(&child[1], 3);
    child_kill(&child[1]); /* as a reader */
    OK(shmview_lock(again));
    OK(shmview_unlock(again));
    OK(shmview_detach(again));
    detach_many(rest, n);
    close_segment();
}
END_TEST

START_TEST(one_slot_many_users)
{
    open_segment();
    for (int i = 0; i < 2000; i++) {
        struct shmview_segment *other =
            client_attach(conn, "s", i % 2 ? SHMVIEW_READ : SHMVIEW_WRITE);
        if (i % 64 == 0) {
            struct shmview_lock_party party;
            OK(shmview_lock(other));
            ck_assert_uint_eq(parties_in_role(seg, SHMVIEW_HOLDS, &party), 1);
            ck_assert_uint_eq(party.slot, 1);
            OK(shmview_unlock(other));
        }
        OK(shmview_detach(other));
    }
    close_segment();
}
END_TEST

static void lock_when_there_is_room(struct child *me, void *arg)
{
    (void)arg;
    REFUSED(shmview_lock(seg), NO_SLOT, "1000");
    REFUSED(shmview_trylock_shared(seg), NO_SLOT, "");
    REFUSED(shmview_unlock(seg), NO_SLOT, "");
    REFUSED(shmview_notify(seg), NO_SLOT, "");
    child_tell(me, 1);
    child_pause(me);
    int r; /* detaching does not wait for the daemon, and this is another connection */
    AWAIT((r = shmview_lock(seg)) != -SHMVIEW_ERR_NO_SLOT);
    OK(r);
    OK(shmview_unlock(seg));
    pair(seg);
}

START_TEST(forked_child_finds_no_slot)
{
    struct child child[2], forked;
    open_segment();
    int n = fill(child);
    OK(shmview_lock_shared(seg));
    child_start(&forked, lock_when_there_is_room, NULL);
    child_hear(&forked, 1);
    OK(shmview_unlock(seg));
    pair(seg);
    OK(shmview_detach(rest[0]));
    child_cue(&forked);
    child_wait(&forked);
    for (int i = 0; i < 2; i++)
        child_kill(&child[i]);
    detach_many(rest + 1, n - 1);
    close_segment();
}
END_TEST

static off_t control_bytes(void)
{
    struct raw raw;
    struct stat st;
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'s','access':'read'}"));
    ck_assert_uint_eq(raw.n_fds, 3);
    ck_assert_int_eq(fstat(raw.fds[1], &st), 0);
    ck_assert_int_ge(st.st_blocks * 512, st.st_size); /* backed, not only long */
    raw_close(&raw);
    return st.st_size;
}

START_TEST(control_object_grows)
{
    open_segment();
    ck_assert_int_eq(control_bytes(), 4096);
    attach_many(conn, rest, 98);
    const off_t hundred =
        (off_t)(sizeof(struct shmview_control) + 100 * sizeof(struct shmview_slot));
    off_t bytes = control_bytes();
    ck_assert(bytes >= hundred && bytes < hundred + 4096);
    attach_many(conn, rest + 98, SLOTS - 100);
    bytes = control_bytes();
    ck_assert_int_ge(bytes, (off_t)(sizeof(struct shmview_control) +
                                    SHMVIEW_SLOTS_MAX * sizeof(struct shmview_slot)));
    OK(shmview_lock(seg)); /* mapped before all this: it sees the last slot as well */
    OK(shmview_unlock(seg));
    OK(shmview_lock_shared(rest[SLOTS - 3]));
    REFUSED(shmview_trylock(seg), TIMED_OUT, "");
    OK(shmview_unlock(rest[SLOTS - 3]));
    detach_many(rest, SLOTS - 2);
    ck_assert_int_eq(control_bytes(), bytes); /* others may still look at it */
    close_segment();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_thousand_and_no_more), SUITE_TEST(freed_slots_are_used_again),
        SUITE_TEST(one_slot_many_users),    SUITE_TEST(forked_child_finds_no_slot),
        SUITE_TEST(control_object_grows),   SUITE_END,
    };
    return suite_main("slots_full", tests);
}
