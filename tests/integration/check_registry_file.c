/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's file was harmed while no daemon ran: the next one serves all the same, with
 * what still fits, or with nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

#define PAGE_BYTES 4096

static struct daemon d;
static char path[200], bad[220];
static uint64_t seed = 88172645463325252;

/* xorshift64, Marsaglia 2003 */
static uint32_t draw(uint32_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 20) % n;
}

/* Leaves segments, layouts and attachments behind, and a killed daemon. */
static void leave_something(void)
{
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    struct shmview_connection *conn = client_connect(&d);
    for (int i = 0; i < 12; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        struct shmview_segment *s = client_create_with(conn, name, 100, SHMVIEW_MANUAL, 0);
        OK(shmview_define(s, "l", &spec, 1));
        OK(shmview_define(s, "m", &spec, 1));
        OK(shmview_detach(s));
        if (i % 3 == 0)
            OK(shmview_remove(conn, name)); /* pages that are free */
    }
    OK(shmview_disconnect(conn));
    daemon_kill(&d);
}

/* A new daemon does what it is for; then all goes. */
static void expect_service(void)
{
    daemon_restart(&d);
    struct shmview_connection *conn = client_connect(&d);
    for (int i = 0; i < 3; i++) {
        struct shmview_segment *s = client_create(conn, "fresh", 5000);
        OK(shmview_lock(s));
        OK(shmview_unlock(s));
        OK(shmview_detach(client_attach(conn, "fresh", SHMVIEW_READ)));
        OK(shmview_detach(s));
    }
    for (int i = 0; i < 12; i++) {
        char name[16];
        struct shmview_segment *s;
        snprintf(name, sizeof name, "s%d", i);
        int r = shmview_attach(conn, name, SHMVIEW_WRITE, 0, &s);
        if (r == 0)
            OK(shmview_detach(s));
        else
            ck_assert_int_eq(r, -SHMVIEW_ERR_NOT_FOUND);
    }
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
    unlink(bad);
}

static void begin(void)
{
    daemon_start(&d);
    snprintf(path, sizeof path, "%s.registry", d.socket);
    snprintf(bad, sizeof bad, "%s.bad", path);
    leave_something();
}

/* Somewhere in the part of the file that is in use. */
static off_t anywhere(void)
{
    return (off_t)draw(40 * PAGE_BYTES);
}

static void harm(int fd, int how)
{
    unsigned char bytes[PAGE_BYTES];
    switch (how) {
    case 0: /* some bits */
        for (uint32_t i = 0; i < 1 + draw(8); i++) {
            off_t at = anywhere();
            ck_assert_int_eq(pread(fd, bytes, 1, at), 1);
            bytes[0] ^= (unsigned char)(1u << draw(8));
            ck_assert_int_eq(pwrite(fd, bytes, 1, at), 1);
        }
        break;
    case 1: /* a page of rubbish */
        for (int i = 0; i < PAGE_BYTES; i++)
            bytes[i] = (unsigned char)draw(256);
        ck_assert_int_eq(pwrite(fd, bytes, PAGE_BYTES, anywhere() / PAGE_BYTES * PAGE_BYTES),
                         PAGE_BYTES);
        break;
    case 2: /* a page of nothing */
        memset(bytes, 0, sizeof bytes);
        ck_assert_int_eq(pwrite(fd, bytes, PAGE_BYTES, anywhere() / PAGE_BYTES * PAGE_BYTES),
                         PAGE_BYTES);
        break;
    case 3: /* cut */
        ck_assert_int_eq(ftruncate(fd, anywhere()), 0);
        break;
    default: /* a page in the place of another */
        ck_assert_int_eq(pread(fd, bytes, PAGE_BYTES, anywhere() / PAGE_BYTES * PAGE_BYTES),
                         PAGE_BYTES);
        ck_assert_int_eq(pwrite(fd, bytes, PAGE_BYTES, anywhere() / PAGE_BYTES * PAGE_BYTES),
                         PAGE_BYTES);
    }
}

START_TEST(harmed_anyhow)
{
    for (int i = 0; i < 60; i++) {
        if (i == 0) {
            begin();
        } else {
            daemon_restart(&d);
            leave_something();
        }
        int fd = open(path, O_RDWR | O_CLOEXEC);
        ck_assert_int_ge(fd, 0);
        harm(fd, i % 5);
        close(fd);
        expect_service();
    }
}
END_TEST

/* A few lines of the log tell what became of it. */
static void expect_set_aside(void)
{
    expect_service();
    ck_assert(daemon_said(&d, "io.shmview.registry.bad, its segments are lost"));
}

START_TEST(a_link_is_none)
{
    char target[220];
    begin();
    snprintf(target, sizeof target, "%s.log", path); /* the place forgives logs */
    ck_assert_int_eq(rename(path, target), 0);
    ck_assert_int_eq(symlink(target, path), 0);
    expect_set_aside();
    struct stat st;
    ck_assert_int_eq(lstat(target, &st), 0); /* it was not followed */
    unlink(target);
}
END_TEST

START_TEST(an_older_bad_one_is_replaced)
{
    begin();
    for (int i = 0; i < 3; i++) { /* a directory, a file, a directory again */
        ck_assert_int_eq(unlink(path), 0);
        if (i % 2)
            ck_assert_int_eq(symlink("/dev/null", path), 0);
        else
            ck_assert_int_eq(mkdir(path, 0700), 0);
        daemon_restart(&d);
        daemon_leave(&d);
    }
    daemon_restart(&d);
    daemon_stop(&d);
    ck_assert_int_eq(rmdir(bad), 0);
}
END_TEST

START_TEST(what_others_may_write_is_none)
{
    begin();
    ck_assert_int_eq(chmod(path, 0666), 0);
    expect_set_aside();
}
END_TEST

START_TEST(another_users_is_none)
{
    if (geteuid() != 0) {
        fputs("skipped: needs root\n", stderr);
        return;
    }
    begin();
    ck_assert_int_eq(chown(path, 65533, 65533), 0);
    expect_set_aside();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(harmed_anyhow),
        SUITE_TEST(a_link_is_none),
        SUITE_TEST(an_older_bad_one_is_replaced),
        SUITE_TEST(what_others_may_write_is_none),
        SUITE_TEST(another_users_is_none),
        SUITE_END,
    };
    return suite_main("registry_file", tests);
}
