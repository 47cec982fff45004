/* SPDX-License-Identifier: Apache-2.0 */
/* Many segments created or attached by one call: all of them, or none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/many.h>
#include <shmview/stats.h>

#include "support/await.h"
#include "support/client.h"
#include "support/suite.h"

#define N 100 /* more than three batches, and a part of one */

static struct daemon d;
static struct shmview_connection *conn, *creator;
static struct shmview_segment *made[N], *got[N];
static char text[N][16];
static const char *names[N];

static void begin(void)
{
    daemon_start(&d);
    creator = client_connect(&d);
    conn = client_connect(&d);
    for (int i = 0; i < N; i++) {
        snprintf(text[i], sizeof text[i], "s%d", i);
        names[i] = text[i];
        made[i] = client_create_with(creator, names[i], 4096, SHMVIEW_ATTACHED,
                                     i % 3 ? 0 : SHMVIEW_NO_LOCK);
        *(int *)shmview_data(made[i]) = i;
    }
}

static void end(void)
{
    for (int i = 0; i < N; i++)
        OK(shmview_detach(made[i]));
    OK(shmview_disconnect(conn));
    OK(shmview_disconnect(creator));
    daemon_stop(&d);
}

/* Returns the number of attachments of the first segment and of the last one. */
static int64_t n_attached(void)
{
    const struct shmview_stats *stats;
    const char *const ends[] = {names[0], names[N - 1]};
    struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = ends, .n_names = 2};
    int64_t n = 0;
    OK(shmview_stats_get(creator, &o, &stats));
    for (size_t i = 0; i < stats->n_segments; i++)
        n += stats->segments[i]->attachments;
    shmview_stats_free(stats);
    return n;
}

static void must_have_all(void)
{
    for (int i = 0; i < N; i++) {
        ck_assert_str_eq(shmview_name(got[i]), names[i]);
        ck_assert_int_eq(*(const int *)shmview_data(got[i]), i);
        if (i % 3 == 0)
            REFUSED(shmview_trylock(got[i]), NO_LOCK, names[i]);
        else
            OK(shmview_lock(got[i]) || shmview_unlock(got[i]));
    }
    OK(shmview_detach_many(got, N));
    for (int i = 0; i < N; i++)
        ck_assert_ptr_null(got[i]);
}

START_TEST(all_are_attached)
{
    begin();
    OK(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got));
    ck_assert_int_eq(n_attached(), 4);
    must_have_all();
    OK(shmview_ping(conn)); /* the daemon does it after the detaches */
    ck_assert_int_eq(n_attached(), 2);
    OK(shmview_attach_many(conn, NULL, 0, SHMVIEW_WRITE, 0, NULL));
    end();
}
END_TEST

START_TEST(one_name_has_several_attachments)
{
    const char *const twice[] = {"s1", "s1", "s2"};
    begin();
    OK(shmview_attach_many(conn, twice, 3, SHMVIEW_READ, SHMVIEW_POPULATE, got));
    ck_assert_ptr_ne(got[0], got[1]);
    OK(shmview_lock_shared(got[0]));
    OK(shmview_lock_shared(got[1]));
    OK(shmview_unlock(got[0]));
    OK(shmview_unlock(got[1]));
    for (int i = 0; i < 3; i++)
        OK(shmview_detach(got[i]));
    end();
}
END_TEST

static void must_have_none(void)
{
    for (int i = 0; i < N; i++)
        ck_assert_ptr_null(got[i]);
    OK(shmview_ping(conn));
    ck_assert_int_eq(n_attached(), 2);
}

/* At the first, in the middle and at the last one of a batch, and of the last batch. */
START_TEST(one_that_fails_undoes_all)
{
    static const int at[] = {0, 1, 31, 32, 50, N - 1};
    begin();
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        memset(got, 1, sizeof got);
        names[at[i]] = "missing";
        REFUSED(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got), NOT_FOUND, "missing");
        names[at[i]] = text[at[i]];
        must_have_none();
    }
    names[7] = "missing"; /* the first error is reported */
    names[8] = "lost";
    REFUSED(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got), NOT_FOUND, "missing");
    names[7] = text[7];
    names[8] = text[8];
    must_have_none();
    OK(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got));
    must_have_all();
    end();
}
END_TEST

