/* SPDX-License-Identifier: Apache-2.0 */
/* How shmviewd starts, or refuses to start and reports the reason. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/await.h"
#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/place.h"
#include "support/suite.h"

static char text[4096];

static void expect_run(const char *arguments, int status, const char *part)
{
    int got = daemon_run(arguments, text, sizeof text);
    ck_assert_msg(got == status, "%s: status %d, \"%s\"", arguments, got, text);
    ck_assert_msg(strstr(text, part) != NULL, "%s: no '%s' in \"%s\"", arguments, part, text);
}

START_TEST(options_are_explained)
{
    expect_run("--help", 0, "--socket PATH");
    expect_run("--version", 0, "shmviewd 0.");
    expect_run("--wrong", 2, "--help");
    expect_run("--socket", 2, "--help");
    expect_run("--socket ''", 2, "1 to 107");
    expect_run("--idle-exit -1", 2, "0 to 1000000");
    expect_run("--idle-exit 1x", 2, "not '1x'");
    expect_run("--idle-exit 1000001", 2, "0 to 1000000");
    expect_run("more", 2, "unexpected argument 'more'");
    char arguments[160];
    snprintf(arguments, sizeof arguments, "--socket /tmp/%0110d", 1);
    expect_run(arguments, 2, "1 to 107");
    setenv("SHMVIEW_SOCKET", arguments + strlen("--socket "), 1);
    expect_run("", 2, "at most 107 bytes");
    unsetenv("SHMVIEW_SOCKET");
}
END_TEST

START_TEST(a_socket_has_one_daemon)
{
    struct daemon d;
    char arguments[128];
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "seg", 10);
    snprintf(arguments, sizeof arguments, "--socket %s", d.socket);
    expect_run(arguments, 1, "another shmviewd serves it");
    OK(shmview_ping(conn));
    ck_assert_uint_eq(daemon_objects(&d), 3);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

START_TEST(two_daemons_do_not_mix)
{
    struct daemon a, b;
    struct shmview_segment *none = NULL;
    daemon_start_named(&a, "a");
    daemon_start_named(&b, "b");
    ck_assert_str_ne(a.instance, b.instance);
    struct shmview_connection *of_a = client_connect(&a), *of_b = client_connect(&b);
    struct shmview_segment *seg = client_create(of_a, "seg", 10);
    REFUSED(shmview_attach(of_b, "seg", SHMVIEW_READ, 0, &none), NOT_FOUND, "'seg'");
    struct shmview_segment *namesake = client_create(of_b, "seg", 20);
    daemon_kill(&b);
    daemon_restart(&b);
    ck_assert_uint_eq(daemon_objects(&a), 3); /* swept its own only */
    OK(shmview_detach(namesake));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(of_a));
    OK(shmview_disconnect(of_b));
    daemon_stop(&a);
    daemon_stop(&b);
}
END_TEST

START_TEST(what_is_no_socket_is_left_alone)
{
    char path[64], arguments[80];
    struct stat st;
    snprintf(path, sizeof path, "%s/precious", place_directory());
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, "precious", 8), 8);
    close(fd);
    snprintf(arguments, sizeof arguments, "--socket %s", path);
    expect_run(arguments, 1, "is in the way: it is not a socket");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 8);
    snprintf(arguments, sizeof arguments, "--socket %s/below", path);
    expect_run(arguments, 1, "Not a directory");
    unlink(path);
}
END_TEST

START_TEST(missing_directories_are_made)
{
    char path[64], arguments[140], socket[100];
    struct stat st;
    struct daemon d = {0};
    snprintf(path, sizeof path, "%s/new/newer", place_directory());
    snprintf(socket, sizeof socket, "%s/io.shmview", path);
    snprintf(arguments, sizeof arguments, "--session --idle-exit 600 --socket %s", socket);
    umask(0);
    expect_run(arguments, 0, "listening on"); /* returns when it does */
    daemon_adopt(&d, socket);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0700);
    daemon_stop(&d);
}
END_TEST

