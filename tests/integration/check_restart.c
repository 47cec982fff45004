/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon is killed, or gets a signal to exit, and another one takes over. Nothing is lost, the
 * deaths in between are reported, and segments without a client are removed as they should be. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/parties.h"
#include "support/raw.h"
#include "support/suite.h"

static struct daemon d;
static struct shmview_connection *conn;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static void replace(void)
{
    daemon_kill(&d);
    daemon_restart(&d);
}

static void define(struct shmview_segment *s, const char *name, const char *format)
{
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = format, .ndim = 1, .shape = &ten};
    OK(shmview_define(s, name, &spec, 1));
}

/* SIGINT removes the registry. What the next daemon makes has ids of its own. */
START_TEST(ids_are_not_given_out_again)
{
    struct shmview_view v;
    begin();
    struct shmview_segment *old = client_create(conn, "old", 4096);
    daemon_stop(&d);
    daemon_restart(&d);
    struct shmview_segment *fresh = client_create(conn, "fresh", 4096);
    define(fresh, "late", "f");
    REFUSED(shmview_view_open(old, "late", "A", &v), NOT_FOUND, "'old'");
    OK(shmview_detach(old));
    OK(shmview_ping(conn)); /* the daemon serves it after the detach */
    struct shmview_connection *other = client_connect(&d);
    OK(shmview_detach(client_attach(other, "fresh", SHMVIEW_WRITE)));
    OK(shmview_disconnect(other));
    OK(shmview_detach(fresh));
    end();
}
END_TEST

/* --- What stays ---------------------------------------------------------- */

START_TEST(everything_is_there)
{
    struct shmview_view v;
    struct shmview_phase phase;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 4096);
    struct shmview_segment *manual =
        client_create_with(conn, "manual", 100, SHMVIEW_MANUAL, SHMVIEW_NO_LOCK);
    struct shmview_segment *unnamed = client_create(conn, "unnamed", 100);
    strcpy(shmview_data(manual), "manual bytes");
    strcpy(shmview_data(unnamed), "unnamed bytes");
    OK(shmview_detach(manual));
    OK(shmview_remove(conn, "unnamed"));
    define(s, "float", "f");
    define(s, "int", "i");
    OK(shmview_lock(s));
    OK(shmview_switch(s, "int"));
    strcpy(shmview_data(s), "old bytes");
    for (int i = 0; i < 3; i++) {
        replace();
        OK(shmview_trylock(s)); /* again: it is still ours */
        OK(shmview_unlock(s));
        struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
        ck_assert_str_eq(shmview_data(other), "old bytes");
        REFUSED(shmview_trylock(other), TIMED_OUT, "");
        OK(shmview_view_open(other, "float", "A", &v));
        OK(shmview_view_open(other, "int", "A", &v));
        OK(shmview_phase_get(other, &phase));
        ck_assert_str_eq(phase.name, "int");
        OK(shmview_detach(other));
    }
    OK(shmview_unlock(s));
    REFUSED(shmview_attach(conn, "unnamed", SHMVIEW_READ, 0, &manual), NOT_FOUND, "");
    ck_assert_str_eq(shmview_data(unnamed), "unnamed bytes");
    OK(shmview_detach(unnamed));
    manual = client_attach(conn, "manual", SHMVIEW_READ);
    ck_assert_str_eq(shmview_data(manual), "manual bytes");
    ck_assert(!daemon_has_data(&d, "unnamed"));
    OK(shmview_detach(manual));
    define(s, "more", "d");
    OK(shmview_detach(s));
    REFUSED(shmview_attach(conn, "s", SHMVIEW_READ, 0, &s), NOT_FOUND, ""); /* the last went */
    OK(shmview_remove(conn, "manual"));
    ck_assert_uint_eq(daemon_objects(&d), 0);
    end();
}
END_TEST

START_TEST(told_to_leave)
{
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    OK(shmview_lock(s));
    daemon_leave(&d);
    ck_assert(daemon_has_data(&d, "s"));
    daemon_restart(&d);
    ck_assert(daemon_said(&d, "took over 1 segments; 0 were lost, 0 of 1 attachments had died"));
    OK(shmview_ping(conn));
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    REFUSED(shmview_trylock(other), TIMED_OUT, "");
    OK(shmview_unlock(s));
    OK(shmview_lock(other));
    OK(shmview_unlock(other));
    OK(shmview_detach(other));
    OK(shmview_detach(s));
    end();
}
END_TEST

/* An id that a stale word names must not be given to another. */
START_TEST(generations_go_on)
{
    struct raw raw;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    raw_connect(&raw, d.socket);
    int64_t before = 0;
    for (int i = 0; i < 3; i++) {
        json_t *a = raw_call(&raw, "Attach", "{'name':'s','access':'read'}");
        ck_assert_int_eq(raw_int(a, "attachment.slot"), 1);
        ck_assert_int_gt(raw_int(a, "attachment.generation"), before);
        before = raw_int(a, "attachment.generation");
        char give_back[64];
        snprintf(give_back, sizeof give_back, "{'attachment':%jd}",
                 (intmax_t)raw_int(a, "attachment.id"));
        json_decref(a);
        json_decref(raw_call(&raw, "Detach", give_back));
        raw_close(&raw);
        replace();
        OK(shmview_ping(conn));
        raw_connect(&raw, d.socket);
    }
    raw_close(&raw);
    OK(shmview_detach(s));
    end();
}
END_TEST