START_TEST(arguments_are_checked_before_anything_is_sent)
{
    begin();
    names[40] = "no/name";
    REFUSED(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got), INVALID, "no/name");
    names[40] = NULL;
    REFUSED(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got), INVALID, "40");
    names[40] = text[40];
    REFUSED(shmview_attach_many(conn, names, N, 17, 0, got), INVALID, "17");
    REFUSED(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 64, got), INVALID, "0x40");
    must_have_none();
    end();
}
END_TEST

START_TEST(one_in_use_stops_the_detaching)
{
    begin();
    OK(shmview_attach_many(conn, names, 5, SHMVIEW_WRITE, 0, got));
    OK(shmview_lock(got[2]));
    REFUSED(shmview_detach_many(got, 5), BUSY, "s2");
    ck_assert(!got[0] && !got[1] && got[2] && got[3] && got[4]);
    OK(shmview_unlock(got[2]));
    OK(shmview_detach(got[3]));
    got[3] = NULL;
    OK(shmview_detach_many(got, 5));
    OK(shmview_ping(conn));
    ck_assert_int_eq(n_attached(), 2);
    OK(shmview_detach_many(NULL, 0));
    end();
}
END_TEST

static void ping_at_release(void *arg)
{
    OK(shmview_ping(conn));
    ++*(int *)arg;
}

START_TEST(a_release_function_may_use_the_connection)
{
    static char bytes[64];
    int n_released = 0;
    begin();
    OK(shmview_attach_many(conn, names, 3, SHMVIEW_WRITE, 0, got));
    OK(shmview_detach(got[1]));
    OK(shmview_wrap(bytes, sizeof bytes, 0, ping_at_release, &n_released, &got[1]));
    OK(shmview_detach_many(got, 3));
    ck_assert_int_eq(n_released, 1);
    ck_assert(!got[0] && !got[1] && !got[2]);
    OK(shmview_ping(conn));
    ck_assert_int_eq(n_attached(), 2);
    end();
}
END_TEST

START_TEST(a_restarted_daemon_answers_the_rest)
{
    begin();
    daemon_kill(&d);
    daemon_restart(&d);
    OK(shmview_attach_many(conn, names, N, SHMVIEW_WRITE, 0, got));
    daemon_kill(&d);
    daemon_restart(&d);
    must_have_all();
    AWAIT(n_attached() == 2); /* the daemon ends what the client has not claimed, in turns */
    end();
}
END_TEST

/* --- Created ------------------------------------------------------------- */

static uint64_t sizes[N];
static char fresh_text[N][16];
static const char *fresh[N];

static void begin_fresh(void)
{
    begin();
    for (int i = 0; i < N; i++) {
        snprintf(fresh_text[i], sizeof fresh_text[i], "f%d", i);
        fresh[i] = fresh_text[i];
        sizes[i] = (uint64_t)(i % 7 ? i + 1 : 3 << 20); /* a thread allocates the large ones */
    }
}

/* None of them exists. */
static void must_be_fresh(void)
{
    struct shmview_segment *s;
    for (int i = 0; i < N; i++) {
        ck_assert_ptr_null(got[i]);
        if (fresh[i] == fresh_text[i])
            REFUSED(shmview_attach(creator, fresh[i], SHMVIEW_READ, 0, &s), NOT_FOUND, fresh[i]);
    }
}

