/* SPDX-License-Identifier: Apache-2.0 */
/* Deaths of clients, which the daemon must notice, and of the daemon, which must
 * not stop anybody. Deaths inside the lock are in check_lock_death.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
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
    AWAIT(daemon_objects(&d) == 0);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static json_int_t attachments(struct raw *raw, const char *name)
{
    char parameters[64];
    snprintf(parameters, sizeof parameters, "{'name': '%s'}", name);
    json_t *p = raw_call(raw, "Describe", parameters);
    json_int_t n = raw_int(p, "segment.attachments");
    json_decref(p);
    return n;
}

/* --- Clients ------------------------------------------------------------- */

static void attach_thrice(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *a = client_connect(&d), *b = client_connect(&d);
    client_attach(a, "seg", SHMVIEW_WRITE);
    client_attach(a, "seg", SHMVIEW_PEEK);
    client_attach(b, "seg", SHMVIEW_READ);
    child_tell(me, 1);
    child_pause(me);
}

START_TEST(attachments_go_with_their_process)
{
    struct child children[3];
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    for (int i = 0; i < 3; i++) {
        child_start(&children[i], attach_thrice, NULL);
        child_hear(&children[i], 1);
    }
    ck_assert_int_eq(attachments(&raw, "seg"), 10);
    child_kill(&children[1]);
    AWAIT(attachments(&raw, "seg") == 7);
    child_kill(&children[0]);
    AWAIT(attachments(&raw, "seg") == 4);
    child_cue(&children[2]); /* leaves without detaching */
    child_wait(&children[2]);
    AWAIT(attachments(&raw, "seg") == 1);
    raw_close(&raw);
    OK(shmview_detach(seg));
    end();
}
END_TEST

START_TEST(a_stopped_process_is_not_dead)
{
    struct child child;
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    child_start(&child, attach_thrice, NULL);
    child_hear(&child, 1);
    child_stop(&child);
    for (int i = 0; i < 20; i++) {
        OK(shmview_ping(conn));
        ck_assert_int_eq(attachments(&raw, "seg"), 4);
    }
    child_continue(&child);
    child_cue(&child);
    child_wait(&child);
    AWAIT(attachments(&raw, "seg") == 1);
    raw_close(&raw);
    OK(shmview_detach(seg));
    end();
}
END_TEST

/* Leaves a child behind that has all its descriptors, the socket among them. */
static void attach_and_fork(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    client_attach(c, "seg", SHMVIEW_WRITE);
    pid_t pid = fork();
    if (pid == 0)
        while (true)
            pause();
    child_tell(me, pid);
    child_pause(me);
}

START_TEST(an_heir_of_the_socket_does_not_keep_the_dead_alive)
{
    struct child child;
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    child_start(&child, attach_and_fork, NULL);
    pid_t heir = child_hear_any(&child);
    ck_assert_int_eq(attachments(&raw, "seg"), 2);
    child_kill(&child);
    AWAIT(attachments(&raw, "seg") == 1);
    ck_assert(process_lives(heir));
    process_kill(heir);
    raw_close(&raw);
    OK(shmview_detach(seg));
    end();
}
END_TEST

static void attach_and_exec(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    client_attach(c, "seg", SHMVIEW_WRITE);
    child_tell(me, 1);
    child_pause(me);
    execl("/bin/sleep", "sleep", "600", (char *)NULL);
    _exit(127);
}

START_TEST(a_program_that_is_replaced_has_hung_up)
{
    struct child child;
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    child_start(&child, attach_and_exec, NULL);
    child_hear(&child, 1);
    ck_assert_int_eq(attachments(&raw, "seg"), 2);
    child_cue(&child);
    AWAIT(attachments(&raw, "seg") == 1);
    ck_assert(process_lives(child.pid));
    child_kill(&child);
    raw_close(&raw);
    OK(shmview_detach(seg));
    end();
}
END_TEST

START_TEST(descriptors_of_the_dead_come_back)
{
    struct child child;
    daemon_start(&d);
    unsigned before = process_descriptors(d.pid);
    conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    for (int i = 0; i < 20; i++) {
        child_start(&child, attach_thrice, NULL);
        child_hear(&child, 1);
        child_kill(&child);
    }
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    AWAIT(process_descriptors(d.pid) == before);
    daemon_stop(&d);
}
END_TEST

/* --- The daemon ---------------------------------------------------------- */

#define ROUNDS 2000

