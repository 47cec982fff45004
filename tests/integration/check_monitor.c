/* SPDX-License-Identifier: Apache-2.0 */
/* Events: which ones a monitor receives, with which filters, and across a restart. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "integration/monitored.h"
#include "support/child.h"
#include "support/raw.h"

static void define(struct shmview_segment *segment, const char *layout)
{
    const int64_t shape[] = {1};
    const struct shmview_view_spec v = {.name = "v", .format = "int32", .ndim = 1, .shape = shape};
    OK(shmview_define(segment, layout, &v, 1));
}

/* --- Which events -------------------------------------------------------- */

START_TEST(a_life)
{
    begin();
    struct shmview_segment *a = client_create(conn, "a", 5000);
    const struct shmview_event *e = expect(SHMVIEW_EVENT_CREATED, "a");
    uint64_t id = e->id, serial = e->serial;
    ck_assert_uint_gt(id, 0);
    ck_assert_uint_eq(e->size, 5000);
    ck_assert_uint_eq(e->pid, (uint32_t)getpid());
    ck_assert_int_eq(e->uid, getuid());
    ck_assert_str_ne(e->command, "");
    e = expect(SHMVIEW_EVENT_ATTACHED, "a");
    ck_assert_uint_eq(e->access, SHMVIEW_WRITE);
    ck_assert_int_eq(e->slot, 0);
    ck_assert_uint_gt(e->attachment, 0);
    ck_assert_uint_eq(e->serial, serial + 1);
    struct shmview_segment *peek = client_attach(conn, "a", SHMVIEW_PEEK);
    e = expect(SHMVIEW_EVENT_ATTACHED, "a");
    ck_assert_uint_eq(e->access, SHMVIEW_PEEK);
    ck_assert_int_eq(e->slot, -1);
    OK(shmview_remove(conn, "a"));
    e = expect(SHMVIEW_EVENT_REMOVED, "a");
    ck_assert_uint_eq(e->attachments, 2);
    ck_assert_uint_eq(e->pid, (uint32_t)getpid());
    ck_assert_uint_eq(e->id, id);
    OK(shmview_detach(peek));
    e = expect(SHMVIEW_EVENT_DETACHED, "a");
    ck_assert_uint_eq(e->access, SHMVIEW_PEEK);
    OK(shmview_detach(a));
    e = expect(SHMVIEW_EVENT_DETACHED, "a");
    ck_assert_uint_eq(e->id, id);
    ck_assert_uint_eq(e->held, 0);
    a = client_create(conn, "b", 1);
    OK(shmview_detach(a));
    expect(SHMVIEW_EVENT_CREATED, "b");
    expect(SHMVIEW_EVENT_ATTACHED, "b");
    expect(SHMVIEW_EVENT_DETACHED, "b");
    e = expect(SHMVIEW_EVENT_REMOVED, "b"); /* with its last attachment */
    ck_assert_uint_eq(e->attachments, 0);
    expect_nothing(monitor);
    end();
}
END_TEST

static int how; /* what the child holds when it dies */

static void hold(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, "a", how == 3 ? SHMVIEW_PEEK : SHMVIEW_READ);
    if (how == SHMVIEW_EXCLUSIVE)
        OK(shmview_lock(s));
    if (how == SHMVIEW_SHARED)
        OK(shmview_lock_shared(s));
    if (how == 0)
        OK(shmview_trylock(s) || shmview_unlock(s));
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(deaths)
{
    static const int ways[] = {0, SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED, 3};
    begin();
    struct shmview_segment *a = client_create(conn, "a", 1);
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    for (int i = 0; i < 4; i++) {
        struct child child;
        how = ways[i];
        child_start(&child, hold, NULL);
        child_hear(&child, 1);
        uint32_t pid = (uint32_t)child.pid;
        expect(SHMVIEW_EVENT_ATTACHED, "a");
        child_kill(&child);
        const struct shmview_event *e = expect(SHMVIEW_EVENT_DIED, "a");
        ck_assert_uint_eq(e->pid, pid);
        ck_assert_int_eq(e->uid, getuid());
        ck_assert_uint_eq(e->held, how == 3 ? 0 : (uint32_t)how);
        if (how != 3)
            ck_assert_str_ne(e->command, "");
        if (how == SHMVIEW_EXCLUSIVE) {
            e = expect(SHMVIEW_EVENT_OWNER_DIED, "a");
            ck_assert_uint_eq(e->pid, pid);
            ck_assert_int_eq(shmview_lock(a), SHMVIEW_OWNER_DIED);
            OK(shmview_unlock(a));
        }
    }
    expect_nothing(monitor);
    OK(shmview_detach(a));
    end();
}
END_TEST

