/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of a unit test: one TCase for each test, so that
 * CK_RUN_CASE=name runs exactly one. Each test must leave as many descriptors as
 * it found, and no object in unit_object_directory().
 *
 *     START_TEST(name) { ... } END_TEST
 *     UNIT_MAIN("view", UNIT_TEST(name), ...)
 */
#ifndef UNIT_UNIT_H
#define UNIT_UNIT_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>
#undef fail /* an old macro of check, whose name the library uses for a function */

struct unit_test {
    const char *name;
    const TTest *test;
};

static unsigned unit_fds_before;
static pid_t unit_pid; /* of the process that runs the tests; each test is a child of it */

/* Returns the number of open descriptors of this process. */
static inline unsigned unit_fds(void)
{
    unsigned n = 0;
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n - 1; /* without that of the directory itself */
}

/* Returns the prefix of the names of a test's objects, without a slash. */
static inline const char *unit_prefix(void)
{
    static char prefix[32];
    snprintf(prefix, sizeof prefix, "shmview.unit%d", (int)unit_pid);
    return prefix;
}

/* Removes everything in the directory whose name begins with prefix. Returns how many. */
static inline unsigned unit_sweep(const char *directory, const char *prefix)
{
    unsigned n = 0;
    DIR *d = opendir(directory);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[512];
        if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || strcmp(e->d_name, ".") == 0 ||
            strcmp(e->d_name, "..") == 0)
            continue;
        n++;
        if (snprintf(path, sizeof path, "%s/%s", directory, e->d_name) < (int)sizeof path &&
            unlink(path) && errno == EISDIR) {
            unit_sweep(path, "");
            rmdir(path);
        }
    }
    if (d)
        closedir(d);
    return n;
}

/* From daemon/memory/directory.h if the test is linked with it, otherwise NULL. */
__attribute__((weak)) int directory_open(const char *instance);
__attribute__((weak)) void directory_close(void);

/* Returns the directory of a daemon's objects if this test is linked with one. */
static inline const char *unit_object_directory(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/dev/shm/%s", unit_prefix());
    return path;
}

/* Returns the path of an object, which is valid until the next call but three. */
static inline const char *unit_object(const char *name)
{
    static char paths[4][400];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", unit_object_directory(), name);
    return path;
}

/* Returns the number of objects. */
static inline unsigned unit_objects(void)
{
    unsigned n = 0;
    DIR *d = opendir(unit_object_directory());
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    if (d)
        closedir(d);
    return n;
}

static inline void unit_enter(void)
{
    if (directory_open)
        ck_assert_int_eq(directory_open(unit_prefix() + strlen("shmview.")), 0);
    unit_fds_before = unit_fds();
}

static inline void unit_leave(void)
{
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
    ck_assert_uint_eq(unit_objects(), 0);
    if (directory_close)
        directory_close();
    ck_assert_int_eq(access(unit_object_directory(), F_OK), -1);
}

/* Removes what a failed test has left. Runs in the process that runs the tests. */
static inline void unit_clean(void)
{
    unit_sweep("/dev/shm", unit_prefix());
    unit_sweep("/tmp", unit_prefix());
}

/* Returns a private directory for files and sockets, with a path short enough for the latter. It is
 * removed after the test. */
static inline const char *unit_directory(void)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/%s", unit_prefix());
    ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
    return path;
}

/* Returns the next number of a fixed sequence: xorshift64, Marsaglia 2003. */
static inline uint64_t unit_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Returns the text with ' turned into ", so that JSON in a test is readable. It is valid until the
 * next call but one. */
static inline const char *unit_json(const char *text)
{
    static char buffers[2][8192];
    static unsigned turn;
    char *to = buffers[turn++ % 2];
    ck_assert_uint_lt(strlen(text), sizeof buffers[0]);
    strcpy(to, text);
    for (char *p = to; *p; p++)
        if (*p == '\'')
            *p = '"';
    return to;
}

static inline void unit_assert_holds(const char *text, const char *part)
{
    if (!strstr(text, part))
        ck_abort_msg("\"%s\" does not hold \"%s\"", text, part);
}

static inline int unit_main(const char *name, const struct unit_test *tests, size_t n)
{
    unit_pid = getpid();
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < n; i++) {
        TCase *tcase = tcase_create(tests[i].name);
        tcase_add_checked_fixture(tcase, unit_enter, unit_leave);
        tcase_add_unchecked_fixture(tcase, NULL, unit_clean);
        tcase_add_test(tcase, tests[i].test);
        suite_add_tcase(suite, tcase);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#define UNIT_TEST(function)                                                                        \
    {                                                                                              \
#function, function                                                                        \
    }
#define UNIT_MAIN(name, ...)                                                                       \
    int main(void)                                                                                 \
    {                                                                                              \
        const struct unit_test tests[] = {__VA_ARGS__};                                            \
        return unit_main(name, tests, sizeof tests / sizeof tests[0]);                             \
    }

#endif