/* --- Deaths in between --------------------------------------------------- */

static void lock_and_wait(struct child *me, void *arg)
{
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *s = client_attach(c, arg, SHMVIEW_WRITE);
    OK(shmview_lock(s));
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    OK(shmview_disconnect(c));
}

START_TEST(a_holder_that_dies_while_nobody_watches)
{
    struct child child;
    struct shmview_death death;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    child_start(&child, lock_and_wait, "s");
    child_hear(&child, 1);
    daemon_kill(&d);
    pid_t pid = child.pid;
    child_kill(&child);
    REFUSED(shmview_lock_until(s, shmview_deadline(50000000)), TIMED_OUT, "");
    daemon_restart(&d);
    ck_assert(daemon_said(&d, "1 of 2 attachments had died"));
    ck_assert_int_eq(shmview_lock_until(s, shmview_deadline(5000000000)), SHMVIEW_OWNER_DIED);
    OK(shmview_owner_died(s, &death));
    ck_assert_uint_eq(death.pid, (uint32_t)pid);
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    end();
}
END_TEST

/* The holder has sent nothing to the new daemon, which knows its process all the same. */
START_TEST(a_holder_that_dies_unclaimed)
{
    struct child child;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    child_start(&child, lock_and_wait, "s");
    child_hear(&child, 1);
    replace();
    REFUSED(shmview_trylock(s), TIMED_OUT, "");
    child_kill(&child);
    ck_assert_int_eq(shmview_lock_until(s, shmview_deadline(5000000000)), SHMVIEW_OWNER_DIED);
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    end();
}
END_TEST

START_TEST(a_holder_that_lives_on)
{
    struct child child;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    child_start(&child, lock_and_wait, "s");
    child_hear(&child, 1);
    replace();
    replace();
    REFUSED(shmview_trylock(s), TIMED_OUT, "");
    child_cue(&child);
    child_wait(&child);
    OK(shmview_lock(s));
    OK(shmview_unlock(s));
    OK(shmview_detach(s));
    end();
}
END_TEST

static void create_and_wait(struct child *me, void *arg)
{
    struct shmview_connection *c = client_connect(&d);
    (void)arg;
    client_create_with(c, "creators", 100, SHMVIEW_CREATOR, 0);
    client_create(c, "attached", 100);
    child_tell(me, 1);
    child_pause(me);
    OK(shmview_ping(c));
    child_tell(me, 2);
    child_pause(me);
}

START_TEST(lifetimes)
{
    struct child child;
    struct shmview_segment *s;
    begin();
    for (int i = 0; i < 3; i++) { /* dies: unwatched, unclaimed, claimed */
        child_start(&child, create_and_wait, NULL);
        child_hear(&child, 1);
        daemon_kill(&d);
        if (i == 0)
            child_kill(&child);
        daemon_restart(&d);
        if (i > 0)
            OK(shmview_detach(client_attach(conn, "creators", SHMVIEW_READ)));
        if (i == 2) {
            child_cue(&child);
            child_hear(&child, 2);
        }
        if (i > 0)
            child_kill(&child);
        AWAIT(daemon_objects(&d) == 0);
        REFUSED(shmview_attach(conn, "creators", SHMVIEW_READ, 0, &s), NOT_FOUND, "");
        REFUSED(shmview_attach(conn, "attached", SHMVIEW_READ, 0, &s), NOT_FOUND, "");
    }
    end();
}
END_TEST

/* --- What does not fit --------------------------------------------------- */

static void object_path(char path[300], const char *part)
{
    snprintf(path, 300, "/dev/shm/shmview.%s/%s", d.instance, part);
}