#define GIVEN_BACK 100

/* The daemon is stopped while this runs. When it continues, it finds many requests of a client that
 * is dead. */
static void attach_and_detach(struct child *me, void *arg)
{
    struct shmview_segment *s[GIVEN_BACK];
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    for (int i = 0; i < GIVEN_BACK; i++)
        s[i] = client_attach(c, "a", SHMVIEW_PEEK);
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < GIVEN_BACK; i++)
        OK(shmview_detach(s[i]));
}

START_TEST(what_was_given_back_has_not_died)
{
    struct child child;
    begin();
    struct shmview_segment *a = client_create(conn, "a", 1);
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    child_start(&child, attach_and_detach, NULL);
    child_hear(&child, 1);
    for (int i = 0; i < GIVEN_BACK; i++)
        expect(SHMVIEW_EVENT_ATTACHED, "a");
    process_stop(d.pid);
    child_cue(&child);
    child_wait(&child);
    ck_assert_int_eq(kill(d.pid, SIGCONT), 0);
    for (int i = 0; i < GIVEN_BACK; i++)
        expect(SHMVIEW_EVENT_DETACHED, "a");
    expect_nothing(monitor);
    OK(shmview_detach(a));
    end();
}
END_TEST

START_TEST(phases)
{
    begin();
    struct shmview_segment *a = client_create(conn, "a", 64);
    define(a, "one");
    define(a, "two");
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    OK(shmview_lock(a));
    OK(shmview_switch(a, "two"));
    const struct shmview_event *e = expect(SHMVIEW_EVENT_PHASE, "a");
    ck_assert_uint_eq(e->generation, 1);
    ck_assert_uint_eq(e->switches, 1);
    ck_assert_str_eq(e->layout, "two");
    /* those that come faster than the daemon looks are counted */
    uint32_t n = 0;
    for (int i = 0; i < 1000; i++)
        OK(shmview_switch(a, i % 2 ? "two" : "one"));
    do {
        e = expect(SHMVIEW_EVENT_PHASE, "a");
        n += e->switches;
        ck_assert_uint_eq(e->generation, n + 1);
    } while (n < 1000);
    ck_assert_str_eq(e->layout, "two");
    OK(shmview_unlock(a));
    /* a monitor gets no events from before it was opened */
    struct shmview_monitor *late = monitor_open(NULL);
    expect_nothing(late);
    OK(shmview_monitor_close(late));
    OK(shmview_detach(a));
    end();
}
END_TEST

/* The daemon also notices a switch by a client that attaches, switches and detaches between two
 * polls. */
START_TEST(phases_in_passing)
{
    const struct shmview_create_options o = {.struct_bytes = sizeof o, .lifetime = SHMVIEW_MANUAL};
    struct shmview_segment *a;
    begin();
    OK(shmview_monitor_close(monitor)); /* nobody listens while it is made */
    OK(shmview_create(conn, "a", 64, &o, &a));
    define(a, "one");
    define(a, "two");
    OK(shmview_detach(a));
    OK(shmview_ping(conn));
    monitor = monitor_open(NULL);
    for (uint32_t i = 1; i <= 20; i++) {
        a = client_attach(conn, "a", SHMVIEW_WRITE);
        OK(shmview_lock(a));
        OK(shmview_switch(a, i % 2 ? "two" : "one"));
        OK(shmview_unlock(a));
        OK(shmview_detach(a));
        expect(SHMVIEW_EVENT_ATTACHED, "a");
        const struct shmview_event *e = expect(SHMVIEW_EVENT_PHASE, "a");
        ck_assert_uint_eq(e->generation, i);
        ck_assert_str_eq(e->layout, i % 2 ? "two" : "one");
        expect(SHMVIEW_EVENT_DETACHED, "a");
    }
    OK(shmview_remove(conn, "a"));
    end();
}
END_TEST

START_TEST(refusals)
{
    begin();
    /* the most layouts that a segment can have */
    struct shmview_segment *a = client_create(conn, "a", 64);
    char name[16];
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "l%d", i);
        define(a, name);
    }
    const int64_t shape[] = {1};
    const struct shmview_view_spec v = {.name = "v", .format = "int32", .ndim = 1, .shape = shape};
    REFUSED(shmview_define(a, "more", &v, 1), LIMIT, "64");
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    const struct shmview_event *e = expect(SHMVIEW_EVENT_QUOTA, "");
    ck_assert_int_eq(e->error, SHMVIEW_ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(e->reason, "64 layouts"));
    ck_assert_uint_eq(e->pid, (uint32_t)getpid());
    ck_assert_int_eq(e->uid, getuid());
    OK(shmview_detach(a));
    end();
}
END_TEST

