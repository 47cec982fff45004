/* SPDX-License-Identifier: Apache-2.0 */
/* Checks log.c: lines for people and for the journal, priorities, escapes, and the limit on
 * repeated lines. */
#include "unit/unit.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/base/log.h"

static char logged[200000];
static int log_fd, saved_fd;
static time_t later_s;

/* Replaces the C library's function, so that the test can let time pass at once. */
int clock_gettime(clockid_t clock, struct timespec *t)
{
    int r = (int)syscall(SYS_clock_gettime, clock, t);
    t->tv_sec += later_s;
    return r;
}

static void capture_into(int fd)
{
    log_fd = fd;
    saved_fd = dup(2);
    dup2(log_fd, 2);
}

static void release(void)
{
    dup2(saved_fd, 2);
    close(saved_fd);
    close(log_fd);
}

static void capture(void)
{
    capture_into(memfd_create("log", MFD_CLOEXEC));
}

static const char *captured(void)
{
    ssize_t n = pread(log_fd, logged, sizeof logged - 1, 0);
    logged[n > 0 ? n : 0] = '\0';
    release();
    return logged;
}

/* Sets JOURNAL_STREAM to the file fd, or to a file with another inode. */
static void journal_reads(int fd, unsigned long other)
{
    char text[64];
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    snprintf(text, sizeof text, "%lu:%lu", (unsigned long)st.st_dev,
             (unsigned long)st.st_ino + other);
    setenv("JOURNAL_STREAM", text, 1);
}

#define log_info(...) log_event(LOG_INFO, &(struct log_event){.kind = LOG_PLAIN}, __VA_ARGS__)

static void log_three(void)
{
    log_init();
    log_info("one %d", 1);
    log_warning("two");
    log_error("%s", "100 %s");
}

START_TEST(lines_for_people)
{
    capture();
    unsetenv("JOURNAL_STREAM");
    log_three();
    ck_assert_str_eq(captured(), "shmviewd: one 1\nshmviewd: two\nshmviewd: 100 %s\n");
}
END_TEST

START_TEST(a_stream_that_is_another)
{
    static const char *const odd[] = {"", ":", "8", "8:", "x:y", "1:2:3", "-1:-1"};
    capture();
    journal_reads(log_fd, 1);
    log_three();
    ck_assert_str_eq(captured(), "shmviewd: one 1\nshmviewd: two\nshmviewd: 100 %s\n");
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        capture();
        setenv("JOURNAL_STREAM", odd[i], 1);
        log_three();
        ck_assert_str_eq(captured(), "shmviewd: one 1\nshmviewd: two\nshmviewd: 100 %s\n");
    }
}
END_TEST

/* Logs to a file, so that the journal of this machine receives nothing. */
START_TEST(lines_with_priorities)
{
    struct log_event event = {.kind = LOG_QUOTA, .segment = "s", .reason = "bytes", .pid = 1};
    capture();
    journal_reads(log_fd, 0);
    log_three();
    log_event(LOG_NOTICE, &event, "four");
    ck_assert_str_eq(captured(), "<6>one 1\n<4>two\n<3>100 %s\n<5>four\n");
}
END_TEST

START_TEST(no_standard_error)
{
    int saved = dup(2);
    setenv("JOURNAL_STREAM", "1:1", 1);
    close(2);
    log_three(); /* must not crash */
    dup2(saved, 2);
    close(saved);
}
END_TEST

START_TEST(long_lines_are_cut)
{
    char text[3000];
    unsetenv("JOURNAL_STREAM");
    log_init();
    memset(text, 'x', sizeof text - 1);
    for (size_t n = 990; n < sizeof text; n += n < 1010 ? 1 : 500) {
        text[n] = '\0';
        capture();
        log_info("%s", text);
        captured();
        size_t got = strlen(logged);
        ck_assert_int_eq(logged[got - 1], '\n');
        ck_assert_ptr_eq(strchr(logged, '\n'), logged + got - 1); /* one line */
        ck_assert_uint_eq(got, (n < 1000 ? n : 1000) + strlen("shmviewd: \n"));
        text[n] = 'x';
    }
}
END_TEST

