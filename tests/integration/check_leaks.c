/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the test support: it finds everything that a test leaves, and notices a child that
 * fails. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/raw.h"
#include "support/suite.h"

static void expect_left(const char *what)
{
    char text[2048];
    ck_assert(!place_left_nothing(text, sizeof text));
    ck_assert_msg(strstr(text, what) != NULL, "no '%s' in:\n%s", what, text);
}

START_TEST(finds_a_descriptor)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    expect_left("/dev/null");
    close(fd);
}
END_TEST

START_TEST(finds_a_descriptor_in_place_of_another)
{
    int before = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    place_enter();
    int after = dup(before);
    close(before);
    expect_left("/dev/zero");
    close(after);
}
END_TEST

static void do_pause(struct child *me, void *arg)
{
    (void)arg;
    child_pause(me);
}

START_TEST(finds_a_process)
{
    struct child child;
    child_start(&child, do_pause, NULL);
    expect_left("a process");
    child_kill(&child);
}
END_TEST

/* Starts a child of its own and leaves it. */
static void leave_orphan(struct child *me, void *arg)
{
    (void)arg;
    pid_t pid = fork();
    if (pid == 0)
        while (true)
            pause();
    child_tell(me, pid);
}

START_TEST(finds_an_orphan)
{
    struct child child;
    child_start(&child, leave_orphan, NULL);
    pid_t orphan = child_hear_any(&child);
    child_wait(&child);
    expect_left("a process");
    process_kill(orphan);
}
END_TEST

START_TEST(finds_a_socket)
{
    struct daemon d;
    daemon_start(&d);
    daemon_kill(&d);
    expect_left("/io.shmview\n");
    daemon_restart(&d);
    daemon_stop(&d);
}
END_TEST

START_TEST(finds_an_object)
{
    struct daemon d;
    char directory[128], path[160];
    daemon_start(&d);
    daemon_stop(&d);
    snprintf(directory, sizeof directory, "/dev/shm/shmview.%s", d.instance);
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    expect_left(directory);
    snprintf(path, sizeof path, "%s/+1.control", directory);
    int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    expect_left(path);
    unlink(path);
    rmdir(directory);
}
END_TEST

START_TEST(finds_a_segment_of_a_killed_daemon)
{
    struct daemon d;
    struct raw raw;
    daemon_start(&d);
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Create", "{'name': 'left', 'size': 1}");
    raw_close(&raw);
    daemon_kill(&d);
    expect_left("/left\n");
    daemon_restart(&d);
    daemon_stop(&d);
}
END_TEST

START_TEST(finds_nothing_after_a_good_test)
{
    char text[2048];
    struct daemon d;
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "a", 1);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    ck_assert_msg(place_left_nothing(text, sizeof text), "%s", text);
    ck_assert_int_ne(access(place_directory(), F_OK), 0);
}
END_TEST

static void fail_here(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    ck_abort_msg("meant to fail");
}

/* child_wait() would end this test, as it should. */
START_TEST(notices_a_child_that_fails)
{
    struct child child;
    child_start(&child, fail_here, NULL);
    int status = process_wait(child.pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 0);
    close(child.fd);
}
END_TEST

START_TEST(child_dies_and_stops_on_cue)
{
    struct child child;
    child_start(&child, do_pause, NULL);
    ck_assert(process_lives(child.pid));
    child_stop(&child);
    child_continue(&child);
    child_cue(&child);
    child_wait(&child);

    child_start(&child, do_pause, NULL);
    pid_t pid = child.pid;
    child_kill(&child);
    ck_assert(!process_lives(pid));
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(finds_a_descriptor),
        SUITE_TEST(finds_a_descriptor_in_place_of_another),
        SUITE_TEST(finds_a_process),
        SUITE_TEST(finds_an_orphan),
        SUITE_TEST(finds_a_socket),
        SUITE_TEST(finds_an_object),
        SUITE_TEST(finds_a_segment_of_a_killed_daemon),
        SUITE_TEST(finds_nothing_after_a_good_test),
        SUITE_TEST(notices_a_child_that_fails),
        SUITE_TEST(child_dies_and_stops_on_cue),
        SUITE_END,
    };
    return suite_main("leaks", tests);
}