/* --- Who asks ------------------------------------------------------------ */

START_TEST(filters)
{
    const char *const names[] = {"b", "c"};
    const struct shmview_monitor_options o = {
        .struct_bytes = sizeof o,
        .kinds =
            SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_CREATED) | SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_REMOVED),
        .names = names,
        .n_names = 2,
    };
    begin();
    struct shmview_monitor *some = monitor_open(&o);
    for (int i = 0; i < 4; i++) {
        char name[2] = {(char)('a' + i), 0};
        OK(shmview_detach(client_create(conn, name, 1)));
    }
    expect_of(some, SHMVIEW_EVENT_CREATED, "b");
    expect_of(some, SHMVIEW_EVENT_REMOVED, "b");
    expect_of(some, SHMVIEW_EVENT_CREATED, "c");
    expect_of(some, SHMVIEW_EVENT_REMOVED, "c");
    expect_nothing(some);
    OK(shmview_monitor_close(some));
    struct shmview_monitor_options bad = {.struct_bytes = sizeof bad, .kinds = 1};
    REFUSED(shmview_monitor_open(conn, &bad, &some), INVALID, "kinds");
    bad = (struct shmview_monitor_options){.struct_bytes = 4};
    REFUSED(shmview_monitor_open(conn, &bad, &some), INVALID, "struct_bytes");
    bad = (struct shmview_monitor_options){.struct_bytes = sizeof bad, .n_names = 65};
    REFUSED(shmview_monitor_open(conn, &bad, &some), INVALID, "limit");
    const char *broken[] = {"a", NULL};
    bad =
        (struct shmview_monitor_options){.struct_bytes = sizeof bad, .names = broken, .n_names = 2};
    REFUSED(shmview_monitor_open(conn, &bad, &some), INVALID, "names[1] is NULL");
    end();
}
END_TEST

START_TEST(what_is_remembered)
{
    begin();
    OK(shmview_detach(client_create(conn, "a", 1)));
    uint64_t serial = expect(SHMVIEW_EVENT_CREATED, "a")->serial;
    struct shmview_monitor_options o = {.struct_bytes = sizeof o, .after = serial};
    struct shmview_monitor *late = monitor_open(&o);
    expect_of(late, SHMVIEW_EVENT_ATTACHED, "a");
    expect_of(late, SHMVIEW_EVENT_DETACHED, "a");
    expect_of(late, SHMVIEW_EVENT_REMOVED, "a");
    expect_nothing(late);
    OK(shmview_monitor_close(late));
    o.after = SHMVIEW_MONITOR_REMEMBERED;
    late = monitor_open(&o);
    expect_of(late, SHMVIEW_EVENT_CREATED, "a");
    OK(shmview_monitor_close(late));
    end();
}
END_TEST

