/* SPDX-License-Identifier: Apache-2.0 */
/* Checks presence.c: its files and reports, when calls of the system fail and when reports are
 * lost. */
#include "unit/unit.h"

#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>

#include "daemon/clients/presence.h"
#include "daemon/memory/directory.h"
#include "unit/faults.h"

static const struct presence_key seven = {.uid = 5, .client = 7}, eight = {.uid = 5, .client = 8};

static struct presence open_presence(void)
{
    struct presence p;
    ck_assert_int_eq(presence_open(&p), 0);
    ck_assert_int_ge(p.news, 0);
    ck_assert_str_ne(p.path, "");
    return p;
}

/* All functions find no file. */
static void finds_nothing(struct presence *p)
{
    ck_assert_int_eq(presence_create(p, seven), -ENOENT);
    ck_assert_int_eq(presence_test(p, seven), PRESENCE_ABSENT);
    presence_remove(p, seven);
    presence_sweep(p, NULL, NULL);
    presence_close(p, true);
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
}

static char moved[80];

static void move_directory(void)
{
    snprintf(moved, sizeof moved, "%s.moved", directory_path());
    ck_assert_int_eq(rename(directory_path(), moved), 0);
}

START_TEST(no_directory)
{
    static const int errors[] = {EMFILE, EACCES, ELOOP};
    struct presence p = {.path = ""};
    finds_nothing(&p);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        faults_begin_call("openat", 1, errors[i], false);
        ck_assert_int_eq(presence_open(&p), -errors[i]);
        ck_assert(faults_end());
        ck_assert_uint_eq(unit_objects(), 0);
        finds_nothing(&p);
    }
    /* another file has the name */
    int fd = openat(directory_fd(), "+presence", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    ck_assert_int_eq(presence_open(&p), -ENOTDIR);
    finds_nothing(&p);
    ck_assert_int_eq(unlinkat(directory_fd(), "+presence", 0), 0);
    ck_assert_int_eq(rmdir(directory_path()), 0);
    ck_assert_int_eq(presence_open(&p), -ENOENT);
    finds_nothing(&p);
}
END_TEST

/* Without inotify all works but the reports. */
START_TEST(no_reports)
{
    struct presence p;
    faults_hook("openat", move_directory); /* inotify has no path then */
    int r = presence_open(&p);
    ck_assert_int_eq(rename(moved, directory_path()), 0);
    ck_assert_int_eq(r, 0);
    ck_assert_int_eq(p.news, -1);
    int fd = presence_create(&p, seven);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(presence_test(&p, seven), PRESENCE_LOCKED);
    close(fd);
    ck_assert_int_eq(presence_test(&p, seven), PRESENCE_FREE);
    presence_close(&p, true);
}
END_TEST

static bool exists(const struct presence *p, const char *name)
{
    return faccessat(p->directory, name, F_OK, 0) == 0;
}

/* A client without a lock must not have a file: it would be taken for dead. */
START_TEST(a_file_without_lock)
{
    struct presence p = open_presence();
    unsigned before = unit_fds();
    faults_begin_call("flock", 1, ENOLCK, false);
    ck_assert_int_eq(presence_create(&p, seven), -ENOLCK);
    ck_assert(faults_end());
    ck_assert(!exists(&p, "5.7"));
    faults_begin_call("openat", 1, ENOSPC, false);
    ck_assert_int_eq(presence_create(&p, seven), -ENOSPC);
    ck_assert(faults_end());
    ck_assert_int_eq(presence_test(&p, seven), PRESENCE_ABSENT);
    ck_assert_uint_eq(unit_fds(), before);
    presence_close(&p, true);
}
END_TEST

/* A failure here shows nothing about the client. */
START_TEST(a_test_that_fails)
{
    struct presence p = open_presence();
    int fd = presence_create(&p, seven);
    faults_begin_call("openat", 1, EMFILE, false);
    ck_assert_int_eq(presence_test(&p, seven), -EMFILE);
    ck_assert(faults_end());
    faults_begin_call("flock", 1, ENOLCK, false);
    ck_assert_int_eq(presence_test(&p, seven), -ENOLCK);
    ck_assert(faults_end());
    ck_assert_int_eq(presence_test(&p, seven), PRESENCE_LOCKED);
    close(fd);
    presence_close(&p, true);
}
END_TEST