/* Adds to the counter under the lock; the other half is the test's own. */
static void count_up(struct shmview_segment *seg, unsigned n)
{
    volatile unsigned *counter = shmview_data(seg);
    for (unsigned i = 0; i < n; i++) {
        OK(shmview_lock(seg));
        *counter = *counter + 1;
        OK(shmview_unlock(seg));
    }
}

static void count_without_daemon(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    struct shmview_segment *seg = client_attach(c, "seg", SHMVIEW_WRITE);
    OK(shmview_lock(seg));
    child_tell(me, 1);
    child_pause(me); /* the daemon dies during the pause */
    ck_assert_str_eq((char *)shmview_data(seg) + 8, "still here");
    OK(shmview_unlock(seg));
    count_up(seg, ROUNDS);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(c));
}

START_TEST(clients_go_on_without_the_daemon)
{
    struct child child;
    struct shmview_view v;
    begin();
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    child_start(&child, count_without_daemon, NULL);
    child_hear(&child, 1);
    REFUSED(shmview_trylock(seg), TIMED_OUT, "'seg'");
    daemon_kill(&d);
    strcpy((char *)shmview_data(seg) + 8, "still here");
    REFUSED(shmview_lock_until(seg, shmview_deadline(1000000)), TIMED_OUT, "'seg'");
    child_cue(&child);
    count_up(seg, ROUNDS);
    child_wait(&child);
    ck_assert_uint_eq(*(unsigned *)shmview_data(seg), 2 * ROUNDS);
    OK(shmview_view_cast(seg, "uint32", 0, 4, &v));
    ck_assert_uint_eq(*SHMVIEW_DATA(unsigned, &v), 2 * ROUNDS);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_restart(&d); /* sweeps */
    daemon_stop(&d);
}
END_TEST

START_TEST(calls_say_that_the_daemon_is_gone)
{
    struct shmview_segment *none = NULL;
    struct shmview_connection *nobody = NULL;
    struct shmview_view v;
    const struct shmview_view_spec spec = {.name = "v", .format = "b"};
    begin();
    struct shmview_segment *seg = client_create(conn, "seg", 100);
    daemon_kill(&d);
    for (int i = 0; i < 2; i++) {
        REFUSED(shmview_ping(conn), DISCONNECTED, d.socket);
        REFUSED(shmview_create(conn, "new", 1, NULL, &none), DISCONNECTED, d.socket);
        REFUSED(shmview_attach(conn, "seg", SHMVIEW_READ, 0, &none), DISCONNECTED, d.socket);
        REFUSED(shmview_remove(conn, "seg"), DISCONNECTED, d.socket);
        REFUSED(shmview_define(seg, "l", &spec, 1), DISCONNECTED, d.socket);
        REFUSED(shmview_view_open(seg, "l", "v", &v), DISCONNECTED, d.socket);
    }
    REFUSED(shmview_connect(d.socket, 0, &nobody), NO_DAEMON, d.socket);
    ck_assert_ptr_null(none);
    ck_assert_ptr_null(nobody);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_restart(&d);
    daemon_stop(&d);
}
END_TEST

static void call_while_it_stands_still(struct child *me, void *arg)
{
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    child_tell(me, 1);
    child_pause(me);
    child_tell(me, 2);
    REFUSED(shmview_ping(c), DISCONNECTED, d.socket);
    OK(shmview_disconnect(c));
}

START_TEST(a_call_under_way_does_not_hang)
{
    struct child child;
    begin();
    child_start(&child, call_while_it_stands_still, NULL);
    child_hear(&child, 1);
    process_stop(d.pid);
    child_cue(&child);
    child_hear(&child, 2);
    daemon_kill(&d);
    child_wait(&child);
    OK(shmview_disconnect(conn));
    daemon_restart(&d);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(attachments_go_with_their_process),
        SUITE_TEST(a_stopped_process_is_not_dead),
        SUITE_TEST(an_heir_of_the_socket_does_not_keep_the_dead_alive),
        SUITE_TEST(a_program_that_is_replaced_has_hung_up),
        SUITE_TEST(descriptors_of_the_dead_come_back),
        SUITE_TEST(clients_go_on_without_the_daemon),
        SUITE_TEST(calls_say_that_the_daemon_is_gone),
        SUITE_TEST(a_call_under_way_does_not_hang),
        SUITE_END,
    };
    return suite_main("death", tests);
}