START_TEST(calls_that_are_none)
{
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Monitor", "{}", "org.varlink.service.ExpectedMore", "");
    ck_assert(raw_send_text(
        &raw, "{'method':'io.shmview.Monitor','more':true,'parameters':{'kinds':['birth']}}"));
    json_decref(
        raw_receive_error(&raw, "org.varlink.service.InvalidParameter", "is not a known name"));
    ck_assert(raw_send_text(
        &raw, "{'method':'io.shmview.Monitor','more':true,'parameters':{'names':[1]}}"));
    json_decref(raw_receive_error(&raw, "org.varlink.service.InvalidParameter", "a string"));
    raw_do(&raw, "Ping", NULL);
    /* from now on the connection is good for nothing else */
    ck_assert(raw_send_text(&raw, "{'method':'io.shmview.Monitor','more':true}"));
    char *text = raw_receive(&raw);
    ck_assert_ptr_nonnull(strstr(text, "\"continues\":true"));
    ck_assert_ptr_nonnull(strstr(text, "\"subscribed\""));
    free(text);
    ck_assert(raw_send_call(&raw, "Ping", NULL));
    OK(shmview_detach(client_create(conn, "a", 1)));
    text = raw_receive(&raw);
    ck_assert_ptr_nonnull(strstr(text, "\"created\""));
    free(text);
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(too_many)
{
    struct shmview_monitor *all[55], *more;
    begin();
    for (int i = 0; i < 55; i++)
        all[i] = monitor_open(NULL);
    REFUSED(shmview_monitor_open(conn, NULL, &more), QUOTA,
            "1 monitors asked for; the last 8 are kept");
    OK(shmview_monitor_close(all[7]));
    AWAIT(shmview_monitor_open(conn, NULL, &all[7]) == 0);
    OK(shmview_detach(client_create(conn, "a", 1)));
    const struct shmview_event *e;
    do
        OK(shmview_monitor_next(monitor, shmview_deadline(AWAIT_NS), &e));
    while (e->kind == SHMVIEW_EVENT_QUOTA); /* of those that were one too many */
    ck_assert_uint_eq(e->kind, SHMVIEW_EVENT_CREATED);
    for (int i = 0; i < 55; i++)
        OK(shmview_monitor_close(all[i]));
    end();
}
END_TEST

/* --- The daemon goes ----------------------------------------------------- */

START_TEST(restarts)
{
    const struct shmview_event *e;
    struct child child;
    begin();
    struct shmview_segment *a = client_create(conn, "a", 1);
    expect(SHMVIEW_EVENT_CREATED, "a");
    expect(SHMVIEW_EVENT_ATTACHED, "a");
    how = SHMVIEW_EXCLUSIVE;
    child_start(&child, hold, NULL);
    child_hear(&child, 1);
    uint64_t serial = expect(SHMVIEW_EVENT_ATTACHED, "a")->serial;
    uint32_t pid = (uint32_t)child.pid;
    daemon_kill(&d);
    child_kill(&child);
    REFUSED(shmview_monitor_next(monitor, 0, &e), DISCONNECTED, "gone");
    ck_assert_int_eq(shmview_monitor_fd(monitor), -1);
    daemon_restart(&d);
    expect(SHMVIEW_EVENT_SUBSCRIBED, "");
    e = expect(SHMVIEW_EVENT_DIED, "a");
    ck_assert_uint_eq(e->pid, pid);
    ck_assert_int_eq(e->uid, getuid());
    ck_assert_uint_eq(e->held, SHMVIEW_EXCLUSIVE);
    expect(SHMVIEW_EVENT_OWNER_DIED, "a");
    e = expect(SHMVIEW_EVENT_RECOVERED, "");
    ck_assert_uint_gt(e->serial, serial);
    if (getuid() == 0) {
        ck_assert_uint_eq(e->segments, 1);
        ck_assert_uint_eq(e->attachments, 1);
        ck_assert_uint_eq(e->deaths, 1);
        ck_assert_uint_eq(e->lost, 0);
    }
    OK(shmview_detach(a));
    expect(SHMVIEW_EVENT_DETACHED, "a");
    expect(SHMVIEW_EVENT_REMOVED, "a");
    end();
}
END_TEST

static void fill_address(struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(ret->sun_path, sizeof ret->sun_path, "%s", d.socket);
}

/* Listens in the place of the daemon, and has no room for another connection. */
static void be_busy(int *ret_listener, int *ret_client)
{
    struct sockaddr_un address;
    fill_address(&address);
    ck_assert_int_eq(unlink(d.socket), 0);
    *ret_listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *ret_client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(*ret_listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(*ret_listener, 0), 0); /* that is one */
    ck_assert_int_eq(connect(*ret_client, (struct sockaddr *)&address, sizeof address), 0);
}

static int end_at_third(void *arg)
{
    int *n = arg;
    return ++*n == 3;
}

START_TEST(a_daemon_too_busy_to_connect_to)
{
    const struct shmview_event *e;
    int listener, client, n = 0;
    begin();
    daemon_kill(&d);
    REFUSED(shmview_monitor_next(monitor, 0, &e), DISCONNECTED, "gone");
    be_busy(&listener, &client);
    shmview_on_wait(end_at_third, &n); /* otherwise a failure would be a wait without end */
    REFUSED(shmview_monitor_next(monitor, 0, &e), DISCONNECTED, "too busy");
    ck_assert_int_eq(n, 0);
    REFUSED(shmview_monitor_next(monitor, shmview_deadline(AWAIT_NS), &e), INTERRUPTED, "");
    ck_assert_int_eq(n, 3);
    n = 0;
    REFUSED(shmview_monitor_next(monitor, SHMVIEW_FOREVER, &e), INTERRUPTED, "");
    ck_assert_int_eq(n, 3);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(shmview_monitor_fd(monitor), -1);
    close(client);
    close(listener);
    daemon_restart(&d);
    expect(SHMVIEW_EVENT_SUBSCRIBED, "");
    expect(SHMVIEW_EVENT_RECOVERED, "");
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_life),
        SUITE_TEST(deaths),
        SUITE_TEST(what_was_given_back_has_not_died),
        SUITE_TEST(phases),
        SUITE_TEST(phases_in_passing),
        SUITE_TEST(refusals),
        SUITE_TEST(filters),
        SUITE_TEST(what_is_remembered),
        SUITE_TEST(calls_that_are_none),
        SUITE_TEST(too_many),
        SUITE_TEST(restarts),
        SUITE_TEST(a_daemon_too_busy_to_connect_to),
        SUITE_END,
    };
    return suite_main("monitor", tests);
}
