/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a daemon: which sockets the library tries, in what order, and what it reports if no
 * daemon answers. */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "session.h"

/* --- Finding ------------------------------------------------------------- */

START_TEST(without_starting_it_lists_what_was_tried)
{
    struct shmview_connection *none = NULL;
    char user[108];
    begin("600");
    snprintf(user, sizeof user, "%s/shmviewd/io.shmview (", place_directory());
    for (int i = 0; i < 2; i++) {
        REFUSED(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &none), NO_DAEMON, user);
        REFUSED(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &none), NO_DAEMON, session);
        REFUSED(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &none), NO_DAEMON, SYSTEM_SOCKET);
    }
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(place_daemons(), 0);
    ck_assert_int_ne(access(session, F_OK), 0);
    struct shmview_connection *conn = connect_default();
    OK(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &none)); /* there is one */
    OK(shmview_disconnect(none));
    OK(shmview_disconnect(conn));
    daemon_adopt(&d, session);
    daemon_stop(&d);
    end();
}
END_TEST

/* Starts the user's daemon, and a client of it. */
static struct shmview_connection *begin_with_users(void)
{
    char directory[64];
    begin("600");
    snprintf(directory, sizeof directory, "%s/shmviewd", place_directory());
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    daemon_start_named(&d, "shmviewd/io.shmview");
    return connect_default();
}

START_TEST(the_users_daemon_comes_first)
{
    struct shmview_connection *conn = begin_with_users();
    struct shmview_connection *same = client_connect(&d);
    struct shmview_segment *seg = client_create(conn, "here", 100);
    OK(shmview_detach(client_attach(same, "here", SHMVIEW_PEEK)));
    ck_assert_uint_eq(place_daemons(), 1);
    OK(shmview_detach(seg));
    OK(shmview_disconnect(same));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    end();
}
END_TEST

static void connect_while_it_restarts(struct child *me, void *arg)
{
    struct shmview_connection *mine;
    (void)arg;
    child_tell(me, 1);
    int r = shmview_connect(NULL, 0, &mine);
    child_tell(me, r);
    if (r < 0)
        return;
    ck_assert_str_eq(shmview_socket_path(mine), d.socket);
    OK(shmview_detach(client_attach(mine, "here", SHMVIEW_PEEK)));
    OK(shmview_disconnect(mine));
}

START_TEST(the_users_daemon_is_waited_for)
{
    struct child child;
    struct shmview_connection *conn = begin_with_users();
    struct shmview_segment *seg = client_create(conn, "here", 100);
    for (int killed = 0; killed < 2; killed++) {
        int64_t took;
        int r;
        do {
            if (killed)
                daemon_kill(&d);
            else
                daemon_leave(&d);
            int64_t began = await_now_ns();
            child_start(&child, connect_while_it_restarts, NULL);
            child_hear(&child, 1);
            pause_ms(100);
            daemon_restart(&d);
            took = await_now_ns() - began;
            r = child_hear_any(&child);
            child_wait(&child);
        } while (r < 0 && took > 700000000); /* a client waits for 0.9 s */
        ck_assert_int_eq(r, 0);
        ck_assert_int_ne(access(session, F_OK), 0);
    }
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    end();
}
END_TEST

START_TEST(a_users_daemon_that_does_not_come_is_not_replaced)
{
    char file[192];
    struct shmview_connection *none = NULL, *conn = begin_with_users();
    OK(shmview_disconnect(conn));
    daemon_leave(&d);
    snprintf(file, sizeof file, "%s.registry shows that a daemon has segments there", d.socket);
    int64_t began = await_now_ns();
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, file);
    ck_assert_int_lt(await_now_ns() - began, 5000000000);
    daemon_restart(&d);
    daemon_kill(&d);
    snprintf(file, sizeof file, "%s shows that a daemon has segments there", d.socket);
    REFUSED(shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &none), NO_DAEMON, file);
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(place_daemons(), 0);
    daemon_restart(&d);
    daemon_stop(&d); /* leaves nothing, so that a session may come in its place */
    conn = connect_default();
    ck_assert_str_eq(shmview_socket_path(conn), session);
    daemon_adopt(&d, session);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    end();
}
END_TEST

/* Takes one connection after the other, and hangs up: a daemon that turns clients away. */
static void hang_up_on_everybody(struct child *me, void *arg)
{
    int fd = *(const int *)arg;
    child_tell(me, 1);
    for (;;)
        close(accept(fd, NULL, NULL));
}