START_TEST(the_socket_of_another_is_not_removed)
{
    struct daemon d;
    char moved[120];
    daemon_start(&d);
    /* somebody put another file in its place */
    snprintf(moved, sizeof moved, "%s.moved", d.socket);
    ck_assert_int_eq(rename(d.socket, moved), 0);
    close(open(d.socket, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ck_assert_int_eq(kill(d.pid, SIGINT), 0);
    ck_assert_int_eq(process_wait(d.pid), 0);
    ck_assert_int_eq(access(d.socket, F_OK), 0);
    unlink(d.socket);
    unlink(moved);
}
END_TEST

START_TEST(an_interrupt_ends_it_as_well)
{
    struct daemon d;
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "seg", 10);
    ck_assert_int_eq(kill(d.pid, SIGINT), 0);
    daemon_await_end(&d);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
}
END_TEST

/* The first signal decides, and no other ends the daemon before it has removed everything. */
START_TEST(further_signals_change_nothing)
{
    static const int further[] = {SIGTERM, SIGHUP, SIGINT};
    struct daemon d;
    daemon_start(&d);
    struct shmview_connection *conn = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "seg", 10);
    for (unsigned i = 0; i < sizeof further / sizeof further[0]; i++) {
        siginfo_t info = {0};
        ck_assert_int_eq(kill(d.pid, SIGINT), 0);
        while (info.si_pid == 0) { /* it has not ended */
            kill(d.pid, further[i]);
            ck_assert_int_eq(waitid(P_PID, (id_t)d.pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        }
        daemon_await_end(&d);
        daemon_restart(&d);
    }
    daemon_stop(&d);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
}
END_TEST

/* Its socket is there before it serves. */
START_TEST(an_interrupt_ends_it_while_it_starts)
{
    char socket[108];
    for (int i = 0; i < 5; i++) {
        snprintf(socket, sizeof socket, "%s/early", place_directory());
        pid_t pid = fork();
        ck_assert_int_ge(pid, 0);
        if (pid == 0) {
            execl(daemon_program(), "shmviewd", "--socket", socket, (char *)NULL);
            _exit(127);
        }
        AWAIT(access(socket, F_OK) == 0);
        ck_assert_int_eq(kill(pid, SIGINT), 0);
        ck_assert_int_eq(process_wait(pid), 0);
        ck_assert_int_ne(access(socket, F_OK), 0);
    }
}
END_TEST

/* Starts it with the end of a pipe, and with or without standard input, output and error. Returns
 * what it writes to the pipe: "" where it does not start. */
static const char *start_with_pipe(const char *socket, bool standard, pid_t *ret_pid)
{
    static char told[8];
    char fd[16];
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    snprintf(fd, sizeof fd, "%d", ends[1]);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        close(ends[0]);
        const char *program = daemon_program();
        for (int i = 0; !standard && i < 3; i++)
            close(i);
        execl(program, "shmviewd", "--socket", socket, "--ready-fd", fd, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    ssize_t n = read(ends[0], told, sizeof told - 1); /* until it lets go */
    told[n < 0 ? 0 : n] = '\0';
    ck_assert_int_eq(n > 0 ? read(ends[0], told + n, 1) : 0, 0);
    close(ends[0]);
    *ret_pid = pid;
    return told;
}

START_TEST(it_tells_when_it_is_ready)
{
    char socket[108];
    pid_t pid, other;
    struct shmview_connection *conn;
    snprintf(socket, sizeof socket, "%s/ready", place_directory());
    ck_assert_str_eq(start_with_pipe(socket, true, &pid), "\n");
    OK(shmview_connect(socket, 0, &conn)); /* at once */
    OK(shmview_disconnect(conn));
    ck_assert_str_eq(start_with_pipe(socket, true, &other), "");
    ck_assert_int_eq(process_wait(other), 1 << 8); /* the first one serves */
    ck_assert_int_eq(kill(pid, SIGINT), 0);
    ck_assert_int_eq(process_wait(pid), 0);
}
END_TEST

/* No file that it opens gets the number of standard error, to which it logs. */
START_TEST(without_standard_files)
{
    struct daemon d;
    char socket[108], bad[128];
    pid_t pid;
    struct shmview_connection *conn;
    snprintf(socket, sizeof socket, "%s/closed", place_directory());
    snprintf(bad, sizeof bad, "%s.registry.bad", socket);
    ck_assert_str_eq(start_with_pipe(socket, false, &pid), "\n");
    OK(shmview_connect(socket, 0, &conn));
    OK(shmview_detach(client_create_with(conn, "s", 10, SHMVIEW_MANUAL, 0)));
    OK(shmview_disconnect(conn));
    ck_assert_int_eq(kill(pid, SIGTERM), 0);
    ck_assert_int_eq(process_wait(pid), 0);
    daemon_start_named(&d, "closed");
    ck_assert_int_ne(access(bad, F_OK), 0);
    conn = client_connect(&d);
    OK(shmview_remove(conn, "s"));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(options_are_explained),
        SUITE_TEST(a_socket_has_one_daemon),
        SUITE_TEST(two_daemons_do_not_mix),
        SUITE_TEST(what_is_no_socket_is_left_alone),
        SUITE_TEST(missing_directories_are_made),
        SUITE_TEST(the_socket_of_another_is_not_removed),
        SUITE_TEST(an_interrupt_ends_it_as_well),
        SUITE_TEST(further_signals_change_nothing),
        SUITE_TEST(an_interrupt_ends_it_while_it_starts),
        SUITE_TEST(it_tells_when_it_is_ready),
        SUITE_TEST(without_standard_files),
        SUITE_END,
    };
    return suite_main("start", tests);
}
