/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon or a client that ends while a segment is being frozen: right before the client adds the
 * seal, or right after. Daemon, library and kernel must agree on the outcome, and no later writer
 * may be kept out because of a freezing that nobody completes. tests/crash lets the daemon end at
 * every other point of it. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "freezing.h"

/* What happens at the next F_ADD_SEALS of this process: right before, right after. */
static void (*before)(void), (*after)(void);

/* Replaces that of libc, also for the library. */
int fcntl(int fd, int command, ...)
{
    va_list ap;
    va_start(ap, command);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    void (*first)(void) = command == F_ADD_SEALS ? before : NULL;
    void (*then)(void) = command == F_ADD_SEALS ? after : NULL;
    if (first)
        before = NULL;
    if (first)
        first();
    int r = (int)syscall(SYS_fcntl, fd, command, arg);
    if (then)
        after = NULL;
    if (then)
        then();
    return r;
}

static void no_daemon(void)
{
    daemon_kill(&d);
}

static void another_daemon(void)
{
    daemon_kill(&d);
    daemon_restart(&d);
}

/* --- Checks ---------------------------------------------------------------- */

/* The access that the daemon has noted for the only attachment of "w". */
static uint32_t noted_access(void)
{
    const struct shmview_stats *stats;
    const char *const name = "w";
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = &name, .n_names = 1};
    OK(shmview_stats_get(conn, &o, &stats));
    ck_assert_uint_eq(stats->n_segments, 1);
    ck_assert_uint_eq(stats->segments[0]->n_parties, 1);
    uint32_t access = stats->segments[0]->parties[0]->access;
    shmview_stats_free(stats);
    return access;
}

/* "w" is frozen for good: under this daemon and the next one. */
static void expect_frozen(void)
{
    struct shmview_segment *none;
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
        REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "nobody can write");
        struct shmview_segment *reader = client_attach(conn, "w", SHMVIEW_PEEK);
        ck_assert_int_eq(shmview_is_frozen(reader), 1);
        ck_assert_int_eq(*(char *)shmview_data(reader), 'a');
        OK(shmview_detach(reader));
        another_daemon();
    }
}

/* "w" is not frozen, and another client can write to it. */
static void expect_writable(void)
{
    struct raw raw;
    ck_assert_uint_eq(frozen("w"), 0);
    raw_connect(&raw, d.socket);
    json_decref(raw_call(&raw, "Attach", "{'name':'w','access':'write'}"));
    ck_assert_int_eq(pwrite(raw.fds[0], "a", 1, 0), 1);
    ck_assert_int_eq(fcntl(raw.fds[0], F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE), 0);
    raw_close_fds(&raw);
    raw_close(&raw);
}

/* --- The daemon ends ------------------------------------------------------- */

static void replace_and_look(void)
{
    another_daemon();
    int64_t n = attachments("w");
    expect_writable();
    AWAIT(attachments("w") == n); /* the daemon has ended that of expect_writable() */
}

START_TEST(before_the_seal)
{
    begin();
    struct shmview_segment *s = make("w");
    before = replace_and_look;
    OK(shmview_freeze(s, 0));
    ck_assert_ptr_null(before);
    ck_assert_int_eq(shmview_is_frozen(s), 1);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    ck_assert_uint_eq(noted_access(), SHMVIEW_READ);
    expect_frozen();
    ck_assert_uint_eq(noted_access(), SHMVIEW_READ);
    drop(s, "w");
    end();
}
END_TEST

/* The request that ends the freezing does not reach any daemon. */
START_TEST(after_the_seal)
{
    begin();
    struct shmview_segment *s = make("w");
    after = no_daemon;
    OK(shmview_freeze(s, 0));
    ck_assert_int_eq(shmview_is_frozen(s), 1);
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    daemon_restart(&d);
    ck_assert_uint_eq(noted_access(), SHMVIEW_READ);
    OK(shmview_freeze(s, 0));
    OK(shmview_lock(s));
    OK(shmview_unlock(s));
    expect_frozen();
    drop(s, "w");
    end();
}
END_TEST

START_TEST(after_the_seal_of_a_producer_that_continues)
{
    struct shmview_segment *none;
    begin();
    struct shmview_segment *s = make("w");
    after = another_daemon;
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_FUTURE);
    ck_assert_uint_eq(noted_access(), SHMVIEW_WRITE);
    REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "nobody else can");
    use(s);
    memset(shmview_data(s), 'a', BYTES);
    OK(shmview_freeze(s, 0));
    expect_frozen();
    drop(s, "w");
    end();
}
END_TEST

/* --- Others write in between ----------------------------------------------- */

static struct child writer;

static void write_to_it(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *own = client_connect(&d);
    struct shmview_segment *s = client_attach(own, "w", SHMVIEW_WRITE);
    *(char *)shmview_data(s) = 'a';
    child_tell(me, 1);
    child_pause(me);
}

static void let_another_write(void)
{
    another_daemon();
    child_start(&writer, write_to_it, NULL);
    child_hear(&writer, 1);
}