START_TEST(a_users_daemon_that_hangs_up_is_not_replaced)
{
    struct child child;
    struct shmview_connection *none = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    begin("600");
    snprintf(address.sun_path, sizeof address.sun_path, "%s/shmviewd", place_directory());
    ck_assert_int_eq(mkdir(address.sun_path, 0700), 0);
    strcat(address.sun_path, "/io.shmview");
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    child_start(&child, hang_up_on_everybody, &fd);
    child_hear(&child, 1);
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "it hung up");
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(place_daemons(), 0);
    child_kill(&child);
    close(fd);
    unlink(address.sun_path);
    end();
}
END_TEST

START_TEST(the_environment_comes_before_all)
{
    struct shmview_connection *none = NULL;
    char nowhere[108];
    begin("600");
    snprintf(nowhere, sizeof nowhere, "%s/nowhere", place_directory());
    setenv("SHMVIEW_SOCKET", nowhere, 1);
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, nowhere);
    REFUSED(shmview_connect(nowhere, 0, &none), NO_DAEMON, nowhere);
    ck_assert_ptr_null(none);
    ck_assert_uint_eq(place_daemons(), 0);
    daemon_start(&d);
    setenv("SHMVIEW_SOCKET", d.socket, 1);
    struct shmview_connection *conn = connect_default();
    REFUSED(shmview_connect(nowhere, 0, &none), NO_DAEMON, nowhere); /* an argument, before it */
    ck_assert_uint_eq(place_daemons(), 1);
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    unsetenv("SHMVIEW_SOCKET");
    end();
}
END_TEST

/* Without variables and without $PATH: the library has a daemon beside it, in a build as after an
 * installation. An archive has no place of its own. */
START_TEST(the_daemon_beside_the_library_is_started)
{
#ifndef SHMVIEW_ARCHIVE
    char path[PATH_MAX], *old_path = strdup(getenv("PATH"));
    struct stat found, expected;
    begin("1");
    unsetenv("SHMVIEW_DAEMON");
    /* not another one, in $PATH, whose name would fit */
    REFUSED(shmview_daemon_path(path, sizeof "shmviewd"), INVALID, "8 are the limit");
    unsetenv("PATH");
    OK(shmview_daemon_path(path, sizeof path));
    ck_assert_int_eq(stat(path, &found), 0);
    ck_assert_int_eq(stat(daemon_program(), &expected), 0);
    ck_assert_uint_eq(found.st_ino, expected.st_ino);
    struct shmview_connection *conn = connect_default();
    ck_assert_str_eq(shmview_socket_path(conn), session);
    OK(shmview_disconnect(conn));
    setenv("PATH", old_path, 1);
    free(old_path);
    end();
#endif
}
END_TEST

/* Lets $SHMVIEW_DAEMON be a script of the shell, which the caller unlinks. */
static void set_script(const char *path, const char *text)
{
    FILE *script = fopen(path, "we");
    ck_assert_ptr_nonnull(script);
    fprintf(script, "#!/bin/sh\n%s\n", text);
    ck_assert_int_eq(fchmod(fileno(script), 0700), 0);
    fclose(script);
    setenv("SHMVIEW_DAEMON", path, 1);
}

START_TEST(a_daemon_that_cannot_start_tells_why)
{
    struct shmview_connection *none = NULL;
    char path[64];
    begin("600");
    setenv("SHMVIEW_DAEMON", "/nonexistent/shmviewd", 1);
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "/nonexistent/shmviewd: No such file");
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "): set $SHMVIEW_DAEMON to the program");
    setenv("SHMVIEW_DAEMON", "/bin/false", 1);
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "/bin/false exited with status 1");
    snprintf(path, sizeof path, "%s/killed", place_directory());
    set_script(path, "kill -9 $$");
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "/killed was ended by signal 9");
    unlink(path);
    setenv("SHMVIEW_DAEMON", daemon_program(), 1);
    setenv("SHMVIEW_IDLE_EXIT", "soon", 1);
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "not 'soon'");
    setenv("SHMVIEW_IDLE_EXIT", "600", 1);
    snprintf(path, sizeof path, "%s/shmviewd", place_directory());
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); /* no directory */
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "Not a directory");
    unlink(path);
    ck_assert_ptr_null(none);
    end();
}
END_TEST

