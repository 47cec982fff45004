/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the options of shmviewd and the environment variables that stand in for them. */
#include "unit/unit.h"

#include <fcntl.h>
#include <getopt.h>
#include <sys/mman.h>

#include "daemon/config/options.h"

static struct options options;
static char said[2][4096]; /* on standard output, and on standard error */

static void clear_environment(void)
{
    unsetenv("SHMVIEW_SOCKET");
    unsetenv("SHMVIEW_IDLE_EXIT");
    unsetenv("SHMVIEW_CONFIG");
    setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
}

/* Reads the arguments, which end with NULL, and keeps what is printed. Returns the result. */
static int read_args(char **args)
{
    int fds[2], saved[2], n = 0;
    while (args[n])
        n++;
    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        fds[i] = memfd_create("said", MFD_CLOEXEC);
        saved[i] = dup(i + 1);
        dup2(fds[i], i + 1);
    }
    optind = 0; /* makes glibc start from the beginning */
    int status = options_read(&options, n, args);
    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        dup2(saved[i], i + 1);
        ssize_t bytes = pread(fds[i], said[i], sizeof said[i] - 1, 0);
        said[i][bytes > 0 ? bytes : 0] = '\0';
        close(saved[i]);
        close(fds[i]);
    }
    return status;
}

#define SELF      "shmviewd"
#define READ(...) read_args((char *[]){__VA_ARGS__, NULL})

static void goes_on(int status)
{
    ck_assert_int_eq(status, -1);
    ck_assert_str_eq(said[0], "");
    ck_assert_str_eq(said[1], "");
}

static void refused(int status, const char *part)
{
    ck_assert_int_eq(status, 2);
    ck_assert_str_eq(said[0], "");
    unit_assert_holds(said[1], part);
    unit_assert_holds(said[1], "shmviewd");
}

START_TEST(no_arguments)
{
    clear_environment();
    goes_on(READ(SELF));
    ck_assert_str_eq(options.socket,
                     geteuid() ? "/run/user/7/shmviewd/io.shmview" : "/run/shmviewd/io.shmview");
    ck_assert(!options.session);
    ck_assert_uint_eq(options.idle_exit, 0);
}
END_TEST

START_TEST(socket_option)
{
    clear_environment();
    goes_on(READ(SELF, "--socket", "/tmp/x"));
    ck_assert_str_eq(options.socket, "/tmp/x");
    goes_on(READ(SELF, "--socket=relative/path"));
    ck_assert_str_eq(options.socket, "relative/path");
    goes_on(READ(SELF, "--socket", "/a", "--socket", "/b")); /* the last one counts */
    ck_assert_str_eq(options.socket, "/b");
    setenv("SHMVIEW_SOCKET", "/env", 1);
    goes_on(READ(SELF, "--socket", "/tmp/x"));
    ck_assert_str_eq(options.socket, "/tmp/x");
    goes_on(READ(SELF));
    ck_assert_str_eq(options.socket, "/env");
    goes_on(READ(SELF, "--session"));
    ck_assert_str_eq(options.socket, "/env");
    setenv("SHMVIEW_SOCKET", "", 1); /* as if it were not there */
    goes_on(READ(SELF, "--session"));
    ck_assert_str_eq(options.socket, "/run/user/7/shmviewd/session/io.shmview");
}
END_TEST

START_TEST(socket_that_is_too_long)
{
    char path[200];
    clear_environment();
    memset(path, 'p', sizeof path);
    path[107] = '\0';
    goes_on(READ(SELF, "--socket", path));
    ck_assert_str_eq(options.socket, path);
    setenv("SHMVIEW_SOCKET", path, 1);
    goes_on(READ(SELF));
    ck_assert_str_eq(options.socket, path);
    path[107] = 'p';
    path[108] = '\0';
    refused(READ(SELF, "--socket", path), "1 to 107 bytes");
    setenv("SHMVIEW_SOCKET", path, 1);
    refused(READ(SELF), path);
    refused(READ(SELF, "--session"), "at most 107 bytes");
    goes_on(READ(SELF, "--socket", "/short"));
    unsetenv("SHMVIEW_SOCKET");
    path[0] = '/';
    setenv("XDG_RUNTIME_DIR", path, 1);
    refused(READ(SELF, "--session"), "XDG_RUNTIME_DIR");
    refused(READ(SELF, "--socket", ""), "1 to 107 bytes");
    refused(READ(SELF, "--socket"), "--help");
}
END_TEST

START_TEST(session)
{
    clear_environment();
    goes_on(READ(SELF, "--session"));
    ck_assert(options.session);
    ck_assert_uint_eq(options.idle_exit, 10);
    ck_assert_str_eq(options.socket, "/run/user/7/shmviewd/session/io.shmview");
    setenv("SHMVIEW_IDLE_EXIT", "3", 1);
    goes_on(READ(SELF, "--session"));
    ck_assert_uint_eq(options.idle_exit, 3);
    goes_on(READ(SELF, "--session", "--idle-exit", "4"));
    ck_assert_uint_eq(options.idle_exit, 4);
    goes_on(READ(SELF, "--idle-exit=5", "--session", "--socket=/s"));
    ck_assert_uint_eq(options.idle_exit, 5);
    ck_assert_str_eq(options.socket, "/s");
    goes_on(READ(SELF)); /* the variable counts only for sessions */
    ck_assert_uint_eq(options.idle_exit, 0);
    setenv("SHMVIEW_IDLE_EXIT", "", 1);
    goes_on(READ(SELF, "--session"));
    ck_assert_uint_eq(options.idle_exit, 10);
    setenv("SHMVIEW_IDLE_EXIT", "soon", 1);
    refused(READ(SELF, "--session"), "soon");
    refused(READ(SELF, "--session=1"), "--help");
}
END_TEST