START_TEST(orphans_go_and_strangers_stay)
{
    char orphan[300], stranger[300];
    begin();
    object_path(orphan, "orphan");
    object_path(stranger, "stranger");
    daemon_kill(&d);
    close(open(orphan, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    close(open(stranger, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    bool is_root = geteuid() == 0;
    if (is_root)
        ck_assert_int_eq(chown(stranger, 65534, 65534), 0);
    daemon_restart(&d);
    ck_assert_int_eq(access(orphan, F_OK), -1);
    ck_assert_int_eq(access(stranger, F_OK), is_root ? 0 : -1);
    unlink(stranger);
    end();
}
END_TEST

START_TEST(objects_that_were_replaced)
{
    char path[300], id[64];
    struct raw raw;
    begin();
    struct shmview_segment *good = client_create(conn, "good", 100), *s;
    OK(shmview_detach(client_create_with(conn, "gone", 100, SHMVIEW_MANUAL, 0)));
    OK(shmview_detach(client_create_with(conn, "replaced", 100, SHMVIEW_MANUAL, 0)));
    OK(shmview_detach(client_create_with(conn, "cut", 100, SHMVIEW_MANUAL, 0)));
    raw_connect(&raw, d.socket);
    json_t *cut = raw_call(&raw, "Describe", "{'name':'cut'}");
    snprintf(id, sizeof id, "+%jd.liveness", (intmax_t)raw_int(cut, "segment.id"));
    json_decref(cut);
    raw_close(&raw);
    daemon_kill(&d);
    object_path(path, "gone");
    unlink(path);
    object_path(path, "replaced");
    unlink(path);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    object_path(path, id);
    ck_assert_int_eq(truncate(path, 100), 0);
    daemon_restart(&d);
    ck_assert(daemon_said(&d, "segment 'gone' (id"));
    ck_assert(daemon_said(&d, "its data: No such file"));
    ck_assert(daemon_said(&d, "its data: not what was created"));
    ck_assert(daemon_said(&d, "its liveness object: not what was created"));
    ck_assert(daemon_said(&d, "took over 1 segments; 3 were lost"));
    const char *names[] = {"gone", "replaced", "cut"};
    for (int i = 0; i < 3; i++)
        REFUSED(shmview_attach(conn, names[i], SHMVIEW_READ, 0, &s), NOT_FOUND, "");
    OK(shmview_detach(client_attach(conn, "good", SHMVIEW_READ)));
    OK(shmview_detach(good));
    end();
}
END_TEST

START_TEST(a_registry_that_is_none)
{
    char path[200], bad[220];
    begin();
    OK(shmview_detach(client_create_with(conn, "s", 100, SHMVIEW_MANUAL, 0)));
    snprintf(path, sizeof path, "%s.registry", d.socket);
    snprintf(bad, sizeof bad, "%s.bad", path);
    for (int i = 0; i < 2; i++) {
        daemon_kill(&d);
        FILE *f = fopen(path, i ? "r+e" : "we");
        if (i)
            fseek(f, 100, SEEK_SET);
        for (int k = 0; k < 20000; k++)
            fputc(k * 7, f);
        fclose(f);
        daemon_restart(&d);
        ck_assert(daemon_said(&d, "io.shmview.registry.bad, its segments are lost"));
        ck_assert_uint_eq(daemon_objects(&d), 0);
        OK(shmview_detach(client_create(conn, "s", 100)));
        ck_assert_int_eq(unlink(bad), 0);
    }
    end();
}
END_TEST

/* --- Clients ------------------------------------------------------------- */

START_TEST(a_call_waits_for_the_next_daemon)
{
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    daemon_kill(&d);
    int64_t began = await_now_ns();
    REFUSED(shmview_ping(conn), DISCONNECTED, "the daemon is gone");
    ck_assert_int_lt(await_now_ns() - began, 5000000000); /* the wait has a limit */
    OK(shmview_lock(s));                                  /* no daemon is needed */
    OK(shmview_unlock(s));
    daemon_restart(&d);
    OK(shmview_ping(conn));
    daemon_kill(&d);
    OK(shmview_detach(s)); /* nor for that */
    daemon_restart(&d);
    OK(shmview_ping(conn));
    AWAIT(daemon_objects(&d) == 0); /* the new one hears that it is not held */
    end();
}
END_TEST

START_TEST(event_loops)
{
    int fd, again;
    uint64_t what;
    begin();
    struct shmview_segment *s = client_create(conn, "s", 100);
    struct shmview_segment *other = client_attach(conn, "s", SHMVIEW_WRITE);
    OK(shmview_change_fd(s, &fd));
    OK(shmview_notify(other));
    AWAIT(read(fd, &what, sizeof what) == sizeof what);
    replace();
    AWAIT(read(fd, &what, sizeof what) == 0); /* the one that could write there is gone */
    OK(shmview_detach(other));
    OK(shmview_change_fd(s, &again));
    ck_assert_int_eq(again, fd);
    other = client_attach(conn, "s", SHMVIEW_WRITE);
    while (read(fd, &what, sizeof what) > 0)
        continue;
    OK(shmview_notify(other));
    AWAIT(read(fd, &what, sizeof what) == sizeof what);
    OK(shmview_detach(other));
    OK(shmview_detach(s));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(ids_are_not_given_out_again),
        SUITE_TEST(everything_is_there),
        SUITE_TEST(told_to_leave),
        SUITE_TEST(generations_go_on),
        SUITE_TEST(a_holder_that_dies_while_nobody_watches),
        SUITE_TEST(a_holder_that_dies_unclaimed),
        SUITE_TEST(a_holder_that_lives_on),
        SUITE_TEST(lifetimes),
        SUITE_TEST(orphans_go_and_strangers_stay),
        SUITE_TEST(objects_that_were_replaced),
        SUITE_TEST(a_registry_that_is_none),
        SUITE_TEST(a_call_waits_for_the_next_daemon),
        SUITE_TEST(event_loops),
        SUITE_END,
    };
    return suite_main("restart", tests);
}