/* Its end has no status then. */
START_TEST(a_program_may_ignore_its_children)
{
    struct shmview_connection *none = NULL;
    begin("1");
    signal(SIGCHLD, SIG_IGN);
    setenv("SHMVIEW_DAEMON", "/bin/false", 1);
    int64_t began = await_now_ns();
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "/bin/false ended with an unknown status");
    ck_assert_int_lt(await_now_ns() - began, INT64_C(2000000000)); /* a start may last 10 s */
    ck_assert_ptr_null(none);
    setenv("SHMVIEW_DAEMON", daemon_program(), 1);
    OK(shmview_disconnect(connect_default()));
    signal(SIGCHLD, SIG_DFL);
    end();
}
END_TEST

/* Ends the wait at the count-th time that it is asked. */
static int count_down(void *arg)
{
    unsigned *count = arg;
    return --*count == 0;
}

START_TEST(the_wait_for_a_daemon_that_does_not_listen_can_be_ended)
{
    struct shmview_connection *none = NULL;
    unsigned count = 5;
    char path[64];
    begin("600");
    snprintf(path, sizeof path, "%s/mute", place_directory());
    set_script(path, "exec sleep 1000 2>&-");
    shmview_on_wait(count_down, &count);
    REFUSED(shmview_connect(NULL, 0, &none), INTERRUPTED, "");
    shmview_on_wait(NULL, NULL);
    ck_assert_ptr_null(none);
    unlink(path);
    end();
}
END_TEST

static pid_t forked = -1;

static int fork_once(void *arg)
{
    (void)arg;
    if (forked < 0)
        forked = fork();
    return 0;
}

/* The daemon that starts is not a child of that child. */
START_TEST(a_fork_during_the_wait_for_a_daemon)
{
    struct shmview_connection *conn = NULL;
    char path[64], text[PATH_MAX + 64];
    begin("1");
    snprintf(path, sizeof path, "%s/slow", place_directory());
    snprintf(text, sizeof text, "sleep 0.3\nexec %s \"$@\"", daemon_program());
    set_script(path, text);
    shmview_on_wait(fork_once, NULL);
    int r = shmview_connect(NULL, 0, &conn);
    if (forked == 0)
        _exit(r == -SHMVIEW_ERR_INTERRUPTED ? 0 : 1);
    OK(r);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(process_wait(forked), 0);
    OK(shmview_disconnect(conn));
    unlink(path);
    end();
}
END_TEST

/* A process that outlives the daemon has inherited its standard error. */
START_TEST(the_end_of_a_daemon_is_seen_while_its_errors_stay_open)
{
    struct shmview_connection *none = NULL;
    char path[64], other[64], text[200];
    int pid = 0;
    begin("600");
    snprintf(path, sizeof path, "%s/left", place_directory());
    snprintf(other, sizeof other, "%s/other", place_directory());
    snprintf(text, sizeof text, "sleep 1000 &\necho $! >%s\necho out of order >&2\nexit 1", other);
    set_script(path, text);
    int64_t began = await_now_ns();
    REFUSED(shmview_connect(NULL, 0, &none), NO_DAEMON, "out of order");
    int64_t lasted = await_now_ns() - began;
    FILE *file = fopen(other, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &pid), 1);
    fclose(file);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_lt(lasted, INT64_C(8000000000)); /* a start may last 10 s */
    unlink(other);
    unlink(path);
    end();
}
END_TEST

START_TEST(paths_have_a_limit)
{
    struct shmview_connection *none = NULL;
    char longest[200] = "/";
    begin("600");
    memset(longest + 1, 'p', 107);
    REFUSED(shmview_connect(longest, 0, &none), INVALID, "at most 107 bytes");
    setenv("SHMVIEW_SOCKET", longest, 1);
    REFUSED(shmview_connect(NULL, 0, &none), INVALID, "at most 107 bytes");
    unsetenv("SHMVIEW_SOCKET");
    setenv("XDG_RUNTIME_DIR", longest, 1);
    REFUSED(shmview_connect(NULL, 0, &none), INVALID, "XDG_RUNTIME_DIR");
    longest[107] = '\0';
    REFUSED(shmview_connect(longest, 0, &none), NO_DAEMON, "No such file");
    REFUSED(shmview_connect("", 0, &none), INVALID, "empty");
    REFUSED(shmview_connect(longest, 2, &none), INVALID, "0x2");
    ck_assert_ptr_null(none);
    end();
}
END_TEST