START_TEST(another_writes_before_the_seal)
{
    begin();
    struct shmview_segment *s = make("w");
    before = let_another_write;
    int r = shmview_freeze(s, 0); /* which starts the writer */
    BUSY(r, writer.pid, "maps it for writing");
    ck_assert_uint_eq(frozen("w"), 0);
    ck_assert_int_eq(shmview_is_frozen(s), 0);
    use(s);
    memset(shmview_data(s), 'a', BYTES);
    child_kill(&writer);
    AWAIT(attachments("w") == 1);
    expect_writable();
    AWAIT(attachments("w") == 1);
    OK(shmview_freeze(s, 0));
    expect_frozen();
    drop(s, "w");
    end();
}
END_TEST

/* The kernel accepts this seal although another process writes, so only the daemon can find it. */
START_TEST(another_writes_beside_a_producer_that_continues)
{
    struct shmview_segment *none;
    begin();
    struct shmview_segment *s = make("w");
    before = let_another_write;
    int r = shmview_freeze(s, SHMVIEW_FREEZE_FUTURE); /* which starts the writer */
    BUSY(r, writer.pid, "1 other attachment may write");
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_FUTURE);
    REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "nobody else can");
    use(s);
    memset(shmview_data(s), 'a', BYTES);
    child_kill(&writer);
    AWAIT(attachments("w") == 1);
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    OK(shmview_freeze(s, 0));
    expect_frozen();
    drop(s, "w");
    end();
}
END_TEST

/* The daemon that has let the writer in is gone as well, so no request finds it. */
START_TEST(another_writes_and_no_daemon_knows_it)
{
    begin();
    struct shmview_segment *s = make("w");
    before = let_another_write;
    after = no_daemon;
    int r = shmview_freeze(s, SHMVIEW_FREEZE_FUTURE); /* which starts the writer */
    REFUSED(r, DISCONNECTED, "call shmview_freeze() again");
    ck_assert_ptr_nonnull(strstr(shmview_error_text(), "the daemon is gone"));
    use(s);
    daemon_restart(&d);
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_FUTURE);
    BUSY(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE), writer.pid, "1 other attachment may write");
    memset(shmview_data(s), 'a', BYTES);
    child_kill(&writer);
    AWAIT(attachments("w") == 1);
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    OK(shmview_freeze(s, 0));
    expect_frozen();
    drop(s, "w");
    end();
}
END_TEST

/* --- The client ends ------------------------------------------------------- */

/* A child that begins to freeze "w", and is killed right before or after the seal. */
static struct child *freezer;

static void stand_still(void)
{
    child_tell(freezer, 1);
    child_pause(freezer);
}

static void freeze_it(struct child *me, void *is_after)
{
    struct shmview_connection *own = client_connect(&d);
    struct shmview_segment *s = client_attach(own, "w", SHMVIEW_WRITE);
    freezer = me;
    if (*(bool *)is_after)
        after = stand_still;
    else
        before = stand_still;
    shmview_freeze(s, 0);
}

static void let_client_die(bool is_after, bool with_daemon)
{
    struct child child;
    begin();
    OK(shmview_detach(make("w")));
    OK(shmview_ping(conn)); /* after which the daemon has ended the attachment */
    child_start(&child, freeze_it, &is_after);
    child_hear(&child, 1);
    if (with_daemon)
        daemon_kill(&d);
    child_kill(&child);
    if (with_daemon)
        daemon_restart(&d);
    AWAIT(attachments("w") == 0);
    if (!is_after) {
        expect_writable();
        AWAIT(attachments("w") == 0);
        struct shmview_segment *s = client_attach(conn, "w", SHMVIEW_WRITE);
        OK(shmview_freeze(s, 0));
        OK(shmview_detach(s));
    }
    expect_frozen();
    OK(shmview_remove(conn, "w"));
    end();
}

START_TEST(a_client_dies_before_the_seal)
{
    let_client_die(false, false);
}
END_TEST

START_TEST(a_client_dies_after_the_seal)
{
    let_client_die(true, false);
}
END_TEST

START_TEST(client_and_daemon_die_before_the_seal)
{
    let_client_die(false, true);
}
END_TEST

START_TEST(client_and_daemon_die_after_the_seal)
{
    let_client_die(true, true);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(before_the_seal),
        SUITE_TEST(after_the_seal),
        SUITE_TEST(after_the_seal_of_a_producer_that_continues),
        SUITE_TEST(another_writes_before_the_seal),
        SUITE_TEST(another_writes_beside_a_producer_that_continues),
        SUITE_TEST(another_writes_and_no_daemon_knows_it),
        SUITE_TEST(a_client_dies_before_the_seal),
        SUITE_TEST(a_client_dies_after_the_seal),
        SUITE_TEST(client_and_daemon_die_before_the_seal),
        SUITE_TEST(client_and_daemon_die_after_the_seal),
        SUITE_END,
    };
    return suite_main("freeze_crash", tests);
}