START_TEST(all_are_created)
{
    const struct shmview_create_options kept = {
        .struct_bytes = sizeof kept, .lifetime = SHMVIEW_MANUAL, .flags = SHMVIEW_NO_LOCK};
    begin_fresh();
    OK(shmview_create_many(conn, fresh, sizes, N, NULL, got));
    for (int i = 0; i < N; i++) {
        ck_assert_str_eq(shmview_name(got[i]), fresh[i]);
        ck_assert_uint_eq(shmview_size(got[i]), sizes[i]);
        ck_assert_int_eq(((const char *)shmview_data(got[i]))[sizes[i] - 1], 0);
        OK(shmview_lock(got[i]) || shmview_unlock(got[i]));
    }
    OK(shmview_detach_many(got, N));
    OK(shmview_ping(conn));
    must_be_fresh();
    OK(shmview_create_many(conn, fresh, sizes, N, &kept, got));
    REFUSED(shmview_trylock(got[N - 1]), NO_LOCK, fresh[N - 1]);
    OK(shmview_detach_many(got, N));
    for (int i = 0; i < N; i++)
        OK(shmview_remove(conn, fresh[i]));
    OK(shmview_create_many(conn, NULL, NULL, 0, NULL, NULL));
    end();
}
END_TEST

/* At the first, in the middle and at the last one of a batch, and of the last batch. */
START_TEST(one_that_exists_undoes_all)
{
    static const int at[] = {0, 1, 31, 32, 50, N - 1};
    const struct shmview_create_options kept = {.struct_bytes = sizeof kept,
                                                .lifetime = SHMVIEW_MANUAL};
    begin_fresh();
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        memset(got, 1, sizeof got);
        fresh[at[i]] = "s5";
        REFUSED(shmview_create_many(conn, fresh, sizes, N, &kept, got), EXISTS, "s5");
        must_be_fresh();
        fresh[at[i]] = fresh_text[at[i]];
    }
    fresh[1] = fresh[0]; /* twice the same */
    REFUSED(shmview_create_many(conn, fresh, sizes, N, &kept, got), EXISTS, fresh[0]);
    fresh[1] = fresh_text[1];
    must_be_fresh();
    sizes[40] = (uint64_t)1 << 50; /* more than there is */
    REFUSED(shmview_create_many(conn, fresh, sizes, N, &kept, got), NO_SPACE, "1125899906842624");
    must_be_fresh();
    ck_assert_int_eq(n_attached(), 2);
    end();
}
END_TEST

START_TEST(nothing_is_created_with_wrong_arguments)
{
    const struct shmview_create_options wrong = {.struct_bytes = sizeof wrong, .flags = 64};
    begin_fresh();
    sizes[40] = 0;
    REFUSED(shmview_create_many(conn, fresh, sizes, N, NULL, got), INVALID, "f40");
    sizes[40] = 1;
    fresh[40] = NULL;
    REFUSED(shmview_create_many(conn, fresh, sizes, N, NULL, got), INVALID, "40");
    fresh[40] = "no/name";
    REFUSED(shmview_create_many(conn, fresh, sizes, N, NULL, got), INVALID, "no/name");
    fresh[40] = fresh_text[40];
    REFUSED(shmview_create_many(conn, fresh, sizes, N, &wrong, got), INVALID, "0x40");
    must_be_fresh();
    end();
}
END_TEST

START_TEST(a_restarted_daemon_creates_them)
{
    begin_fresh();
    daemon_kill(&d);
    daemon_restart(&d);
    OK(shmview_create_many(conn, fresh, sizes, N, NULL, got));
    OK(shmview_detach_many(got, N));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(all_are_attached),
        SUITE_TEST(one_name_has_several_attachments),
        SUITE_TEST(one_that_fails_undoes_all),
        SUITE_TEST(arguments_are_checked_before_anything_is_sent),
        SUITE_TEST(one_in_use_stops_the_detaching),
        SUITE_TEST(a_release_function_may_use_the_connection),
        SUITE_TEST(a_restarted_daemon_answers_the_rest),
        SUITE_TEST(all_are_created),
        SUITE_TEST(one_that_exists_undoes_all),
        SUITE_TEST(nothing_is_created_with_wrong_arguments),
        SUITE_TEST(a_restarted_daemon_creates_them),
        SUITE_END,
    };
    return suite_main("many", tests);
}