START_TEST(a_relative_path_leads_to_one_place)
{
    char cwd[256];
    struct shmview_connection *conn = NULL, *none = NULL;
    ck_assert_ptr_nonnull(getcwd(cwd, sizeof cwd));
    daemon_start(&d);
    ck_assert_int_eq(chdir(place_directory()), 0);
    OK(shmview_connect(strrchr(d.socket, '/') + 1, 0, &conn));
    ck_assert_str_eq(shmview_socket_path(conn), d.socket);
    struct shmview_segment *seg = client_create(conn, "s", 100);
    ck_assert_int_eq(chdir("/"), 0);
    daemon_kill(&d);
    daemon_restart(&d);
    OK(shmview_ping(conn));
    OK(shmview_detach(client_attach(conn, "s", SHMVIEW_PEEK)));
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));

    char deep[400], longest[108];
    snprintf(deep, sizeof deep, "%s/%0100d", place_directory(), 0);
    ck_assert_int_eq(mkdir(deep, 0700), 0);
    ck_assert_int_eq(chdir(deep), 0);
    REFUSED(shmview_connect("socket", 0, &none), INVALID, "at most 107 bytes: /");
    ck_assert_int_eq(rmdir(deep), 0);
    REFUSED(shmview_connect("socket", 0, &none), SYSTEM, "current directory");
    memset(longest, 'p', 107);
    longest[107] = '\0';
    ck_assert_int_eq(chdir("/"), 0);
    REFUSED(shmview_connect(longest, 0, &none), INVALID, "at most 107 bytes: /p");
    ck_assert_ptr_null(none);
    ck_assert_int_eq(chdir(cwd), 0);
    daemon_stop(&d);
    end();
}
END_TEST

/* --- Something else answers there ---------------------------------------- */

/* Serves one connection: answers its first request with the text in arg, and hangs up. */
static void impersonate(struct child *me, void *arg)
{
    const char *text = arg;
    char request[256];
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/impostor", place_directory());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    child_tell(me, 1);
    int peer = accept(fd, NULL, NULL);
    ck_assert_int_ge(peer, 0);
    ck_assert_int_gt(recv(peer, request, sizeof request, 0), 0);
    ck_assert_int_ge(send(peer, text, strlen(text), 0), 0);
    if (text[0])
        ck_assert_int_eq(send(peer, "", 1, 0), 1);
    shutdown(peer, SHUT_RDWR);
    unlink(address.sun_path);
}

START_TEST(what_is_no_shmviewd_is_told_apart)
{
    static const struct {
        const char *text;
        int error;
        const char *part;
    } replies[] = {
        {"HTTP/1.1 400 Bad Request", SHMVIEW_ERR_PROTOCOL, "/impostor: "},
        {"[]", SHMVIEW_ERR_PROTOCOL, "/impostor: "},
        {"{\"error\": 1}", SHMVIEW_ERR_PROTOCOL, "/impostor: "},
        {"{\"error\": \"org.varlink.service.InterfaceNotFound\", \"parameters\": {}}",
         SHMVIEW_ERR_PROTOCOL, "InterfaceNotFound"},
        {"", SHMVIEW_ERR_NO_DAEMON, "it hung up"},
    };
    struct child child;
    struct shmview_connection *none = NULL;
    char path[64];
    begin("600");
    snprintf(path, sizeof path, "%s/impostor", place_directory());
    for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s", replies[i].text);
        child_start(&child, impersonate, text);
        child_hear(&child, 1);
        client_expect(shmview_connect(path, 0, &none), -replies[i].error, replies[i].part,
                      replies[i].text);
        child_wait(&child);
    }
    ck_assert_ptr_null(none);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(without_starting_it_lists_what_was_tried),
        SUITE_TEST(the_users_daemon_comes_first),
        SUITE_TEST(the_users_daemon_is_waited_for),
        SUITE_TEST(a_users_daemon_that_does_not_come_is_not_replaced),
        SUITE_TEST(a_users_daemon_that_hangs_up_is_not_replaced),
        SUITE_TEST(the_environment_comes_before_all),
        SUITE_TEST(the_daemon_beside_the_library_is_started),
        SUITE_TEST(a_daemon_that_cannot_start_tells_why),
        SUITE_TEST(a_program_may_ignore_its_children),
        SUITE_TEST(the_wait_for_a_daemon_that_does_not_listen_can_be_ended),
        SUITE_TEST(a_fork_during_the_wait_for_a_daemon),
        SUITE_TEST(the_end_of_a_daemon_is_seen_while_its_errors_stay_open),
        SUITE_TEST(paths_have_a_limit),
        SUITE_TEST(a_relative_path_leads_to_one_place),
        SUITE_TEST(what_is_no_shmviewd_is_told_apart),
        SUITE_END,
    };
    return session_main("session_found", tests);
}
