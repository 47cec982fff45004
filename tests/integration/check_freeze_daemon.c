/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen segments: one producer that continues, later daemons, and clients that do what they like.
 */
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "freezing.h"
#include "support/backing.h"

/* --- Future writers ------------------------------------------------------- */

static void late_heir(struct child *me, void *segment)
{
    (void)me;
    REFUSED(shmview_lock(segment), READ_ONLY, "'w' is frozen");
}

START_TEST(one_producer_continues)
{
    struct child child;
    struct shmview_segment *none, *other;
    begin();
    struct shmview_segment *s = make("w");
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    use(s);
    ck_assert_int_eq(shmview_is_frozen(s), 0);
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_FUTURE);
    REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "nobody else can");
    other = client_attach(conn, "w", SHMVIEW_READ);
    ck_assert_int_eq(shmview_is_frozen(other), 0);
    ck_assert_int_eq(*(char *)shmview_data(other), 'b');
    OK(shmview_detach(other));
    child_start(&child, late_heir, s);
    child_wait(&child);
    child_start(&child, heir, s);
    child_hear(&child, 1);
    /* the data could not be mapped for writing again, so this is found out before */
    BUSY(shmview_freeze(s, 0), child.pid, "without an attachment");
    use(s);
    child_kill(&child);
    OK(shmview_freeze(s, 0));
    ck_assert_int_eq(shmview_is_frozen(s), 1);
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
    drop(s, "w");
    end();
}
END_TEST

START_TEST(a_producer_may_end_as_a_reader)
{
    int ends[2];
    begin();
    struct shmview_segment *s = make("w");
    OK(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE));
    ck_assert_int_eq(pipe(ends), 0);
    struct iovec page = {shmview_data(s), 4096};
    ck_assert_int_eq(vmsplice(ends[1], &page, 1, 0), 4096);
    REFUSED(shmview_freeze(s, 0), BUSY, "the handle has access read now");
    ck_assert_int_eq(shmview_access(s), SHMVIEW_READ);
    ck_assert_int_eq(*(char *)shmview_data(s), 'a');
    close(ends[0]);
    close(ends[1]);
    drop(s, "w");
    end();
}
END_TEST

/* --- Daemons and hostile clients ------------------------------------------ */

START_TEST(it_stays_frozen_under_the_next_daemon)
{
    struct shmview_segment *none, *other;
    begin();
    struct shmview_segment *s = make("w"), *p = make("p");
    OK(shmview_freeze(s, 0));
    OK(shmview_freeze(p, SHMVIEW_FREEZE_FUTURE));
    for (int kill = 0; kill < 2; kill++) {
        if (kill)
            daemon_kill(&d);
        else
            daemon_leave(&d);
        daemon_restart(&d);
        ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
        ck_assert_uint_eq(frozen("p"), SHMVIEW_FROZEN_FUTURE);
        REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "is frozen");
        other = client_attach(conn, "w", SHMVIEW_PEEK);
        ck_assert_int_eq(shmview_is_frozen(other), 1);
        OK(shmview_detach(other));
        use(p);
    }
    ck_assert(!daemon_said(&d, "repaired"));
    drop(s, "w");
    drop(p, "p");
    end();
}
END_TEST

/* The next daemon has none of the descriptors open that a freeze needs. */
START_TEST(the_next_daemon_closes_what_it_opened)
{
    begin();
    struct shmview_segment *s = make("w");
    daemon_kill(&d);
    daemon_restart(&d);
    OK(shmview_freeze(s, 0));
    drop(s, "w");
    AWAIT(backing_objects(d.pid) == 0);
    end();
}
END_TEST

/* Attaches "w" for writing. Returns the attachment's id; raw->fds[0] are the data. */
static long long raw_attach(struct raw *raw)
{
    raw_connect(raw, d.socket);
    json_t *a = raw_call(raw, "Attach", "{'name':'w','access':'write'}");
    ck_assert_int_eq(raw_int(a, "attachment.data"), 0);
    long long id = raw_int(a, "attachment.id");
    json_decref(a);
    return id;
}