static bool keep_seven(void *arg, struct presence_key key)
{
    ++*(unsigned *)arg;
    return key.uid == seven.uid && key.client == seven.client;
}

START_TEST(files_of_other_names)
{
    static const char *const others[] = {"7", "05.7", "5.07", "5.7x", "5.", "5,7", "name"};
    const size_t n = sizeof others / sizeof *others;
    struct presence p = open_presence();
    unsigned n_keys = 0;
    close(presence_create(&p, seven));
    close(presence_create(&p, eight));
    for (size_t i = 0; i < n; i++)
        close(openat(p.directory, others[i], O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    faults_begin_call("openat", 1, EMFILE, false);
    presence_sweep(&p, keep_seven, &n_keys); /* this time it removes nothing */
    ck_assert(faults_end());
    ck_assert_uint_eq(n_keys, 0);
    ck_assert(exists(&p, "5.8") && exists(&p, "name"));
    presence_sweep(&p, keep_seven, &n_keys);
    ck_assert_uint_eq(n_keys, 2);
    ck_assert(exists(&p, "5.7") && !exists(&p, "5.8"));
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(!exists(&p, others[i]), "%s", others[i]);
    presence_close(&p, true);
}
END_TEST

/* --- Reports ------------------------------------------------------------- */

static void see(void *arg, struct presence_key key)
{
    *(uint64_t *)arg = *(uint64_t *)arg * 100 + key.client;
}

START_TEST(ends_are_reported_once)
{
    uint64_t seen = 0;
    struct presence p = open_presence();
    int a = presence_create(&p, seven), b = presence_create(&p, eight);
    ck_assert_int_eq(presence_read(&p, see, &seen), NEWS_NONE);
    ck_assert_int_eq(presence_test(&p, seven), PRESENCE_LOCKED);
    ck_assert_int_eq(presence_read(&p, see, &seen), NEWS_NONE); /* a test is no end */
    close(b);
    close(a);
    close(openat(p.directory, "5.07", O_CREAT | O_RDONLY | O_CLOEXEC, 0600)); /* no client's */
    ck_assert_int_eq(presence_read(&p, see, &seen), NEWS_READ);
    ck_assert_uint_eq(seen, 807);
    ck_assert_int_eq(presence_read(&p, see, &seen), NEWS_NONE);
    ck_assert_uint_eq(seen, 807);
    presence_close(&p, true);
}
END_TEST

/* A pipe stands for inotify, because its queue is long. */
START_TEST(lost_reports)
{
    const struct inotify_event lost = {.wd = -1, .mask = IN_Q_OVERFLOW};
    const struct inotify_event closed = {.mask = IN_CLOSE_NOWRITE, .len = 16};
    char end[sizeof closed + 16] = {0};
    memcpy(end, &closed, sizeof closed);
    strcpy(end + sizeof closed, "5.7");
    uint64_t seen = 0;
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    struct presence p = {.news = ends[0]};
    ck_assert_int_eq(presence_read(&p, see, &seen), NEWS_NONE);
    ck_assert_int_eq(write(ends[1], end, sizeof end), sizeof end);
    ck_assert_int_eq(write(ends[1], &lost, sizeof lost), sizeof lost);
    ck_assert_int_eq(write(ends[1], end, sizeof end), sizeof end);
    ck_assert_int_eq(presence_read(&p, see, &seen), NEWS_LOST);
    ck_assert_uint_eq(seen, 707); /* the others are reported all the same */
    close(ends[0]);
    close(ends[1]);
}
END_TEST

UNIT_MAIN("presence_files", UNIT_TEST(no_directory), UNIT_TEST(no_reports),
          UNIT_TEST(a_file_without_lock), UNIT_TEST(a_test_that_fails),
          UNIT_TEST(files_of_other_names), UNIT_TEST(ends_are_reported_once),
          UNIT_TEST(lost_reports))