START_TEST(what_is_not_printable_is_escaped)
{
    char text[1001];
    unsetenv("JOURNAL_STREAM");
    log_init();
    capture();
    log_info("%s", "a\nshmviewd: forged\t\x1b[1m\x7f\xff\xc3\xa9\\z");
    ck_assert_str_eq(captured(), "shmviewd: a\\x0ashmviewd: forged\\x09\\x1b[1m\\x7f\\xff"
                                 "\\xc3\\xa9\\x5cz\n");
    memset(text, '\n', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    capture();
    log_info("%s", text);
    captured();
    ck_assert_uint_eq(strlen(logged), strlen("shmviewd: \n") + 1000);
    ck_assert_str_eq(logged + strlen(logged) - 9, "\\x0a\\x0a\n");
}
END_TEST

static unsigned lines(const char *text)
{
    unsigned n = 0;
    for (; (text = strchr(text, '\n')); text++)
        n++;
    return n;
}

/* A client that causes one kind of line does not suppress the others. */
START_TEST(a_flood_is_counted)
{
    struct log_event quota = {.kind = LOG_QUOTA, .has_uid = true, .uid = 1000};
    unsetenv("JOURNAL_STREAM");
    log_init();
    capture();
    for (int i = 0; i < 10000; i++)
        log_event(LOG_WARNING, &quota, "refused");
    log_event(LOG_INFO, &(struct log_event){.kind = LOG_LEAVE}, "leaving");
    captured();
    ck_assert_uint_ge(lines(logged), 2);
    ck_assert_uint_le(lines(logged), 1000);
    ck_assert_ptr_nonnull(strstr(logged, "shmviewd: leaving\n"));
    unsigned left_out = 10001 - lines(logged);
    char text[120];
    later_s = 60;
    capture();
    log_event(LOG_WARNING, &quota, "refused");
    log_event(LOG_WARNING, &quota, "refused");
    snprintf(text, sizeof text,
             "shmviewd: %u more lines like the following were left out\n"
             "shmviewd: refused\nshmviewd: refused\n",
             left_out);
    ck_assert_str_eq(captured(), text);
}
END_TEST

START_TEST(what_matters_less_is_left_out)
{
    unsetenv("JOURNAL_STREAM");
    log_set_level(LOG_WARNING);
    capture();
    log_three();
    ck_assert_str_eq(captured(), "shmviewd: two\nshmviewd: 100 %s\n");
    log_set_level(LOG_INFO);
}
END_TEST

/* Makes an empty /run with the socket of a journal, for this process only. Returns the socket, or
 * -1 if this process must not. */
static int journal_start(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", "/run", "tmpfs", 0, NULL) || mkdir("/run/systemd", 0755) ||
        mkdir("/run/systemd/journal", 0755))
        return -1;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* In a build without libsystemd the lines go to standard error. */
static void send_to_journal(void)
{
    const struct log_event all = {.kind = LOG_QUOTA,
                                  .segment = "frames",
                                  .reason = "bytes",
                                  .has_uid = true,
                                  .uid = 7,
                                  .pid = 12};
    char got[2048] = "";
    int ends[2], journal = journal_start();
    if (journal < 0)
        return;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    capture_into(ends[1]);
    journal_reads(ends[1], 0);
    log_init();
    log_event(LOG_WARNING, &all, "too much");
    bool has_fields = recv(journal, got, sizeof got - 1, 0) > 0;
    if (has_fields) {
        ck_assert_str_eq(got, "MESSAGE=too much\nPRIORITY=4\nSYSLOG_IDENTIFIER=shmviewd\n"
                              "MESSAGE_ID=c7eaea6c0c95468eac923884d97dd488\n"
                              "SHMVIEW_SEGMENT=frames\nSHMVIEW_REASON=bytes\nSHMVIEW_UID=7\n"
                              "SHMVIEW_PID=12\n");
        memset(got, 0, sizeof got);
        log_warning("less");
        ck_assert_int_gt(recv(journal, got, sizeof got - 1, 0), 0);
        ck_assert_ptr_null(strstr(got, "SHMVIEW_"));
    }
    close(journal); /* the journal is away: the line is not lost */
    log_event(LOG_WARNING, &all, "still");
    ssize_t n = recv(ends[0], got, sizeof got - 1, 0);
    ck_assert_int_gt(n, 0);
    got[n] = '\0';
    ck_assert_ptr_nonnull(strstr(got, "<4>still\n"));
    release();
    close(ends[0]);
}

/* In a child, because libsystemd keeps a socket. */
START_TEST(fields_for_the_journal)
{
    int status;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        send_to_journal();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

UNIT_MAIN("log", UNIT_TEST(lines_for_people), UNIT_TEST(fields_for_the_journal),
          UNIT_TEST(a_stream_that_is_another), UNIT_TEST(lines_with_priorities),
          UNIT_TEST(no_standard_error), UNIT_TEST(long_lines_are_cut),
          UNIT_TEST(what_is_not_printable_is_escaped), UNIT_TEST(a_flood_is_counted),
          UNIT_TEST(what_matters_less_is_left_out))