START_TEST(a_client_may_add_seals_itself)
{
    struct raw raw;
    struct shmview_segment *none, *other;
    begin();
    OK(shmview_detach(make("w")));
    OK(shmview_ping(conn)); /* after which the daemon has ended the attachment */
    raw_attach(&raw);
    ck_assert_int_eq(fcntl(raw.fds[0], F_ADD_SEALS, F_SEAL_WRITE), 0);
    ck_assert_int_eq(pwrite(raw.fds[0], "x", 1, 0), -1);
    REFUSED(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), READ_ONLY, "is frozen");
    other = client_attach(conn, "w", SHMVIEW_READ);
    ck_assert_int_eq(shmview_is_frozen(other), 1);
    OK(shmview_detach(other));
    raw_close_fds(&raw);
    raw_close(&raw);
    daemon_kill(&d);
    daemon_restart(&d);
    ck_assert_uint_eq(frozen("w"), SHMVIEW_FROZEN_ALL);
    OK(shmview_remove(conn, "w"));
    /* it forbids further seals, so that nobody can freeze the segment */
    OK(shmview_detach(make("w")));
    OK(shmview_ping(conn)); /* after which the daemon has ended the attachment */
    raw_attach(&raw);
    ck_assert_int_eq(fcntl(raw.fds[0], F_ADD_SEALS, F_SEAL_SEAL), 0);
    raw_close_fds(&raw);
    raw_close(&raw);
    struct shmview_segment *s = client_attach(conn, "w", SHMVIEW_WRITE);
    AWAIT(attachments("w") == 1);
    REFUSED(shmview_freeze(s, 0), SYSTEM, "has forbidden further seals");
    use(s);
    REFUSED(shmview_freeze(s, SHMVIEW_FREEZE_FUTURE), SYSTEM, "has forbidden further seals");
    use(s);
    drop(s, "w");
    end();
}
END_TEST

START_TEST(no_writer_begins_while_one_freezes)
{
    struct raw raw;
    struct shmview_segment *none;
    char call[64], done[64];
    begin();
    OK(shmview_detach(make("w")));
    OK(shmview_ping(conn)); /* after which the daemon has ended the attachment */
    long long id = raw_attach(&raw);
    raw_close_fds(&raw);
    snprintf(call, sizeof call, "{'attachment':%lld}", id);
    snprintf(done, sizeof done, "{'attachment':%lld,'done':true}", id);
    for (int ends = 0; ends < 2; ends++) { /* with the request, and with the client */
        json_t *r = raw_call(&raw, "Freeze", call);
        ck_assert_int_eq(raw_int(r, "descriptors"), 2);
        ck_assert_int_eq(fcntl(raw.fds[raw_int(r, "read")], F_GETFL) & O_ACCMODE, O_RDONLY);
        ck_assert_int_eq(fcntl(raw.fds[raw_int(r, "write")], F_GETFL) & O_ACCMODE, O_RDWR);
        json_decref(r);
        raw_close_fds(&raw);
        BUSY(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none), getpid(), "is being frozen by");
        OK(shmview_detach(client_attach(conn, "w", SHMVIEW_READ)));
        if (ends == 0) {
            raw_do(&raw, "Freeze", done);
            OK(shmview_detach(client_attach(conn, "w", SHMVIEW_WRITE)));
            OK(shmview_ping(conn));
        }
    }
    raw_close(&raw);
    AWAIT(shmview_attach(conn, "w", SHMVIEW_WRITE, 0, &none) == 0);
    drop(none, "w");
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(one_producer_continues),
        SUITE_TEST(a_producer_may_end_as_a_reader),
        SUITE_TEST(it_stays_frozen_under_the_next_daemon),
        SUITE_TEST(the_next_daemon_closes_what_it_opened),
        SUITE_TEST(a_client_may_add_seals_itself),
        SUITE_TEST(no_writer_begins_while_one_freezes),
        SUITE_END,
    };
    return suite_main("freeze_daemon", tests);
}