START_TEST(idle_exit)
{
    static char *const good[] = {"0", "1", "60", "1000000", "007"};
    static char *const bad[] = {"-1",
                                "+1",
                                " 1",
                                "1 ",
                                "1s",
                                "x",
                                "1.5",
                                "0x10",
                                "1e3",
                                "1000001",
                                "18446744073709551616",
                                "99999999999999999999999",
                                "4294967297",
                                "\xc2\xb9"};
    const unsigned values[] = {0, 1, 60, 1000000, 7};
    clear_environment();
    for (size_t i = 0; i < 5; i++) {
        goes_on(READ(SELF, "--idle-exit", good[i]));
        ck_assert_uint_eq(options.idle_exit, values[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        refused(READ(SELF, "--idle-exit", bad[i]), bad[i]);
        unit_assert_holds(said[1], "0 to 1000000 seconds");
    }
    refused(READ(SELF, "--idle-exit"), "--help");
}
END_TEST

/* An empty value is an error, because the option was given. */
START_TEST(empty_idle_exit)
{
    clear_environment();
    refused(READ(SELF, "--idle-exit", ""), "0 to 1000000 seconds");
}
END_TEST

START_TEST(ready_fd)
{
    static char *const bad[] = {"",   "-1",     "+1",         "x",
                                "1x", "100000", "2147483648", "99999999999999999999"};
    int fds[2];
    char text[16];
    clear_environment();
    goes_on(READ(SELF));
    ck_assert_int_eq(options.ready_fd, -1);
    ck_assert_int_eq(pipe(fds), 0);
    snprintf(text, sizeof text, "%d", fds[1]);
    goes_on(READ(SELF, "--ready-fd", text));
    ck_assert_int_eq(options.ready_fd, fds[1]);
    ck_assert_int_eq(fcntl(fds[1], F_GETFD), FD_CLOEXEC); /* the daemon may fork */
    refused(READ(SELF, "--session", "--ready-fd", text), "by its exit");
    close(fds[0]);
    close(fds[1]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refused(READ(SELF, "--ready-fd", bad[i]), "open descriptor");
}
END_TEST

START_TEST(help_and_version)
{
    clear_environment();
    ck_assert_int_eq(READ(SELF, "--help"), 0);
    ck_assert_str_eq(said[1], "");
    const char *parts[] = {"--socket",  "--session",      "--idle-exit",     "--help",
                           "--version", "SHMVIEW_SOCKET", "XDG_RUNTIME_DIR", "SHMVIEW_IDLE_EXIT"};
    for (size_t i = 0; i < 8; i++)
        unit_assert_holds(said[0], parts[i]);
    ck_assert_int_eq(READ(SELF, "--version"), 0);
    ck_assert_str_eq(said[0], "shmviewd " SHMVIEW_VERSION "\n");
    ck_assert_str_eq(said[1], "");
    ck_assert_int_eq(READ(SELF, "--session", "--help", "--nonsense"), 0); /* the first one counts */
}
END_TEST

START_TEST(a_configuration_whose_path_is_too_long)
{
    char path[sizeof options.config + 1];
    clear_environment();
    memset(path, 'x', sizeof path);
    path[sizeof path - 2] = '\0';
    setenv("SHMVIEW_CONFIG", path, 1);
    goes_on(READ(SELF));
    ck_assert_str_eq(options.config, path);
    path[sizeof path - 2] = 'x';
    path[sizeof path - 1] = '\0';
    setenv("SHMVIEW_CONFIG", path, 1);
    refused(READ(SELF), "$SHMVIEW_CONFIG");
    goes_on(READ(SELF, "--config", "/x"));
    unsetenv("SHMVIEW_CONFIG");
}
END_TEST

START_TEST(nonsense)
{
    clear_environment();
    refused(READ(SELF, "--nonsense"), "--help");
    refused(READ(SELF, "-x"), "--help");
    refused(READ(SELF, "-s", "/tmp/x"), "--help"); /* no short options */
    refused(READ(SELF, "argument"), "unexpected argument 'argument'");
    refused(READ(SELF, "--socket", "/x", "argument"), "'argument'");
    refused(READ(SELF, "--", "--session"), "unexpected argument '--session'");
    refused(READ(SELF, ""), "unexpected argument ''");
    refused(READ(SELF, "--help=1"), "--help");
}
END_TEST

UNIT_MAIN("options", UNIT_TEST(no_arguments), UNIT_TEST(socket_option),
          UNIT_TEST(socket_that_is_too_long), UNIT_TEST(session), UNIT_TEST(idle_exit),
          UNIT_TEST(empty_idle_exit), UNIT_TEST(ready_fd), UNIT_TEST(help_and_version),
          UNIT_TEST(a_configuration_whose_path_is_too_long), UNIT_TEST(nonsense))
